"""Which class queue is next in one scheduling cycle: the group of least rank, in it the queue of least key.

Each active class keeps its queues in a heap that follows changes (head_heap.py). The least of their entries
is a lower bound for every group not met yet, because a group's rank is that of the first of its queues. So a
cycle costs what it offers and what has changed, not how many groups wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from eclectus.cluster.changelog import ChangeLog
from eclectus.engine.queues.class_queue import SortedClassQueue
from eclectus.engine.queues.head_heap import RankedHeads, Value
from eclectus.engine.queues.pending_class import GroupIndex, PendingClass
from eclectus.framework import Order, View
from eclectus.framework.job_work import JobWork

Found = tuple[PendingClass, SortedClassQueue]
_Heap = list[tuple[tuple[float, ...], int, PendingClass, SortedClassQueue]]
"""The queues of one group: key of the head, serial of the queue, class, queue."""


class CycleOrder:
    """The class queues of one profile in the Order's order. Every method may raise what the Order raises."""

    def __init__(
        self,
        order: Order,
        view: View,
        classes: Iterable[PendingClass],
        groups: GroupIndex | None,
        accounts: Sequence[ChangeLog[str]],
    ) -> None:
        """`groups`: None if all are equal. `accounts`: tell which groups' ranks may have changed."""
        self._order, self._view, self._groups, self._accounts = order, view, groups, accounts
        self._classes = dict.fromkeys(classes)
        # Rank, key of the head, serial of the queue; then False and a class and its queue, for a queue of a
        # group not met yet; or True and a group that was met.
        self._heap: list[tuple[Any, ...]] = []
        self._met: dict[str, _Heap] = {}
        self._last: tuple[str, PendingClass, SortedClassQueue, bool] | None = None
        if groups is None:
            self._meet("", ((each, queue) for each in self._classes for queue in each.queues.values()))
            return
        for pending in self._classes:
            ranks = self._ranks(pending)
            if order.traits.ranks_by_time:
                ranks.touch_all()
            ranks.refresh()
            self._push_next_of(pending)

    def next(self, *, again: bool = True) -> Found | None:
        """The class queue whose head is next; None when there is none.

        The answer to the last head is in force by then. `again`: the queue takes part again afterwards.
        """
        self._put_back()
        while self._heap:
            *_, is_met, found = heappop(self._heap)
            if not is_met:
                pending, queue = found
                self._push_next_of(pending)
                if queue.group not in self._met:
                    self._meet(queue.group, self._queues_of(queue.group))
                continue
            _, _, pending, queue = heappop(self._met[found])
            self._last = found, pending, queue, again
            if not pending.is_closed:
                return pending, queue
            self._put_back()
        return None

    def _put_back(self) -> None:
        """The group of the last answer takes part again, with the head that it has now."""
        if self._last is not None:
            group, pending, queue, again = self._last
            self._last = None
            if again and not pending.is_closed and queue.head is not None:
                heappush(self._met[group], (queue.head_key, queue.serial, pending, queue))
            self._push_group(group)

    # -- groups that were met ----------------------------------------------------------------------

    def _meet(self, group: str, queues: Iterable[Found]) -> None:
        heap = [
            (queue.head_key, queue.serial, pending, queue)
            for pending, queue in queues
            if queue.head is not None
        ]
        heapify(heap)
        self._met[group] = heap
        self._push_group(group)

    def _queues_of(self, group: str) -> Iterable[Found]:
        """The queues of a group in the classes of this cycle, refused ones included: each counts in turn."""
        found = (self._groups or {}).get(group, {})
        if len(found) < len(self._classes):
            return ((pending, queue) for pending, queue in found.items() if pending in self._classes)
        return (
            (pending, queue) for pending in self._classes if (queue := pending.queues.get(group)) is not None
        )

    def _push_group(self, group: str) -> None:
        heap = self._met[group]
        if heap:
            value = _value_of_head(self._order, self._view, heap[0][-1])
            heappush(self._heap, (*value, True, group))

    # -- classes -----------------------------------------------------------------------------------

    def _ranks(self, pending: PendingClass) -> RankedHeads:
        return pending.ranks(partial(_value_of_head, self._order, self._view), self._accounts)

    def _push_next_of(self, pending: PendingClass) -> None:
        """Push the first queue of the class whose group was not met yet."""
        while not pending.is_closed and (found := self._ranks(pending).pop()) is not None:
            value, queue = found
            if queue.group not in self._met:
                heappush(self._heap, (*value, False, (pending, queue)))
                return


def accounts_of(order: Order, view: View, job_work: JobWork | None) -> list[ChangeLog[str]]:
    """What tells which groups' ranks may have changed."""
    accounts = []
    if order.counted_by is not None:
        accounts.append(view.shares(order).changes)
    if order.wants_work and job_work is not None:
        accounts.append(job_work.changes)
    return accounts


def _value_of_head(order: Order, view: View, queue: SortedClassQueue) -> Value:
    """The rank of the queue's group if the queue is the first of it, then what decides among equal ranks."""
    key, _, head = queue.entries[queue.cursor]
    return tuple(order.rank(view, queue.group, head)), key, queue.serial
