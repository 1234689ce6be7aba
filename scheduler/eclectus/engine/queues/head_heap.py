"""Class queues by what their heads are worth, without looking at all of them: a heap that follows changes.

An entry is void once its queue has another one. Void entries are dropped when they come up, or when they are
more than half of the heap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any

from eclectus.accounts.group_shares import prefixes
from eclectus.cluster.changelog import ChangeLog
from eclectus.engine.queues.class_queue import SortedClassQueue
from eclectus.framework import Withheld

Value = tuple[Any, ...]
_Entry = tuple[Value, int, SortedClassQueue]  # value, serial of the entry, queue


class HeadHeap:
    """Class queues by a value of their heads, smallest first; `value` is asked once for each change."""

    def __init__(self, value: Callable[[SortedClassQueue], Any], queues: Iterable[SortedClassQueue]) -> None:
        self.value = value
        self._touched = dict.fromkeys(queues)  # without a valid entry; a dict as an ordered set
        self._entries: dict[SortedClassQueue, _Entry] = {}  # the valid ones
        self._heap: list[_Entry] = []
        self._serial = 0

    def touch(self, queue: SortedClassQueue) -> None:
        """The queue is new, or the value of its head may have changed."""
        self._touched[queue] = None

    def discard(self, queue: SortedClassQueue) -> None:
        """The queue is gone."""
        self._touched.pop(queue, None)
        self._entries.pop(queue, None)

    def refresh(self) -> None:
        """Ask for the values of the queues that were touched. If that raises, nothing has changed."""
        self._ask(list(self._touched))

    def _ask(self, queues: Sequence[SortedClassQueue]) -> None:
        values = [self.value(queue) for queue in queues]
        for value, queue in zip(values, queues, strict=True):
            self._keep(value, queue)
            self._touched.pop(queue, None)
        if len(self._heap) > 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def _keep(self, value: Any, queue: SortedClassQueue) -> None:
        self._serial += 1
        entry = self._entries[queue] = (value, self._serial, queue)
        heappush(self._heap, entry)

    def first(self) -> Value | None:
        """The smallest value as of the last `refresh`; None without any."""
        heap = self._heap
        while heap and self._entries.get(heap[0][2]) is not heap[0]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop(self) -> tuple[Value, SortedClassQueue] | None:
        """The smallest value and its queue, which is left out until the next `refresh`; None without any."""
        if self.first() is None:
            return None
        value, _, queue = heappop(self._heap)
        del self._entries[queue]
        self.touch(queue)
        return value, queue


class RankedHeads(HeadHeap):
    """A heap of values that depend on accounts of groups too; `logs` tell which groups have changed.

    A queue of which the Order withholds the head has no entry, but is in `withheld`.
    """

    def __init__(
        self,
        value: Callable[[SortedClassQueue], Value | Withheld],
        queues: Mapping[str, SortedClassQueue],
        logs: Sequence[ChangeLog[str]],
        *,
        by_path: bool = False,
    ) -> None:
        """`by_path`: groups are paths, and a rank also depends on the accounts of their prefixes."""
        super().__init__(value, ())
        self._by_path = by_path
        self._queues, self._logs = queues, logs  # `queues`: by group
        self._cursors = [log.head for log in logs]
        # By each prefix of a group that is a path: the queues below it.
        self._below: dict[str, dict[SortedClassQueue, None]] = {}
        self._withheld: dict[SortedClassQueue, Withheld] = {}
        self.withheld: Mapping[SortedClassQueue, Withheld] = self._withheld
        self.touch_all()

    def touch(self, queue: SortedClassQueue) -> None:
        """The queue is new, or the value of its head may have changed."""
        super().touch(queue)
        if self._by_path:
            for prefix in prefixes(queue.group):
                self._below.setdefault(prefix, {})[queue] = None

    def discard(self, queue: SortedClassQueue) -> None:
        """The queue is gone."""
        super().discard(queue)
        self._withheld.pop(queue, None)
        for prefix in prefixes(queue.group) if self._by_path else ():
            below = self._below.get(prefix, {})
            below.pop(queue, None)
            if not below:
                self._below.pop(prefix, None)

    def touch_all(self) -> None:
        """All values may have changed."""
        for queue in self._queues.values():
            self.touch(queue)

    def touch_due(self, now: float) -> None:
        """The values of those that are withheld until now may have changed."""
        for queue, withheld in self._withheld.items():
            if withheld.until <= now:
                self.touch(queue)

    @property
    def next_until(self) -> float:
        """When the first of those that are withheld is to be asked about again, seconds; inf for never."""
        return min((withheld.until for withheld in self._withheld.values()), default=inf)

    def refresh(self) -> None:
        """Ask for the values of the queues that were touched, and of groups that have changed."""
        for queue in self._changed():
            self.touch(queue)
        super().refresh()

    def refresh_changed(self) -> bool:
        """Within a cycle: ask for the values of groups that have changed, and of no others.

        Returns whether there are any. Queues of which all tasks have been taken have no head.
        """
        changed = [queue for queue in self._changed() if queue.head is not None]
        self._ask(changed)
        return bool(changed)

    def _changed(self) -> list[SortedClassQueue]:
        """The queues of groups that have changed since the last call, and of groups below such."""
        found: dict[SortedClassQueue, None] = {}
        for at, log in enumerate(self._logs):
            if log.head != self._cursors[at]:
                changed = log.since(self._cursors[at])
                self._cursors[at] = log.head
                for group in self._queues if changed is None else changed:
                    if (queue := self._queues.get(group)) is not None:
                        found[queue] = None
                    if self._below:
                        found.update(self._below.get(group, {}))
        return list(found)

    def _keep(self, value: Value | Withheld, queue: SortedClassQueue) -> None:
        self._withheld.pop(queue, None)
        if isinstance(value, Withheld):
            self._withheld[queue] = value
            self._entries.pop(queue, None)
        else:
            super()._keep(value, queue)
