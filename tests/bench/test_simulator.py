"""The cost of a simulated task, measured with the simulator itself."""

import sys
from pathlib import Path

import pytest

from eclectus_bench import simulator
from eclectus_bench.simulator import SimulatorCost, count_bytecodes


@pytest.mark.long
def test_a_short_run_is_measured() -> None:
    cost = simulator.measure(3_000, counted=100)
    assert (cost.tasks, cost.microseconds) == (3_000, cost.seconds / 3_000 * 1e6)
    assert 500 < cost.bytecodes < 50_000
    assert 20 < cost.calls < cost.bytecodes / 10
    assert 0 < cost.early_mib <= cost.peak_mib


def test_the_target_is_judged_for_a_million_tasks() -> None:
    slow, fast = (SimulatorCost(10, 1, each, 5000.0, 150.0, 1, 1) for each in (61.0, 59.0))
    assert "MISSED" in simulator.lines(slow)[1]
    assert "MISSED" not in simulator.lines(fast)[1]


@pytest.mark.long
def test_a_profile_names_the_functions(tmp_path: Path) -> None:
    simulator.profile(tmp_path / "profile.txt", tasks=500, counted=100)
    text = (tmp_path / "profile.txt").read_text()
    assert "step" in text
    for part in set(simulator.PARTS.values()):
        assert f"{part} " in text
    assert "others'" not in text


def test_bytecodes_are_counted_by_function_and_tracing_ends() -> None:
    def thrice() -> list[int]:
        return [once(each) for each in range(3)]

    def once(number: int) -> int:
        return number + 1

    before = sys.gettrace()
    bytecodes, calls = count_bytecodes(thrice)
    assert calls[once.__code__] == 3
    assert bytecodes[once.__code__] % 3 == 0 < bytecodes[once.__code__]
    assert sys.gettrace() is before
