"""The distinct sets of taints of the nodes, by index. A set is dropped with its last node.

Autoscalers write times into the values of taints, so a cluster sees ever new sets but has few at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from eclectus.model.objects import Taint

NONE = 0  # index of the set without taints, which is always there


class TaintSets:
    """Sets by index; an index without nodes is used again."""

    def __init__(self) -> None:
        self._sets: list[tuple[Taint, ...]] = [()]
        self._nodes = [0]  # by index: how many nodes have the set
        self._index: dict[tuple[Taint, ...], int] = {(): NONE}
        self._free: list[int] = []
        self.sets: Sequence[tuple[Taint, ...]] = self._sets

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._sets, self._nodes, self._free = list(self._sets), list(self._nodes), list(self._free)
        self._index, self.sets = dict(self._index), self._sets
        return self

    def add(self, taints: tuple[Taint, ...]) -> int:
        """The index of the set, which one more node has."""
        index = self._index.get(taints)
        if index is None:
            index = self._index[taints] = self._new_index()
            self._sets[index] = taints
        self._nodes[index] += 1
        return index

    def remove(self, index: int) -> None:
        """One node less has the set."""
        self._nodes[index] -= 1
        if index != NONE and not self._nodes[index]:
            del self._index[self._sets[index]]
            self._sets[index] = ()
            self._free.append(index)

    def _new_index(self) -> int:
        if self._free:
            return self._free.pop()
        self._sets.append(())
        self._nodes.append(0)
        return len(self._sets) - 1
