"""Progress in a log: whole lines with the elapsed time, none for quick work."""

import io
import re

from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.processes import wait_for


def test_lines_show_title_elapsed_time_and_detail() -> None:
    out = io.StringIO()
    with Progress("building", out, every_seconds=0.01) as progress:
        progress.update("3 packages")
        assert wait_for(lambda: out.getvalue().count("3 packages\n") >= 2, 10)
    lines = out.getvalue().splitlines()
    assert all(re.fullmatch(r"building: \d+:\d\d(, 3 packages)?( \(done\))?", line) for line in lines)
    assert lines[-1].endswith("(done)")


def test_quick_work_prints_nothing() -> None:
    out = io.StringIO()
    with Progress("building", out, every_seconds=60):
        pass
    assert out.getvalue() == ""


def test_the_expected_time_is_printed_at_once() -> None:
    out = io.StringIO()
    with Progress("building", out, every_seconds=60, expected="about 5 minutes"):
        assert out.getvalue() == "building: takes about 5 minutes\n"


def test_what_is_said_stands_on_a_line_of_its_own() -> None:
    out = io.StringIO()
    Progress("climbing", out).say("found: a")
    assert out.getvalue() == "found: a\n"
