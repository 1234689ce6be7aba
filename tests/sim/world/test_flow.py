"""Flow problems in the simulator: answered at once, by our own solver, so that a run can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner

from checked_worlds import build_checked
from eclectus.cli.main import program
from eclectus.model.commands import Solve
from eclectus.model.events import Solved
from eclectus.sim.runs import run
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


CLASSES = [
    {"name": "short", "share": 8, "tasksPerJob": 2, "size": {"mean": "2s"}, "restartable": True},
    {"name": "long", "share": 1, "tasksPerJob": 16, "size": {"mean": "20s"}, "restartable": True},
]
PREEMPTING = scenario(
    cluster=NODES,
    workload={"poisson": {"load": 0.8, "classes": CLASSES}},
    profiles=place(
        "quincy", costs="quincy", interval=0.2, fairShare=True, running="preempt", minRuntime=1, minGain=1
    ),
    measure={"tasks": 150},
)


def test_tasks_that_are_ended_for_others_begin_anew_and_all_end() -> None:
    first, again = (runs(PREEMPTING, [1], checked=True)[0] for _ in range(2))
    assert first == again
    assert first.evictions
    assert (first.faults, first.dropped, first.complete) == (0, 0, True)


def test_a_tape_of_a_run_that_ends_tasks_is_decided_again_as_it_was(tmp_path: Path) -> None:
    recorded = run(PREEMPTING, PREEMPTING.profiles[0], 2, tape=tmp_path / "tape")
    assert recorded.evictions
    assert "all equal" in CliRunner().invoke(program, ["replay", str(tmp_path / "tape")]).output
