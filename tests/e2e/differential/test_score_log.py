"""kube-scheduler's sums of scores from its log, as it grows."""

from pathlib import Path

import pytest

from eclectus_e2e.differential import score_log
from eclectus_e2e.differential.score_log import ScoreLog


def line(pod: str, node: str, score: int) -> str:
    start = 'I1124 05:00:00.123456   12 schedule_one.go:1050] "Calculated node\'s final score for pod"'
    return f'{start} pod="{pod}" node="{node}" score={score}\n'


def test_the_sums_of_a_pod_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(
        "another line\n" + line("lab/p1", "n1", 7) + line("lab/p1", "n2", 0) + line("lab/p2", "n1", 3)
    )
    log = ScoreLog(path)
    assert log.take("lab/p1") == {"n1": 7, "n2": 0}
    assert log.take("lab/p1") == {}


def test_a_line_that_is_being_written_is_read_when_it_is_complete(tmp_path: Path) -> None:
    path, text = tmp_path / "log", line("lab/p1", "n1", 712)
    path.write_text(text[:-3])
    log = ScoreLog(path)
    assert log.take("lab/p1") == {}
    with path.open("a") as file:
        file.write(text[-3:])
    assert log.take("lab/p1") == {"n1": 712}


def test_a_large_log_is_emptied_and_read_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_log, "_BYTES_MOST", 10)
    path = tmp_path / "log"
    with path.open("a") as file:  # as kube-scheduler's: open for appending
        log = ScoreLog(path)
        for score in (1, 2):
            file.write(line("lab/p", "n", score))
            file.flush()
            assert log.take("lab/p") == {"n": score}
            assert path.stat().st_size == 0
