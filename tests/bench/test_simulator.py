"""What a simulated task costs is measured by a run of the real thing."""

from pathlib import Path

from eclectus_bench import simulator
from eclectus_bench.simulator import SimulatorCost


def test_a_short_run_is_measured() -> None:
    cost = simulator.measure(3_000)
    assert (cost.tasks, cost.microseconds) == (3_000, cost.seconds / 3_000 * 1e6)
    assert 0 < cost.early_mib <= cost.peak_mib


def test_the_target_is_judged_for_a_million_tasks() -> None:
    slow, fast = SimulatorCost(10, 1, 61.0, 1, 1), SimulatorCost(10, 1, 59.0, 1, 1)
    assert "MISSED" in simulator.lines(slow)[1]
    assert "MISSED" not in simulator.lines(fast)[1]


def test_a_profile_names_the_functions(tmp_path: Path) -> None:
    simulator.profile(tmp_path / "profile.txt", tasks=500)
    assert "step" in (tmp_path / "profile.txt").read_text()
