"""Learn nothing: every node is as fast as any other. What ordinary schedulers assume; the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eclectus.framework import Completion, Learn, LearnedCell, Speeds


@dataclass(eq=False)
class Unlearned(Learn):
    """Equal speeds."""

    def __post_init__(self) -> None:
        self._speeds = Speeds(np.ones(0), 1.0, 0)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """Keep the array as long as the cluster's."""
        if len(self._speeds.rate) < capacity:
            self._speeds = Speeds(np.ones(capacity), 1.0, self._speeds.epoch + 1)

    def remove_node(self, row: int) -> None:
        """Nothing was known."""

    def observe(self, done: Completion) -> None:
        """Nothing is learned."""

    def speeds(self, workload: str) -> Speeds:
        """One task a second everywhere."""
        return self._speeds

    def learned_cells(self) -> Iterator[LearnedCell]:
        """Nothing."""
        return iter(())
