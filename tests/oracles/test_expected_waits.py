"""Estimated waits against outcomes, where the queue is known: M/M/c, batches, and scarce kinds of nodes.

Only waits of more than a second are estimated; service takes 20 s on average.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from eclectus.sim.runs import build_world
from short_scenarios import place, scenario

SIZE: dict[str, Any] = {"law": "exponential", "mean": 20.0}


def ratios(tasks: int, **fields: Any) -> dict[str, float]:
    """Observed over expected seconds by set of constraints, all pods of three runs together."""
    asked = scenario(profiles=place("central-queue"), measure={"tasks": tasks}, **fields)
    expected, observed = defaultdict[str, float](float), defaultdict[str, float](float)
    for seed in (1, 2, 3):
        world = build_world(asked, asked.profiles[0], seed)
        world.run(lambda record: True)
        counters = world.engine.queue_counts().counters
        for counted, seconds in (
            (expected, counters.expected_wait_seconds),
            (observed, counters.observed_wait_seconds),
        ):
            for (_, constraints), each in seconds.items():
                counted[constraints] += each
    assert expected
    return {name: observed[name] / seconds for name, seconds in expected.items()}


@pytest.mark.parametrize(
    ("load", "tasks_per_job"), [(0.8, 1), pytest.param(0.9, 1, marks=pytest.mark.slow), (0.8, 10)]
)
def test_the_mean_estimate_is_within_a_quarter_of_the_mean_outcome(load: float, tasks_per_job: int) -> None:
    workload = {"poisson": {"load": load, "classes": [{"size": SIZE, "tasksPerJob": tasks_per_job}]}}
    (found,) = ratios(4000, cluster={"groups": [{"count": 10}]}, workload=workload).values()
    assert 0.75 < found < 1.25


@pytest.mark.parametrize(("load", "share"), [(0.7, 0.25), (0.8, 0.15)])
def test_so_it_is_on_a_scarce_kind_of_node_and_for_those_who_may_run_elsewhere(
    load: float, share: float
) -> None:
    """A fifth of the nodes is arm, which this share of the jobs of ten tasks needs."""
    found = ratios(
        3000,
        cluster={
            "groups": [{"count": 20}],
            "machineTypes": {"types": [{"labels": {"isa": "arm"}}, {"labels": {}, "share": 4}]},
        },
        workload={
            "poisson": {
                "load": load,
                "classes": [{"size": SIZE, "tasksPerJob": 10}],
                "constraints": {
                    "share": share,
                    "sets": [{"frequency": 1, "nodeSelector": {"isa": "arm"}}],
                },
            }
        },
    )
    assert set(found) == {"any node", "isa=arm"}
    assert all(0.75 < ratio < 1.25 for ratio in found.values()), found


def test_so_it_is_for_sets_that_overlap() -> None:
    """A quarter of the nodes each is arm, has SSDs, both, neither; and so are the needs of the jobs."""
    arm, ssd = {"isa": "arm"}, {"disk": "ssd"}
    found = ratios(
        3000,
        cluster={
            "groups": [{"count": 20}],
            "machineTypes": {"types": [{"labels": labels} for labels in (arm, ssd, {**arm, **ssd}, {})]},
        },
        workload={
            "poisson": {
                "load": 0.8,
                "classes": [{"size": SIZE, "tasksPerJob": 10}],
                "constraints": {
                    "share": 0.75,
                    "sets": [{"frequency": 1, "nodeSelector": each} for each in (arm, ssd, {**arm, **ssd})],
                },
            }
        },
    )
    assert len(found) == 4
    assert all(0.75 < ratio < 1.25 for ratio in found.values()), found
