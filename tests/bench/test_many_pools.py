"""What many Pools cost: the tree that is made, and how the pairs are shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from eclectus_bench.course.sizes import FULL
from eclectus_bench.many_pools import Pair, lines, teams, tree


def test_there_are_a_thousand_pools_of_three_levels() -> None:
    departments = FULL.pools.departments
    pools = {each["metadata"]["name"]: each["spec"] for each in tree(departments, "x")}
    assert len(pools) == 1_000
    parents = {spec["parent"] for spec in pools.values() if "parent" in spec}
    assert parents < pools.keys()
    leaves = teams(departments)
    assert len(leaves) == 900
    assert not parents & set(leaves)
    assert all(pools[name]["namespaces"] == {"names": ["x"]} for name in leaves)


def test_the_mean_of_the_ratios_is_held_against_the_target() -> None:
    def run(pods_a_second: float) -> Any:
        return SimpleNamespace(pods_per_second=pods_a_second, scheduler_cpu_ms=1.0)

    met, _ = lines([Pair(run(95.0), run(100.0)), Pair(run(80.0), run(100.0)), Pair(run(99.0), run(100.0))])
    assert "ratio 0.91 (0.69 to 1.20) of 3 pairs, target >= 0.9 met" in met
    missed, _ = lines([Pair(run(80.0), run(100.0))])
    assert missed.endswith("missed")
