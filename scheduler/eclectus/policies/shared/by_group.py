"""Class queues ordered by group: the group of least rank first, within it the queue with the first head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from eclectus.framework import ClassQueue
from eclectus.model.objects import Task

Rank = Callable[[ClassQueue, Task], tuple[float, ...]]
"""Rank of a group, smallest first. Called with the group's next class queue and the head of that queue."""

_Heap = list[tuple[tuple[float, ...], int, Task, ClassQueue]]
"""The class queues of one group: key of the head, number of the queue, head, queue."""


def queues_by_group(queues: Iterable[ClassQueue], rank: Rank) -> Iterator[ClassQueue]:
    """Yield the class queue whose head is next, in O(log queues) each.

    The rank of a group is computed again after each of its tasks, so it may depend on what this group was
    given. It must not depend on what other groups were given. Equal ranks are ordered by the heads' keys.
    """
    groups: dict[str, _Heap] = {}
    for number, queue in enumerate(queues):
        if (head := queue.head) is not None:
            groups.setdefault(queue.group, []).append((queue.head_key, number, head, queue))
    for heap in groups.values():
        heapify(heap)
    order = [_entry(heap, rank) for heap in groups.values()]
    heapify(order)
    while order:
        heap = heappop(order)[-1]
        _, number, _, queue = heappop(heap)
        yield queue
        if (head := queue.head) is not None:
            heappush(heap, (queue.head_key, number, head, queue))
        if heap:
            heappush(order, _entry(heap, rank))


def _entry(heap: _Heap, rank: Rank) -> tuple[tuple[float, ...], tuple[float, ...], int, _Heap]:
    key, number, head, queue = heap[0]
    return rank(queue, head), key, number, heap
