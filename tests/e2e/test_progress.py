"""Progress that a log can hold: whole lines, elapsed time, silence for what is quick."""

import io
import re

from eclectus_e2e.progress import Progress
from eclectus_e2e.testbed.processes import wait_for


def test_lines_say_what_how_long_and_how_far() -> None:
    out = io.StringIO()
    with Progress("building", out, every_seconds=0.01) as progress:
        progress.say("3 packages")
        assert wait_for(lambda: out.getvalue().count("3 packages\n") >= 2, 10)
    lines = out.getvalue().splitlines()
    assert all(re.fullmatch(r"building: \d+:\d\d(, 3 packages)?( \(done\))?", line) for line in lines)
    assert lines[-1].endswith("(done)")


def test_quick_work_prints_nothing() -> None:
    out = io.StringIO()
    with Progress("building", out, every_seconds=60):
        pass
    assert out.getvalue() == ""
