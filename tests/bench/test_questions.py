"""The bench of questions: what is asked, how often, and what is reckoned."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from eclectus_bench import __main__ as bench
from eclectus_bench.questions import ALONE, KINDS, QUESTIONS, READS, Run, ask, lines, paths
from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed import clusters


class Answers:
    """Answers with these statuses in turn, and remembers what was asked for."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.asked = statuses, list[str]()
        self.enough = asyncio.Event()

    async def request(self, method: str, path: str) -> bytes:
        status = self.statuses[len(self.asked)]
        self.asked.append(path)
        if len(self.asked) == len(self.statuses):
            self.enough.set()
        if status == 0:
            raise ConnectionError
        if status >= 400:
            raise ApiError(f"{method} {path}", status, "", "")
        return b""


def test_what_is_asked_goes_on_in_turn_whatever_is_answered() -> None:
    async def work() -> tuple[Answers, Counter[str]]:
        api, outcomes = Answers(200, 429, 503, 0, 200), Counter[str]()
        asking = asyncio.create_task(ask(api, ["a", "b"], outcomes, rate=1e6))  # type: ignore[arg-type]
        await api.enough.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return api, outcomes

    api, outcomes = asyncio.run(work())
    assert api.asked[:5] == ["a", "b", "a", "b", "a"]
    assert (outcomes["answered"], outcomes["refused"], outcomes["failed"]) == (2, 1, 2)


def test_alone_nothing_is_asked_and_reads_are_not_passed_on() -> None:
    assert paths(ALONE) == []
    assert not any("visibility" in path for path in paths(READS))
    assert all("visibility" in path for path in paths(QUESTIONS))


def run(kind: str, pair: int, p99: float) -> Run:
    outcomes = {"answered": 5, "refused": 100, "failed": 0}
    return Run(kind, pair, 0.01, p99, 0.25, outcomes)


def test_ratios_are_within_pairs() -> None:
    p99 = {ALONE: 1.0, READS: 1.1, QUESTIONS: 1.21}
    runs = [run(kind, pair, (pair + 1) * p99[kind]) for pair in (1, 0) for kind in KINDS]
    *_, over_alone, over_reads = lines(runs)
    assert over_alone == "  p99 beside questions over alone: 1.21 (1.21 to 1.21); wanted: at most 1.05"
    assert "over beside other reads: 1.10 (1.10 to 1.10)" in over_reads


@pytest.mark.live
def test_on_a_control_plane_most_questions_are_refused(
    output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if clusters.choice():
        pytest.skip("the bench builds its control plane itself")
    assert bench.main(["--quick", "--only", "questions"]) == 0
    found = {line.split("  ")[1]: line for line in capsys.readouterr().out.splitlines() if " p50 " in line}
    assert found.keys() == set(KINDS)
    assert "0 answered, 0 refused, 0 failed" in found[ALONE]
    assert " 0 refused" in found[READS]
    assert " 0 refused" not in found[QUESTIONS]
