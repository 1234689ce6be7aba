"""Class queues by what their heads are worth, without looking at all of them: a heap that follows changes.

An entry is void once its queue has another one. Void entries are dropped when they come up, or when they are
more than half of the heap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from eclectus.cluster.changelog import ChangeLog
from eclectus.engine.queues.class_queue import SortedClassQueue

Value = tuple[Any, ...]
_Entry = tuple[Value, int, SortedClassQueue]  # value, serial of the entry, queue


class HeadHeap:
    """Class queues by a value of their heads, smallest first; `value` is asked once for each change."""

    def __init__(
        self, value: Callable[[SortedClassQueue], Value], queues: Iterable[SortedClassQueue]
    ) -> None:
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
        values = [self.value(queue) for queue in self._touched]
        for value, queue in zip(values, self._touched, strict=True):
            self._serial += 1
            entry = self._entries[queue] = (value, self._serial, queue)
            heappush(self._heap, entry)
        self._touched.clear()
        if len(self._heap) > 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapify(self._heap)

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
    """A heap of values that depend on accounts of groups too; `logs` tell which groups have changed."""

    def __init__(
        self,
        value: Callable[[SortedClassQueue], Value],
        queues: Mapping[str, SortedClassQueue],
        logs: Sequence[ChangeLog[str]],
    ) -> None:
        super().__init__(value, queues.values())
        self._queues, self._logs = queues, logs  # `queues`: by group
        self._cursors = [log.head for log in logs]

    def touch_all(self) -> None:
        """All values may have changed."""
        for queue in self._queues.values():
            self.touch(queue)

    def refresh(self) -> None:
        """Ask for the values of the queues that were touched, and of groups that have changed."""
        for at, log in enumerate(self._logs):
            if log.head != self._cursors[at]:
                changed = log.since(self._cursors[at])
                self._cursors[at] = log.head
                for group in self._queues if changed is None else changed:
                    if (queue := self._queues.get(group)) is not None:
                        self.touch(queue)
        super().refresh()
