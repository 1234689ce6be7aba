"""Progress of long commands: whole lines on a pipe, a bar on a terminal, nothing for short work."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from eclectus.cli import output as progress
from eclectus.cli.main import program
from eclectus.cli.output import Progress

DEADLINE_SECONDS = 60.0


def lines_of(shown: Progress, capsys: pytest.CaptureFixture[str], count: int, done: int) -> list[str]:
    """The first lines that are printed while the work reports more and more units."""
    seen, deadline = "", time.monotonic() + DEADLINE_SECONDS
    with shown:
        while seen.count("\n") < count:
            assert time.monotonic() < deadline
            if done:
                shown(done)
                done += 1
            seen += capsys.readouterr().err
    return seen.splitlines()[:count]


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """No waits between lines."""
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "NEXT_LINE_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("done", "expected", "rate", "printed"),
    [
        (200, 1000, 100.0, f"{'█' * 6}{'░' * 24}  20%  100 tasks/s  8 s to go"),
        (1, 36_001, 1.0, f"{'░' * 30}   0%  1 tasks/s  10 h 0 min to go"),
        (50, 6050, 10.0, f"{'░' * 30}   1%  10 tasks/s  10 min 0 s to go"),
        (1001, 1000, 1001.0, f"{'█' * 30} 100%  1,001 tasks/s  0 s to go"),
    ],
)
def test_a_line_has_a_rate_and_the_time_to_go(done: int, expected: int, rate: float, printed: str) -> None:
    assert progress.line(done, expected, rate, "tasks", bar=True) == printed


def test_without_a_bar_the_line_has_the_same_words() -> None:
    assert progress.line(200, 1000, 100.0, "steps", bar=False) == " 20%  100 steps/s  8 s to go"


@pytest.mark.usefixtures("fast")
def test_a_step_that_reports_nothing_is_seen_to_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_of(Progress("reading"), capsys, count=2, done=0) == ["reading: 0 s", "reading: 0 s"]


@pytest.mark.usefixtures("fast")
def test_units_are_counted_whether_their_number_is_known_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    *_, known = lines_of(Progress("simulating", 1e9, "tasks"), capsys, count=3, done=1)
    assert known.startswith("simulating:   0%  ")
    assert " tasks/s  " in known
    assert known.endswith(" to go")
    *_, unknown = lines_of(Progress("replaying", unit="steps"), capsys, count=3, done=1)
    assert unknown.startswith("replaying: ")
    assert " steps  " in unknown
    assert unknown.endswith(" steps/s")


def test_short_work_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("reading") as shown:
        shown(1)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("fast")
def test_replay_reports_its_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[int] = []
    monkeypatch.setattr(Progress, "__call__", lambda self, done: reported.append(done))
    tape, runner = str(tmp_path / "a.tape"), CliRunner()
    single = ["--profile", "two-choices", "--seed", "1", "--set", "measure.tasks=20", "--tape", tape]
    recorded = runner.invoke(program, ["simulate", "two-speeds", *single])
    assert recorded.exit_code == 0, recorded.output
    reported.clear()
    assert "all equal" in runner.invoke(program, ["replay", tape]).output
    assert reported == [*range(1, len(reported) + 1)]
    assert len(reported) > 20
