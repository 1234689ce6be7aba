"""The machines on which the laws are measured: half of them twice as fast as the others, one slot each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from eclectus.api.names import API_VERSION
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import parse
from eclectus.sim.world.world import World

FAST = 2.0
MEAN_SPEED = (1.0 + FAST) / 2.0
TASK_SECONDS = 0.1  # on a slow machine, in the mean: the times of the pages are multiples of it


def world(
    nodes: int, load: float, profile: Mapping[str, Any], measure: Mapping[str, Any], seed: int
) -> World:
    """A world that has not started."""
    half = nodes // 2
    groups = [{"name": "slow", "count": half}, {"name": "fast", "count": nodes - half, "speed": FAST}]
    document = {
        "apiVersion": API_VERSION,
        "kind": "Scenario",
        "about": "Half of the machines are twice as fast as the others.",
        "cluster": {"groups": groups},
        "workload": {
            "poisson": {"load": load, "classes": [{"name": "task", "size": {"mean": TASK_SECONDS}}]}
        },
        "profiles": [{"schedulerName": "it", "waitLimit": None, **profile}],
        "measure": {"groups": [], **measure},
    }
    scenario = parse(yaml.safe_dump(document))
    return build_world(scenario, scenario.profiles[0], seed)
