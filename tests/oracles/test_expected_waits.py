"""Estimated waits against outcomes, where the queue is known: M/M/c.

Only waits of more than a second are estimated; service takes 20 s on average.
"""

from __future__ import annotations

from typing import Any

import pytest

from eclectus.sim.run import build_world
from simulated import place, poisson, scenario

SIZE: dict[str, Any] = {"law": "exponential", "mean": 20.0}


def ratio(tasks: int, **fields: Any) -> float:
    """Observed over expected seconds, all pods of three runs together."""
    asked = scenario(profiles=place("central-queue"), measure={"tasks": tasks}, **fields)
    expected = observed = 0.0
    for seed in (1, 2, 3):
        world, _ = build_world(asked, asked.profiles[0], seed)
        world.run(lambda record: True)
        counters = world.engine.queue_counts().counters
        expected += sum(counters.expected_wait_seconds.values())
        observed += sum(counters.observed_wait_seconds.values())
    assert expected > 0
    return observed / expected


@pytest.mark.parametrize("load", [0.8, 0.9])
def test_the_mean_estimate_is_within_a_quarter_of_the_mean_outcome(load: float) -> None:
    found = ratio(4000, cluster={"groups": [{"count": 10}]}, workload=poisson(load, SIZE))
    assert 0.75 < found < 1.25
