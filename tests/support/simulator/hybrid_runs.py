"""Scenarios of short jobs beside long ones, and who waits behind whom in node queues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eclectus.engine.engine import Engine
from eclectus.model.objects import Reservation, Task
from eclectus.sim.scenario import Scenario
from short_scenarios import scenario

CUT_OFF = 4.0
CLASSES: dict[str, dict[str, Any]] = {
    "short": {"size": {"mean": 1}, "estimate": 1, "tasksPerJob": 12, "share": 10},
    "choosy": {
        "size": {"mean": 1},
        "estimate": 1,
        "nodeSelector": {"disk": "ssd"},
        "tasksPerJob": 5,
        "share": 5,
    },
    "long": {"tasksPerJob": 3, "share": 2},
}
CLUSTER = {
    "groups": [
        {
            "name": "ssd",
            "count": 12,
            "labels": {"disk": "ssd"},
        },  # the first rows, so that some run short tasks only
        {"name": "plain", "count": 24},
        {"name": "wide", "count": 4, "slots": 4},
    ]
}
SLOTS = 12 + 24 + 4 * 4


def mixed(
    place: str, line: str, tasks: int = 1500, long: float = 16.0, events: Any = None, **of_line: float
) -> Scenario:
    """Short and long jobs at about 80 % load; some short jobs may use a quarter of the machines only.

    `long`: size of the tasks of long jobs, seconds. `of_line`: settings of the Line policy.
    """
    partition = {"cutOff": CUT_OFF, "longShare": 0.8}
    profile = {
        "schedulerName": "it",
        "place": {"policy": place, **(partition if place != "sparrow" else {})},
        "line": {"policy": line, **_line_settings(line, partition), **of_line},
        "learn": {"policy": "none"},
    }
    classes = [{"name": name, **fields} for name, fields in CLASSES.items()]
    classes[-1] |= {"size": {"mean": long}, "estimate": long}
    work_of_a_task = (10 * 12 + 5 * 5 + 2 * 3 * long) / (10 * 12 + 5 * 5 + 2 * 3)
    return scenario(
        cluster=CLUSTER,
        workload={"poisson": {"rate": 0.8 * SLOTS / work_of_a_task, "classes": classes}},
        profiles=[profile],
        measure={"tasks": tasks},
        events=events,
    )


def _line_settings(line: str, partition: dict[str, float]) -> dict[str, float]:
    short = {"cutOff": CUT_OFF}
    return {"fifo": {}, "srpt": short, "phoenix": short, "stealing": partition}[line]


def is_long(task: Task) -> bool:
    """Whether it is above the cut-off."""
    return task.estimate is not None and task.estimate > CUT_OFF


def behind_long(engine: Engine, row: int) -> Iterator[Reservation]:
    """Short reservations in a node queue behind a long task, queued or running."""
    state = engine._state
    is_behind = any(is_long(task) for task, _ in state.placed.on_row(row))
    for reservation in state.node_queues.by_row.get(row, ()):
        if is_long(reservation.head):
            is_behind = True
        elif is_behind:
            yield reservation
