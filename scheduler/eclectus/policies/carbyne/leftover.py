"""How well tasks fill what is left over: Tetris' alignment, for `leftover: srtf-packing` and `packing`.

The dot product of a task's demand and what is free, both as parts of the capacity (Grandl and others, SIGCOMM
2014). Scores are of what was free when that last changed by more than `LEAST_CHANGE`: with each change all
tasks that wait for what is left over are ranked anew, which not every bind should cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LEAST_CHANGE = 0.25  # of what is free of a resource


class LeftOver:
    """What is free of each resource, as parts of the capacity, and the groups that were ranked by it."""

    def __init__(self) -> None:
        self._free: tuple[float, ...] = ()
        self._groups: dict[str, None] = {}

    def update(self, held: Sequence[float], capacity: Sequence[float]) -> Iterable[str]:
        """The groups that have other ranks now. `held`: by all pods, of each resource that nodes offer."""
        free = tuple(max(1.0 - used / most, 0.0) for used, most in zip(held, capacity, strict=True))
        before = self._free
        if len(free) == len(before) and all(
            abs(now - then) <= LEAST_CHANGE * then for now, then in zip(free, before, strict=True)
        ):
            return ()
        self._free = free
        ranked, self._groups = self._groups, {}
        return ranked

    def alignment(self, group: str, demand: Sequence[float], capacity: Sequence[float]) -> float:
        """Of a task of a group, which is ranked by it."""
        self._groups[group] = None
        parts = zip(demand, self._free, capacity, strict=True)
        return sum([amount / most * free for amount, free, most in parts])
