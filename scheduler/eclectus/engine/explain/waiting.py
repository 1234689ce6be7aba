"""In which queue a pending pod is, why, and when it is examined next. Only reads the queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite

from msgspec.structs import replace

from eclectus.engine.explain.fit_errors import FitErrors
from eclectus.engine.explain.wait_reasons import (
    deferred,
    gang_message,
    having_room,
    in_node_queue,
    not_placed_yet,
    pods_ahead,
    withheld,
)
from eclectus.engine.places import PodPlace
from eclectus.engine.queues.class_queues import Queued
from eclectus.engine.state import State
from eclectus.feasibility.rules import unsupported
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.explanation import Waiting, WaitingState
from eclectus.model.objects import Task

NODES_MOST = 5  # named of those in whose queues it is


def state_of(state: State, task: Task) -> WaitingState:
    """Where a pod of `state.pending` waits whose bind is not under way."""
    place = state.places.of(task.uid)
    if place == "classQueue":
        return _state_in_class_queue(state, task.uid)
    if place is None or place == "assumed":
        raise LookupError(f"{task} does not wait")
    return _STATES[place]


def _state_in_class_queue(state: State, uid: str) -> WaitingState:
    queued = state.places.queued(uid)
    if withheld(state, uid) is not None:
        return "withheld"
    if queued is not None and queued.pending.unschedulable_since is not None:
        return "unschedulable"
    return "deferred" if uid in state.deferrals.rows else "active"


def waiting(state: State, task: Task, task_class: TaskClass, now: float) -> Waiting:
    """Why it waits there; its class must be up to date. `now` in seconds."""
    return _ANSWERS[state_of(state, task)](state, task, task_class.fits_now_count, now)


def _deleting(state: State, task: Task, with_room: int, now: float) -> Waiting:
    return Waiting("it is being deleted, so it is not placed any more")


def _gated(state: State, task: Task, with_room: int, now: float) -> Waiting:
    return Waiting(f"it has scheduling gates: {', '.join(task.gates)}", gates=task.gates)


def _backing_off(state: State, task: Task, with_room: int, now: float) -> Waiting:
    until = state.places.retry_at(task.uid)
    reason = "its last attempt failed, and it is tried again after a back-off"
    return Waiting(reason, next_check=None if until is None else max(until - now, 0.0))


def _in_gang(state: State, task: Task, with_room: int, now: float) -> Waiting:
    gang = state.gangs.of(task.uid)
    _, reason = gang_message(state, task.uid, FitErrors(state), partial(_fresh_class, state))
    backs_off = not gang.problem and gang.retry_at > now
    return Waiting(reason, next_check=gang.retry_at - now if backs_off else None)


def _fresh_class(state: State, task: Task) -> TaskClass:
    return TaskClass(state.cluster, task.spec, task.workload)


def _in_node_queue(state: State, task: Task, with_room: int, now: float) -> Waiting:
    reservation, names = state.places.reservation(task.uid), state.cluster.names
    if reservation is None:
        raise LookupError(f"{task} waits at no node")
    rows = list(dict.fromkeys(reservation.rows))
    return Waiting(
        in_node_queue(state, reservation),
        since=now - reservation.since,
        policy=str(state.profiles[task.profile].line),
        nodes=tuple(names[row] for row in rows[:NODES_MOST]),
        ahead=pods_ahead(state, reservation) if len(rows) == 1 else 0,
    )


# -- in class queues -------------------------------------------------------------------------------


def _queued(state: State, task: Task) -> Queued:
    found = state.places.queued(task.uid)
    if found is None:
        raise LookupError(f"{task} is in no class queue")
    return found


def _here(state: State, task: Task, reason: str) -> Waiting:
    """Its place in its class queue."""
    pending, queue, key, serial = _queued(state, task)
    return Waiting(
        reason,
        policy=str(state.profiles[task.profile].place),
        ahead=queue.ahead(key, serial),
        group=queue.group,
        class_pods=len(pending),
    )


def _withheld(state: State, task: Task, with_room: int, now: float) -> Waiting:
    answer = withheld(state, task.uid)
    reason = "" if answer is None else answer.reason.message
    return replace(
        _here(state, task, reason or "its Order keeps it from being offered to any node"),
        policy=str(state.profiles[task.profile].order),
        next_check=None if answer is None else _seconds_until(answer.until, now),
    )


def _unschedulable(state: State, task: Task, with_room: int, now: float) -> Waiting:
    pending = _queued(state, task).pending
    since = now - (now if pending.unschedulable_since is None else pending.unschedulable_since)
    found = replace(_here(state, task, pending.message), since=since)
    if found.reason:
        return found
    if with_room:
        reason = f"policy {found.policy} has refused it although {having_room(with_room)}"
        return replace(found, reason=reason)
    if task.spec.unsupported:
        reason = unsupported.message(task.spec)
    elif pending.never_feasible:
        reason = "no node, however empty, could run it"
    else:
        reason = "no node has room for it"
    return replace(found, reason=reason, policy="")


def _deferred(state: State, task: Task, with_room: int, now: float) -> Waiting:
    row, names = state.deferrals.row_of(task.uid), state.cluster.names
    reason = deferred(state, task, with_room)
    if not with_room:
        reason = "no node has room for it now" + ("" if row is None else f"; it waits for node {names[row]}")
    until = _queued(state, task).pending.until.get(task.uid)
    return replace(
        _here(state, task, reason),
        since=now - state.deferrals.since[task.uid],
        next_check=None if until is None else _seconds_until(until, now),
        nodes=() if row is None else (names[row],),
    )


def _active(state: State, task: Task, with_room: int, now: float) -> Waiting:
    if with_room:
        return _here(state, task, not_placed_yet(state, task, with_room))
    return _here(state, task, "its class is asked about in the next scheduling cycle")


def _seconds_until(at: float, now: float) -> float | None:
    return max(at - now, 0.0) if isfinite(at) else None


_STATES: Mapping[PodPlace, WaitingState] = {
    "deleting": "deleting",
    "gated": "gated",
    "gang": "gang",
    "lead": "gang",
    "backOff": "backOff",
    "nodeQueue": "nodeQueue",
}
"""Place -> state, where the place says all."""

_ANSWERS: Mapping[WaitingState, Callable[[State, Task, int, float], Waiting]] = {
    "deleting": _deleting,
    "gated": _gated,
    "gang": _in_gang,
    "backOff": _backing_off,
    "nodeQueue": _in_node_queue,
    "withheld": _withheld,
    "unschedulable": _unschedulable,
    "deferred": _deferred,
    "active": _active,
}
"""State -> `(state, task, with_room, now)`: why a pod waits; `with_room`: nodes that have room for it."""
