"""The Python distributions: the sdist of the checkout, and the wheel that the sdist gives."""

import sys
import tempfile
from pathlib import Path

from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.testbed.images.shell import run


def source_time() -> int:
    """When the checkout was committed, in seconds since 1970: the time of all that is built from it."""
    return int(run("git", "-C", CHECKOUT, "log", "-1", "--format=%ct"))


def build(folder: Path, version: str) -> tuple[Path, Path]:
    """Build sdist and wheel, the same bytes for the same commit. Raises BuildError."""
    name = f"eclectus-{version}"
    _hatchling(CHECKOUT, "sdist", folder)
    with tempfile.TemporaryDirectory() as scratch:
        run("tar", "--extract", "--file", folder / f"{name}.tar.gz", "--directory", scratch)
        _hatchling(Path(scratch) / name, "wheel", folder)
    return folder / f"{name}.tar.gz", folder / f"{name}-py3-none-any.whl"


def _hatchling(source: Path, target: str, folder: Path) -> None:
    command = (sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", folder)
    run(*command, environment={"SOURCE_DATE_EPOCH": str(source_time())}, directory=source)
