"""`make report`: what the simulator measures beside the figures of others, as bench/report.md.

Runs those oracles of tests/oracles whose figures are others', with pytest and by the same accept rule, and
writes down what they compared, passed or not. A data set that is not at hand is named, with what to do.
"""

import ast
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from eclectus import __version__
from eclectus_bench.oracle_page import Comparison, Facts, Section, page
from eclectus_e2e.paths import CHECKOUT

FILE = CHECKOUT / "bench" / "report.md"
ORACLES = CHECKOUT / "tests" / "oracles"
COMPARED = ("choices", "errors", "staleness", "central", "examples", "openb", "gavel")
VERDICT = "verdict"  # the name under which a test notes a comparison
ON_ALL_CORES = ("-n", "auto", "--dist", "worksteal")
TEST_SECONDS_MOST = 3600  # a test: slow machines are no reason to lose the others


@dataclass
class VerdictCollector:
    """A pytest plug-in: the comparisons of every test, by file, whichever process has run it."""

    reports: list[pytest.TestReport] = field(default_factory=list)
    root: Path = CHECKOUT

    def pytest_configure(self, config: pytest.Config) -> None:
        """Where files are named from."""
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test is over, or one of its phases."""
        self.reports.append(report)

    def sections(self) -> list[Section]:
        """One of each file, with its tests in their order, however they were dealt out to processes."""
        found: dict[str, Section] = {}
        for report in sorted(self.reports, key=_place):
            name = report.location[0]
            if name not in found:
                found[name] = Section(*_docstring(self.root / name))
            _note(found[name], report)
        return list(found.values())

    @property
    def minutes(self) -> float:
        """That the tests took, one after the other."""
        return sum(report.duration for report in self.reports) / 60


def _place(report: pytest.TestReport) -> tuple[int, str, int, str]:
    file, line, _ = report.location
    name = Path(file).stem.removeprefix("test_")
    return COMPARED.index(name) if name in COMPARED else len(COMPARED), file, line or 0, report.nodeid


def _docstring(file: Path) -> tuple[str, str]:
    """The first line of a file of tests is the title of its section, the rest its text."""
    title, _, text = (ast.get_docstring(ast.parse(file.read_text())) or file.stem).partition("\n")
    return title.rstrip(".:"), text.strip()


def _note(section: Section, report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        section.left_out.add(report.longrepr[2].removeprefix("Skipped: "))
    if report.failed:
        section.failed.append(report.location[2])
    if report.when == "call":
        section.comparisons += [_comparison(said) for name, said in report.user_properties if name == VERDICT]


def main(arguments: Sequence[str] = ()) -> int:
    """Measure and write; returns pytest's exit code. `arguments` go to pytest: `-k central` measures less."""
    began, gatherer = time.monotonic(), VerdictCollector()
    files = [str(ORACLES / f"test_{name}.py") for name in COMPARED]
    options = ["-v", "-m", "slow", f"--timeout={TEST_SECONDS_MOST}", "-p", "no:cacheprovider", *ON_ALL_CORES]
    code = pytest.main([*options, *arguments, *files], plugins=[gatherer])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(code)  # interrupted, or nothing was asked: what is there stays
    facts = Facts(
        eclectus=f"{__version__}, commit {_commit()}",
        python=f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}",
        machine=f"{platform.system()} {platform.machine()}",
        minutes=(time.monotonic() - began) / 60,
        test_minutes=gatherer.minutes,
    )
    FILE.write_text(page(facts, gatherer.sections()))
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
