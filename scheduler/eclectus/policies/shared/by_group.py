"""Turns by group: the group of least rank goes first, and within it the lane with the first head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from eclectus.framework import ClassQueue
from eclectus.model.objects import Task

Rank = Callable[[ClassQueue, Task], tuple[float, ...]]
"""Rank of a group, by the lane in it that is next and that lane's head; smallest first."""

_Waiting = list[
    tuple[tuple[float, ...], int, Task, ClassQueue]
]  # a heap: key of the head, number, head, lane


def turns_by_group(lanes: Iterable[ClassQueue], rank: Rank) -> Iterator[ClassQueue]:
    """Merge the lanes, O(log lanes) a turn.

    A group is ranked again after each turn it has had, so a rank may depend on what the group was just
    given; it must not depend on what others were given. Equal ranks go by the keys of the heads.
    """
    groups: dict[str, _Waiting] = {}
    for number, lane in enumerate(lanes):
        if (head := lane.head) is not None:
            groups.setdefault(lane.group, []).append((lane.head_key, number, head, lane))
    for waiting in groups.values():
        heapify(waiting)
    order = [_entry(waiting, rank) for waiting in groups.values()]
    heapify(order)
    while order:
        waiting = heappop(order)[-1]
        _, number, _, lane = heappop(waiting)
        yield lane
        if (head := lane.head) is not None:
            heappush(waiting, (lane.head_key, number, head, lane))
        if waiting:
            heappush(order, _entry(waiting, rank))


def _entry(waiting: _Waiting, rank: Rank) -> tuple[tuple[float, ...], tuple[float, ...], int, _Waiting]:
    key, number, head, lane = waiting[0]
    return rank(lane, head), key, number, waiting
