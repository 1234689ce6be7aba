"""`make report`: the simulator compared with published figures, as bench/report.md.

Runs those tests of tests/oracles that compare with published figures, with pytest and their accept rule, and
writes every comparison, passed or failed. A data set that is missing is named, with how to get it.
"""

import ast
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from eclectus import __version__
from eclectus_bench.oracles.page import Comparison, Facts, Section, page
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

FILE = CHECKOUT / "bench" / "report.md"
ORACLES = CHECKOUT / "tests" / "oracles"
COMPARED = ("choices", "errors", "staleness", "central", "examples", "openb", "gavel")
VERDICT = "verdict"  # the user property under which a test records a comparison
ON_ALL_CORES = ("-n", "auto", "--dist", "worksteal")
TEST_TIMEOUT_SECONDS = 3600  # for each test; generous, for slow machines


@dataclass
class VerdictCollector:
    """A pytest plug-in that collects the comparisons of every test by file, from all processes."""

    reports: list[pytest.TestReport] = field(default_factory=list)
    root: Path = CHECKOUT
    say: Callable[[str], None] = lambda text: None

    def pytest_configure(self, config: pytest.Config) -> None:
        """Take the root to which file names are relative."""
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test (setup, call, teardown) has ended."""
        self.reports.append(report)
        self.say(f"{sum(each.when == 'teardown' for each in self.reports)} tests have ended")

    def sections(self) -> list[Section]:
        """A section for each file, with its tests in their order in the file."""
        found: dict[str, Section] = {}
        for report in sorted(self.reports, key=_order):
            name = report.location[0]
            if name not in found:
                found[name] = Section(*_docstring(self.root / name))
            _add(found[name], report)
        return list(found.values())

    @property
    def minutes(self) -> float:
        """The sum of the tests' durations."""
        return sum(report.duration for report in self.reports) / 60


def _order(report: pytest.TestReport) -> tuple[int, str, int, str]:
    file, line, _ = report.location
    name = Path(file).stem.removeprefix("test_")
    return COMPARED.index(name) if name in COMPARED else len(COMPARED), file, line or 0, report.nodeid


def _docstring(file: Path) -> tuple[str, str]:
    """Title and text of a section: the first line of the test file's docstring, and the rest."""
    title, _, text = (ast.get_docstring(ast.parse(file.read_text())) or file.stem).partition("\n")
    return title.rstrip(".:"), text.strip()


def _add(section: Section, report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        section.left_out.add(report.longrepr[2].removeprefix("Skipped: "))
    if report.failed:
        section.failed.append(report.location[2])
    if report.when == "call":
        section.comparisons += [
            _comparison(value) for name, value in report.user_properties if name == VERDICT
        ]


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and write; returns pytest's exit code. `arguments` go to pytest, for example `-k central`."""
    began = time.monotonic()
    files = [str(ORACLES / f"test_{name}.py") for name in COMPARED]
    options = [
        "-v",
        "-m",
        "slow",
        f"--timeout={TEST_TIMEOUT_SECONDS}",
        "-p",
        "no:cacheprovider",
        *ON_ALL_CORES,
    ]
    with Progress("report", expected="20 minutes on two idle cores") as progress:
        collector = VerdictCollector(say=progress.update)
        code = pytest.main([*options, *arguments, *files], plugins=[collector])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(code)  # interrupted, or nothing was selected: the old page stays
    facts = Facts(
        eclectus=f"{__version__}, commit {_commit()}",
        python=f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}",
        machine=f"{platform.system()} {platform.machine()}",
        minutes=(time.monotonic() - began) / 60,
        test_minutes=collector.minutes,
    )
    FILE.write_text(page(facts, collector.sections()))
    print(f"\nwritten: {FILE}")
    return int(code)


def _comparison(value: object) -> Comparison:
    """The oracles' conftest records tuples of these fields."""
    if not isinstance(value, tuple):
        raise TypeError(f"a verdict is a tuple, not {value!r}")
    return Comparison(*value)


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
