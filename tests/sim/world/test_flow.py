"""Flow problems in the simulator: answered at once, by our own solver, so that a run can be repeated."""

from __future__ import annotations

from typing import Any

from checked_worlds import build_checked
from eclectus.model.commands import Solve
from eclectus.model.events import Solved
from short_scenarios import place, poisson, runs, scenario

NODES = {"groups": [{"count": 4, "speed": 1.0, "slots": 2}, {"count": 2, "speed": 3.0, "slots": 2}]}
WORLD = scenario(
    cluster=NODES, workload=poisson(0.7), profiles=place("quincy", interval=0.05), measure={"tasks": 300}
)


def test_every_task_is_run_and_runs_repeat() -> None:
    first, again = (runs(WORLD, [1], checked=True)[0] for _ in range(2))
    assert first == again


def test_a_problem_is_answered_at_the_time_at_which_it_is_asked() -> None:
    built = build_checked(WORLD, WORLD.profiles[0], 1)
    asked, answered = dict[int, float](), dict[int, float]()

    def note(now: float, events: Any, commands: Any) -> None:
        asked.update((each.serial, now) for each in commands if isinstance(each, Solve))
        answered.update((each.serial, now) for each in events if isinstance(each, Solved))

    built.on_step = note
    assert built.run()
    assert not built.fault_count, built.first_fault
    assert len(answered) > 100
    assert answered.items() <= asked.items()
