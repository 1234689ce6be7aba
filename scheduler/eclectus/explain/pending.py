"""Which pods wait, each in one line: where, why, since when, and behind how many others.

Of a list no pod may cost what an explanation does. So no node is looked at: where the reason depends on
nodes, it is that of the last report on the pod, which may be some minutes old.
"""

from collections.abc import Iterator
from heapq import nsmallest

from eclectus.engine import reports
from eclectus.engine.state import State
from eclectus.explain.pod import (
    NEXT_CYCLE,
    NODES_MOST,
    NOT_OFFERED,
    age_of,
    here,
    state_of,
    waiting_whatever_nodes,
)
from eclectus.model.explanation import Listed, Oldest, PendingPod, Waiting, WaitingState
from eclectus.model.objects import Reservation, Task

NO_REPORT = {
    "active": NEXT_CYCLE,
    "withheld": NOT_OFFERED,
    "deferred": "a policy lets it wait for a busy node",
    "unschedulable": "no node has room for it",
    "gang": "it starts together with the other pods of its group",
    "nodeQueue": "it is in the queue of a node",
}
"""What is said in states whose reason depends on nodes, before the first report."""


def pending_pods(
    state: State, namespace: str, after: Oldest | None, most: int, now: float
) -> Listed[PendingPod, Oldest]:
    """So many of the pods that wait in a namespace, or in all; `now` in seconds. O(pods that wait).

    `after`: only pods that come after it. A pod that is being deleted or bound does not wait. A page of 500
    of 20,000 pods that wait takes some 30 ms.
    """
    assumed = state.placed.assumed
    keys = [
        (task.created, task.namespace, task.name, task.uid)
        for uid, task in state.pending.items()
        if (not namespace or task.namespace == namespace) and not task.deleting and uid not in assumed
    ]
    if after is not None:
        keys = [key for key in keys if key[:3] > after]
    shown = nsmallest(most, keys)
    positions = _Positions(state)
    pods = tuple(_line(state, state.pending[uid], positions, now) for *_, uid in shown)
    return Listed(pods, len(keys) - len(shown), Oldest(*shown[-1][:3]) if shown else None)


class _Positions:
    """How many pods are before one in the queue of a node; every queue is counted once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._ahead: dict[int, dict[Reservation, int]] = {}  # by row

    def ahead(self, reservation: Reservation) -> int | None:
        """Before this one in the queue of its node; None if it is in those of several."""
        row = reservation.rows[0]
        if any(each != row for each in reservation.rows):
            return None
        if row not in self._ahead:
            self._ahead[row] = dict(self._counted(row))
        return self._ahead[row].get(reservation)

    def _counted(self, row: int) -> Iterator[tuple[Reservation, int]]:
        before = 0
        for each in self._state.node_queues.by_row[row]:
            yield each, before
            before += len(each.tasks)


def _line(state: State, task: Task, positions: _Positions, now: float) -> PendingPod:
    where = state_of(state, task)
    waits = waiting_whatever_nodes(state, task, where, now) or Waiting(_reported(state, task, where))
    ahead, nodes = None, waits.nodes
    reservation, queued = state.places.reservation(task.uid), state.places.queued(task.uid)
    if reservation is not None:
        ahead = positions.ahead(reservation)
        nodes = tuple(state.cluster.names[row] for row in dict.fromkeys(reservation.rows))[:NODES_MOST]
    elif queued is not None and where != "gang":
        waits = here(state, task, waits.reason)
        ahead = waits.ahead
    return PendingPod(
        namespace=task.namespace,
        name=task.name,
        uid=task.uid,
        scheduler_name=task.profile,
        state=where,
        reason=waits.reason,
        priority=task.priority,
        created=task.created or None,
        age=age_of(task, now),
        since=_since(state, task, where, reservation, now),
        ahead=ahead,
        group=waits.group,
        nodes=nodes,
    )


def _reported(state: State, task: Task, where: WaitingState) -> str:
    """Why it waits where nodes would have to be looked at: in a policy's words, or as it was reported."""
    queued = state.places.queued(task.uid)
    if where == "unschedulable" and queued is not None and queued.pending.message:
        return queued.pending.message
    if where == "withheld" and (wait := reports.withheld(state, task.uid)) is not None:
        return wait.reason.message or NO_REPORT[where]
    last = state.reports.last(task.uid)
    return (task.reported if last is None else last[0]) or NO_REPORT[where]


def _since(
    state: State, task: Task, where: WaitingState, reservation: Reservation | None, now: float
) -> float | None:
    at: float | None = None
    if reservation is not None:
        at = reservation.since
    elif where == "unschedulable" and (queued := state.places.queued(task.uid)) is not None:
        at = queued.pending.unschedulable_since
    elif where == "deferred":
        at = state.deferrals.since[task.uid]
    return None if at is None else max(now - at, 0.0)
