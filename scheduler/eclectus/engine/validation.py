"""Validation: what an action must be before the engine puts it in force. Changes nothing.

A policy is a plug-in, so nothing is taken for granted, not even that an action names a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eclectus.engine.queues.pending_class import PendingClass
from eclectus.engine.state import State
from eclectus.framework import Action, Defer, Enqueue, Place, Reason, ReserveMany, Unschedulable
from eclectus.model.errors import PolicyError
from eclectus.model.objects import DEVICE_MILLI, Task, amount_of

_INTEGERS = (int, np.integer)

Offered = Mapping[str, tuple[Task, PendingClass]]


def validate(state: State, offered: Offered, action: Action) -> None:
    """Raise PolicyError if the action must not be put in force."""
    validate_type = _VALIDATORS.get(type(action))
    if validate_type is None:
        raise PolicyError(f"{action!r} is not an action a Place policy may answer with")
    validate_type(state, offered, action)


def _validate_place(state: State, offered: Offered, place: Place) -> None:
    task, row, devices = place.task, place.row, place.devices
    _validate_offered(offered, task)
    if not state.view.task_class(task).scalars.fits_now[validate_row(state, task, row)]:
        raise PolicyError(f"{task} does not fit on node {state.cluster.names[row]} now")
    if not isinstance(devices, tuple) or devices:
        _validate_devices(state, task, row, devices)


def _validate_defer(state: State, offered: Offered, defer: Defer) -> None:
    task, row, until = defer.task, defer.row, defer.until
    _validate_offered(offered, task)
    if not state.view.task_class(task).scalars.feasible[validate_row(state, task, row)]:
        raise PolicyError(f"node {state.cluster.names[row]} may never run {task}")
    if not until > state.now:  # nan too; a time in the past would be a busy loop
        raise PolicyError(f"{task} cannot be deferred until {until}: it is {state.now} now")


def _validate_enqueue(state: State, offered: Offered, enqueue: Enqueue) -> None:
    _validate_offered(offered, enqueue.task)
    _validate_wait(state, enqueue.task, enqueue.row)


def _validate_unschedulable(state: State, offered: Offered, unschedulable: Unschedulable) -> None:
    task, reason = unschedulable.task, unschedulable.reason
    _validate_offered(offered, task)
    if not isinstance(reason, Reason):
        raise PolicyError(f"{reason!r} is no Reason for {task}")


def _validate_reserve_many(state: State, offered: Offered, reserve: ReserveMany) -> None:
    if not reserve.tasks or not reserve.rows:
        raise PolicyError(f"reservations need tasks and rows, not {reserve!r}")
    first = reserve.tasks[0]
    for task in reserve.tasks:
        _validate_offered(offered, task)
        if (task.spec, task.workload, task.profile) != (first.spec, first.workload, first.profile):
            raise PolicyError(f"{first} and {task} behind one reservation are not of one class and profile")
    if len({task.uid for task in reserve.tasks}) < len(reserve.tasks):
        raise PolicyError(f"a task is named twice behind the reservation of {first}")
    for row in set(reserve.rows):
        _validate_wait(state, first, row)


def validate_task(task: object) -> Task:
    """The task. Raises PolicyError if it is something else."""
    if not isinstance(task, Task):
        raise PolicyError(f"{task!r} is no task")
    return task


def _validate_offered(offered: Offered, task: object) -> None:
    task = validate_task(task)
    at_hand = offered.get(task.uid)
    if at_hand is None or (at_hand[0] is not task and at_hand[0] != task):
        raise PolicyError(f"{task} was not offered in this scheduling cycle, or is answered already")


def _validate_wait(state: State, task: Task, row: int) -> None:
    if not state.view.classes.cached((task.spec, task.workload)).may_wait(validate_row(state, task, row)):
        raise PolicyError(f"node {state.cluster.names[row]} may never run {task}, or services fill it")


def _validate_devices(state: State, task: Task, row: int, devices: tuple[int, ...]) -> None:
    if not isinstance(devices, tuple) or not all(isinstance(device, int) for device in devices):
        raise PolicyError(f"{devices!r} are no devices for {task}")
    node_devices, milli = state.cluster.devices, amount_of(task.spec.requests, DEVICE_MILLI)
    if node_devices is None or not node_devices.admits(row, milli, devices):
        name = state.cluster.names[row]
        raise PolicyError(f"devices {devices!r} of node {name} have no room for the {milli} of {task}")


def validate_row(state: State, task: Task, row: object) -> int:
    """The row as a plain number. Raises PolicyError if there is no node in it."""
    if isinstance(row, bool) or not isinstance(row, _INTEGERS):
        raise PolicyError(f"{row!r} is no row for {task}")
    row = int(row)
    names = state.cluster.names
    if not 0 <= row < len(names) or not names[row]:
        raise PolicyError(f"there is no node in row {row} for {task}")
    return row


_VALIDATORS: Mapping[type, Callable[[State, Offered, Any], None]] = {
    Place: _validate_place,
    Defer: _validate_defer,
    Enqueue: _validate_enqueue,
    ReserveMany: _validate_reserve_many,
    Unschedulable: _validate_unschedulable,
}
