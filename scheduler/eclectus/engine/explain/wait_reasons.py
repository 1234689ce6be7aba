"""What a pod waits for by the decision of a policy, or with others, for reports and explanations."""

from __future__ import annotations

from collections.abc import Callable

from eclectus.engine.explain.fit_errors import FitErrors
from eclectus.engine.gangs import WaitingGang
from eclectus.engine.state import ReportReason, State
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Withheld
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation


def in_node_queue(state: State, reservation: Reservation) -> str:
    """In whose queue a pod waits, and behind how many others."""
    nodes = len(set(reservation.rows))  # a node drawn twice has two reservations
    if nodes == 1:
        name = state.cluster.names[reservation.rows[0]]
        return f"in the queue of node {name}, {pods_ahead(state, reservation)} pods ahead"
    return f"in the queues of {nodes} nodes, for {len(reservation.tasks)} pods of its job"


def pods_ahead(state: State, reservation: Reservation) -> int:
    """How many pods the queue of the reservation's first node has before it."""
    queue = state.node_queues.by_row[reservation.rows[0]]
    return sum(len(each.tasks) for each in queue[: queue.index(reservation)])


def deferred(state: State, task: Task, with_room: int) -> str:
    """What a deferred pod waits for, although some nodes have room."""
    row, sooner = state.deferrals.row_of(task.uid), "expected to end sooner there than on any of"
    if row is not None:
        name = state.cluster.names[row]
        return f"waiting for node {name}: {sooner} {with_room} nodes with room"
    if task.spec.preferences:
        return f"waiting for a node that meets its preferences: {sooner} {with_room} nodes with room"
    return f"waiting for a node other than the {with_room} with room, which others need"


def withheld(state: State, uid: str) -> Withheld | None:
    """What its Order has answered where it withholds a pod; None where it does not."""
    queued = state.places.queued(uid)
    return None if queued is None else queued.pending.withheld(queued.queue)


def having_room(count: int) -> str:
    """`1 node has room`, `2 nodes have room`."""
    return "1 node has room" if count == 1 else f"{count} nodes have room"


def not_placed_yet(state: State, task: Task, with_room: int) -> str:
    """A pod that no policy has answered otherwise."""
    place = state.profiles[task.profile].place
    return f"waiting although {having_room(with_room)}: policy {place} has not placed it yet"


def gang_message(
    state: State, uid: str, fit_errors: FitErrors, class_of: Callable[[Task], TaskClass]
) -> tuple[ReportReason, str]:
    """Why the gang of a pod that waits in it has not started. O(nodes) where one of its pods fits nowhere.

    No other pod is named: who may read one pod of a group need not be allowed to read the others.
    """
    gang = state.gangs.of(uid)
    problem = gang.problem
    if problem:
        return "SchedulerError" if gang.asks_too_much else "WaitingForGang", problem
    together = f"{gang.needed} pods that {'still ' if gang.placed else ''}start together"
    if _is_lead_refused(state, gang) and gang.lead is not None:
        why = fit_errors.message(gang.lead, class_of(gang.lead))
        return "Unschedulable", f"{gang.key}: no room for the {together}; for one of them: {why}"
    if gang.failure is None:
        return "WaitingForGang", f"{gang.key}: waiting for the turn of the {together}"
    placed, needed, why, is_beside_room = gang.failure
    reason: ReportReason = "WaitingForNode" if is_beside_room else "Unschedulable"
    room = f"room for {placed} of the {needed} pods that start together"
    return reason, f"{gang.key}: {room}; for another: {why}"


def _is_lead_refused(state: State, gang: WaitingGang) -> bool:
    queued = None if gang.lead is None else state.places.queued(gang.lead.uid)
    return queued is not None and queued.pending.unschedulable_since is not None
