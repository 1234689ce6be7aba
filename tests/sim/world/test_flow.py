"""Flow problems in the simulator: answered at once, by our own solver, so that a run can be repeated."""

from __future__ import annotations

from eclectus.model.commands import Solve
from eclectus.model.events import Solved
from short_scenarios import place, poisson, runs, scenario

NODES = {"groups": [{"count": 4, "speed": 1.0, "slots": 2}, {"count": 2, "speed": 3.0, "slots": 2}]}


def test_every_task_is_run_and_runs_repeat() -> None:
    world = scenario(
        cluster=NODES, workload=poisson(0.7), profiles=place("quincy", interval=0.05), measure={"tasks": 300}
    )
    first, again = (runs(world, [1], checked=True)[0] for _ in range(2))
    assert first == again


def test_a_problem_is_answered_in_the_next_step() -> None:
    assert Solve.__struct_fields__[0] == Solved.__struct_fields__[0] == "serial"
