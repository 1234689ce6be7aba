"""What parts of Rosella contribute, in short runs; scenarios/ablations.yaml measures all of them."""

from __future__ import annotations

from typing import Any

import pytest

from eclectus.sim.scenario import load, shipped_scenarios
from learner_harness import School
from short_scenarios import runs, scenario

SPECIALISTS = {
    "groups": [
        {"name": "old", "count": 3, "slots": 2, "speed": 1, "speeds": {"render": 6}},
        {"name": "new", "count": 3, "slots": 2, "speed": 6, "speeds": {"render": 1}},
    ]
}


def test_one_rate_for_each_node_is_the_same_for_all_workloads() -> None:
    by_workload, by_node = School(), School(by="node")  # type: ignore[arg-type]
    for school in (by_workload, by_node):
        for turn in range(200):
            for row in range(10):
                is_good_at = (row < 5) == (turn % 2 == 0)
                school.end(row, 1.0 if is_good_at else 8.0, f"w{turn % 2}", after=0.1)
    assert by_workload.rate("w0")[0] == pytest.approx(8 * by_workload.rate("w1")[0], rel=0.1)
    assert by_node.rate("w0").tolist() == by_node.rate("w1").tolist()
    assert by_node.rate("w0") == pytest.approx(by_node.rate("w0")[0], rel=0.1)
    assert {cell.workload for cell in by_node.learn.learned_cells()} == {""}


def mean_response(learn: dict[str, Any]) -> float:
    classes = [{"name": "web", "size": {"mean": 2}}, {"name": "render", "size": {"mean": 2}}]
    asked = scenario(
        cluster=SPECIALISTS,
        workload={"poisson": {"rate": 9, "classes": classes}},
        profiles=[{"schedulerName": "it", "learn": {"policy": "rosella", **learn}}],
        probes={"perHour": 3600, "leastPerHour": 360},
        measure={"tasks": 1500},
    )
    (one,) = runs(asked, [1])
    return one.response.mean


def test_where_workloads_rank_nodes_differently_one_rate_for_each_node_is_worse() -> None:
    assert mean_response({"by": "node"}) > 2 * mean_response({})


def test_the_shipped_ablations_disable_one_part_each() -> None:
    """Otherwise a row of the table would show the effect of two parts."""
    contestants = {each.name: each for each in load(shipped_scenarios()["ablations"]).profiles}
    whole = contestants["whole"]
    assert whole.probes is not None
    assert contestants["no-probes"].probes is None
    assert contestants["no-probes"].learn == whole.learn
    for name in ("no-alarm", "no-doubt", "one-rate"):
        assert contestants[name].probes == whole.probes
        assert len(contestants[name].learn.items() - whole.learn.items()) == 1
