"""`make report`: what the simulator measures beside the figures of others, as bench/report.md.

Runs those oracles of tests/oracles whose figures are others', with pytest and by the same accept rule, and
writes down what they compared, passed or not. A data set that is not at hand is named, with what to do.
"""

import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import getdoc

import numpy as np
import pytest

from eclectus import __version__
from eclectus_e2e.paths import CHECKOUT

from .oracle_page import Comparison, Facts, Section, page

FILE = CHECKOUT / "bench" / "report.md"
ORACLES = CHECKOUT / "tests" / "oracles"
ASKED = ("choices", "errors", "staleness", "central", "examples", "openb", "gavel")
VERDICT = "verdict"  # the name under which a test notes a comparison
TEST_SECONDS_MOST = 3600  # a test: slow machines are no reason to lose the others


@dataclass
class Gatherer:
    """A pytest plug-in: the comparisons of every test, by file."""

    sections: dict[str, Section] = field(default_factory=dict)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """The file's docstring opens its section: the first line is its title."""
        name = item.location[0]
        if isinstance(item, pytest.Function) and name not in self.sections:
            title, _, text = (getdoc(item.module) or name).partition("\n")
            self.sections[name] = Section(title.rstrip(".:"), text.strip())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test is over, or one of its phases."""
        section = self.sections[report.location[0]]
        if report.skipped and isinstance(report.longrepr, tuple):
            section.left_out.add(report.longrepr[2].removeprefix("Skipped: "))
        if report.failed:
            section.failed.append(report.location[2])
        if report.when == "call":
            section.comparisons += [
                _comparison(said) for name, said in report.user_properties if name == VERDICT
            ]


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and write; returns pytest's exit code. `arguments` go to pytest: `-k central` measures less."""
    began, cpu = time.monotonic(), time.process_time()
    gatherer = Gatherer()
    files = [str(ORACLES / f"test_{name}.py") for name in ASKED]
    options = ["-v", "-m", "slow", f"--timeout={TEST_SECONDS_MOST}", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *arguments, *files], plugins=[gatherer])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(code)  # interrupted, or nothing was asked: what is there stays
    facts = Facts(
        eclectus=f"{__version__}, commit {_commit()}",
        python=f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}",
        machine=f"{platform.system()} {platform.machine()}, one process",
        minutes=(time.monotonic() - began) / 60,
        cpu_minutes=(time.process_time() - cpu) / 60,
    )
    FILE.write_text(page(facts, list(gatherer.sections.values())))
    print(f"\nwritten: {FILE}")
    return int(code)


def _comparison(said: object) -> Comparison:
    """The oracles' conftest notes tuples of these fields with each test."""
    if not isinstance(said, tuple):
        raise TypeError(f"a verdict is a tuple, not {said!r}")
    return Comparison(*said)


def _commit() -> str:
    def git(*words: str) -> str:
        command = ["git", *words]
        return subprocess.run(
            command, cwd=CHECKOUT, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", "scheduler", "tests/oracles", "tests/support")
        return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
