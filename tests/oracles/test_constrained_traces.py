"""Conservation where the jobs of a recorded trace draw constraints, under every policy that Phoenix is
compared with: each task starts and ends once, on a node with its labels, and the work done is the trace's.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from eclectus.sim.scenario import Scenario, load, shipped_scenarios
from short_scenarios import near
from traced_starts import conserved

SCENARIO = shipped_scenarios()["constrained-trace"]
UNCONSTRAINED = "workload.jobtrace.constraints=null"
NAMES = ("phoenix", "eagle-crv", "eagle", "hawk", "sparrow")
SEEDS = 1, 2


def under(name: str, *changes: str) -> Scenario:
    """With this profile alone, and without delay: else a run ends before the last reports arrive."""
    asked = load(SCENARIO, ("measure.warmUp=0", "cluster.networkDelay=0s", *changes))
    return replace(asked, profiles=tuple(each for each in asked.profiles if each.name == name))


def test_these_are_the_policies_of_the_scenario() -> None:
    assert tuple(each.name for each in load(SCENARIO).profiles) == NAMES


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("what", "changes"), [("with", ()), ("without", (UNCONSTRAINED,))])
def test_tasks_and_work_of_the_trace_are_conserved(name: str, what: str, changes: tuple[str, ...]) -> None:
    """Nodes are equal: slot-seconds in use are seconds of work, whatever waits for what."""
    asked = under(name, *changes)
    work = sum(sum(job.sizes) for job in asked.arrivals(1))
    worlds = [conserved(asked, seed) for seed in SEEDS]
    assert {world.record.arrived for world in worlds} == {asked.plan.tasks}
    done = [sum(machine.busy_seconds for machine in world.machines.values()) for world in worlds]
    assert near(f"trace {what} constraints, {name}: seconds of work done", done, work, 1e-9)
