"""When keys are due: a heap of (time, rank, key), in which entries that were replaced are void."""

from collections.abc import Hashable, Mapping
from heapq import heapify, heappop, heappush
from math import inf
from operator import itemgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
SPARE = 16  # void entries that are always allowed


class DueTimes(Generic[K]):
    """Keys by when they are due.

    The rank decides among keys that are due at the same time. By default it is the order in which keys became
    due, and a key that is due already keeps its rank.
    """

    def __init__(self) -> None:
        self._valid: dict[K, tuple[float, Any]] = {}
        self.keys: Mapping[K, object] = self._valid
        self._heap: list[tuple[float, Any, K]] = []
        self._serial = 0

    def at(self, key: K) -> float | None:
        """When a key is due, seconds; None if it is not."""
        found = self._valid.get(key)
        return None if found is None else found[0]

    def set(self, key: K, when: float, rank: Any = None) -> None:
        """Make the key due at this time, instead of the time at which it was."""
        before = self._valid.get(key)
        if rank is None:
            self._serial += 1
            rank = self._serial if before is None else before[1]
        if before != (when, rank):
            self._valid[key] = (when, rank)
            heappush(self._heap, (when, rank, key))
            if len(self._heap) > 2 * len(self._valid) + SPARE:
                self._rebuild()

    def discard(self, key: K) -> bool:
        """Forget the key; returns whether it was due."""
        is_due = self._valid.pop(key, None) is not None
        if is_due and not self._valid:
            self._heap.clear()  # `next_due`, which drops void entries, need not be asked while none is due
        return is_due

    def next_due(self) -> float:
        """When the first key is due, seconds; inf for never."""
        heap = self._heap
        while heap:
            when, rank, key = heap[0]
            if self._valid.get(key) == (when, rank):
                return when
            heappop(heap)
        return inf

    def take(self) -> tuple[Any, K]:
        """Take out the key that `next_due` has found; returns its rank too."""
        _, rank, key = heappop(self._heap)
        del self._valid[key]
        return rank, key

    def take_due(self, now: float, *, by_rank: bool = False) -> list[K]:
        """Take out the keys that are due now, in order of their times or of their ranks."""
        due: list[tuple[Any, K]] = []
        while self.next_due() <= now:
            due.append(self.take())
        if by_rank:
            due.sort(key=itemgetter(0))
        return [key for _, key in due]

    def no_later_than(self, latest: float) -> None:
        """Make every key due at this time at the latest."""
        valid = self._valid
        valid.update({key: (min(when, latest), rank) for key, (when, rank) in valid.items()})
        self._rebuild()

    def _rebuild(self) -> None:
        self._heap[:] = [(when, rank, key) for key, (when, rank) in self._valid.items()]
        heapify(self._heap)


class DueInTurns:
    """Keys of namespaces by when they are due: those that are due are taken of each namespace in turn.

    So who has many delays nobody else's. Of a namespace those come first that are due for longest. The order
    follows from due times alone: a namespace of which a key was left for later is among the first next time,
    since nothing is due for longer.
    """

    def __init__(self) -> None:
        self._by_namespace: dict[str, DueTimes[str]] = {}
        self._turns = DueTimes[str]()  # namespaces, by their first pods

    def set(self, namespace: str, key: str, when: float) -> None:
        """Make a key due at this time, instead of the time at which it was."""
        found = self._by_namespace.get(namespace)
        if found is None:
            found = self._by_namespace[namespace] = DueTimes[str]()
        found.set(key, when)
        self._turns.set(namespace, found.next_due())

    def discard(self, namespace: str, key: str) -> None:
        """Forget a key."""
        found = self._by_namespace.get(namespace)
        if found is not None and found.discard(key):
            self._renew(namespace, found)

    def next_due(self) -> float:
        """When the first one is due, seconds; inf for never."""
        return self._turns.next_due()

    def take(self, now: float, most: int) -> list[str]:
        """Take out so many of the keys that are due: one of each namespace, then another one of each."""
        waiting, taken = self._turns.take_due(now), list[str]()
        served = list(waiting)
        while waiting and len(taken) < most:
            waiting = waiting[: most - len(taken)]
            taken += [self._by_namespace[each].take()[1] for each in waiting]
            waiting = [each for each in waiting if self._by_namespace[each].next_due() <= now]
        for namespace in served:
            self._renew(namespace, self._by_namespace[namespace])
        return taken

    def _renew(self, namespace: str, of_it: DueTimes[str]) -> None:
        first = of_it.next_due()
        if first < inf:
            self._turns.set(namespace, first)
        else:
            self._turns.discard(namespace)
            del self._by_namespace[namespace]
