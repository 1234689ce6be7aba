"""Which workloads are learned: a fair share of the places for each namespace, in it the most frequent ones.

The worth of a workload is the weight of its samples, which fades as they age. A workload without a place is
counted too, and its samples are dropped. It gets a free place at once. If there is none, it takes the place
of the least worth

- of the namespace that holds the most, if its own namespace holds at least two less: so a namespace loses
  places to others only beyond its fair share;
- or else of its own namespace (if that holds none: of those that hold the most), once it is worth REPLACES
  times as much. Without that factor, more workloads than places that come in turn would replace each other,
  and none would ever be learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from eclectus.model.workload_names import namespace_of

REPLACES = 2.0  # times the worth: above 1 by what a sample loses between two that come in turn


class Kinds:
    """The workloads with a place, and as many candidates."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._worth: dict[str, float] = {}
        self._candidates: dict[str, float] = {}  # their worth; shared out in the same way
        self._held = Counter[str]()  # places by namespace

    def __contains__(self, workload: str) -> bool:
        return workload in self._worth

    def add(self, workload: str, weight: float) -> str | None:
        """Count samples of this weight; returns the workload that has lost its place to this one, if any."""
        if workload in self._worth:
            self._worth[workload] += weight
            return None
        worth = self._candidates.pop(workload, 0.0) + weight
        loser = self._loser(workload, worth)
        if loser == workload:
            self._keep_candidate(workload, worth)
            return None
        if loser is not None:
            del self._worth[loser]
            self._held -= Counter((namespace_of(loser),))  # drops what is 0
        self._worth[workload] = worth
        self._held[namespace_of(workload)] += 1
        return loser

    def fade(self, share: float) -> None:
        """Multiply all worths by this."""
        for worth in (self._worth, self._candidates):
            for workload in worth:
                worth[workload] *= share

    def _loser(self, workload: str, worth: float) -> str | None:
        """Who gets no place if this workload comes; None while one is free."""
        if len(self._worth) < self._places:
            return None
        own = namespace_of(workload)
        most = max(self._held.values())
        if not self._held[own] or most > self._held[own] + 1:
            found = self._least(space for space, held in self._held.items() if held == most)
        else:
            found = self._least([own])
        is_unfair = most > self._held[own] + 1
        return found if is_unfair or worth > REPLACES * self._worth[found] else workload

    def _least(self, namespaces: Iterable[str]) -> str:
        """The workload of least worth in these namespaces, of equal ones the first by name."""
        among = frozenset(namespaces)
        return min(
            (each for each in self._worth if namespace_of(each) in among),
            key=lambda each: (self._worth[each], each),
        )

    def _keep_candidate(self, workload: str, worth: float) -> None:
        """Remember it; beyond the bound the namespace with the most candidates loses its least one."""
        self._candidates[workload] = worth
        if len(self._candidates) > self._places:
            held = Counter(map(namespace_of, self._candidates))
            most = max(held.values())
            crowded = [each for each in self._candidates if held[namespace_of(each)] == most]
            del self._candidates[min(crowded, key=lambda each: (self._candidates[each], each))]
