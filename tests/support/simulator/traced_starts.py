"""Whether the tasks of a run are conserved, by events and commands alone, not by the world's judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from eclectus.model.commands import Bind, Command
from eclectus.model.events import Event, TaskSeen
from eclectus.sim.runs import build_world
from eclectus.sim.scenario import Scenario
from eclectus.sim.world.world import World


def place_and_line(cut_off: float) -> dict[str, dict[str, Any]]:
    """Profiles by name: published policies for constrained jobs, without a limit on waits, and Phoenix."""
    cut = {"cutOff": cut_off}
    return {
        "sparrow-c": {"place": {"policy": "sparrow"}, "waitLimit": None},
        "hawk-c": {
            "place": {"policy": "hawk", **cut},
            "line": {"policy": "stealing", **cut},
            "waitLimit": None,
        },
        "eagle-c": {
            "place": {"policy": "eagle", **cut},
            "line": {"policy": "srpt", **cut},
            "waitLimit": None,
        },
        "eagle-c-crv": {
            "place": {"policy": "eagle", **cut},
            "line": {"policy": "phoenix", **cut},
            "waitLimit": None,
        },
        "phoenix": {"place": {"policy": "phoenix"}},
    }


def conserved(asked: Scenario, seed: int) -> World:
    """The world of the first profile after its run: each task started and ended once, where it may run."""
    world = build_world(asked, asked.profiles[0], seed)
    labels = {name: dict(machine.node.labels) for name, machine in world.machines.items()}
    selectors: dict[str, dict[str, str]] = {}
    starts, ends = Counter[str](), Counter[str]()

    def observe(now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        for event in events:
            if isinstance(event, TaskSeen):
                selectors.setdefault(event.task.uid, dict(event.task.spec.node_selector))
                ends[event.task.uid] += event.task.ended
        for command in commands:
            if isinstance(command, Bind):
                starts[command.uid] += 1
                assert selectors[command.uid].items() <= labels[command.node].items(), command

    world.on_step = observe
    assert world.run()
    assert set(starts.values()) == set(ends.values()) == {1}
    assert starts.keys() == ends.keys() == selectors.keys()
    wanted = Counter(job.work_class.spec.node_selector for job in asked.arrivals(seed) for _ in job.sizes)
    assert Counter(tuple(sorted(each.items())) for each in selectors.values()) == wanted
    return world
