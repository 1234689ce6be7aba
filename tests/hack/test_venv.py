"""`make venv` shows what pip does; a failure shows the end of pip's output."""

import pytest

from eclectus_e2e.errors import BuildError
from eclectus_e2e.progress import Progress
from eclectus_hack import venv


def test_the_progress_counts_packages_and_then_names_the_installation():
    lines = [
        "Collecting a==1",
        "  Downloading a.whl",
        "Collecting b==2",
        "Installing collected packages: a, b",
    ]
    assert list(venv.details(lines, 2)) == [
        "1 of 2 packages fetched",
        "1 of 2 packages fetched",
        "2 of 2 packages fetched",
        "writing the packages",
    ]


def test_a_failing_pip_is_an_error_with_the_end_of_its_output(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho no network\nexit 7\n")
    python.chmod(0o755)
    with Progress("x") as progress, pytest.raises(BuildError, match=r"(?s)code 7.*no network"):
        venv._pip(tmp_path, ["x"], progress, 1)
