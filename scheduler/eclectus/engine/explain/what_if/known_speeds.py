"""A learner as it was after the last step, for policies that are asked between two steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from eclectus.cluster.scalars import read_only
from eclectus.framework import Completion, Learn, LearnedCell, Speeds
from eclectus.model.learned import LearnedNode


class KnownSpeeds(Learn):
    """The speeds that a learner knows; it learns nothing, and brings nothing of the learner up to date.

    `rows`: of the cluster, which may have more than the learner knows: those count as typical nodes. `like`:
    row of a node that was added -> row of the node that is as fast.
    """

    def __init__(self, learn: Learn, rows: int, like: Mapping[int, int]) -> None:
        self._learn, self._rows, self._like = learn, rows, like

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """Nothing to do."""

    def remove_node(self, row: int) -> None:
        """Nothing to do."""

    def observe(self, done: Completion) -> None:
        """Nothing to do."""

    def speeds(self, workload: str) -> Speeds:
        """Those that were computed last."""
        known = self._learn.known_speeds(workload)
        missing = max(self._rows - len(known.rate), 0)
        if not missing and not self._like:
            return known
        typical = float(known.rate.mean()) if len(known.rate) else 1.0
        rate = np.concatenate((known.rate, np.full(missing, typical)))
        for row, other in self._like.items():
            rate[row] = rate[other]
        return Speeds(read_only(rate), max(known.most, typical), known.epoch)

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """Those of the learner."""
        return self._learn.learned_cells(after)

    def learned_node(self, node: str) -> LearnedNode | None:
        """What the learner knows of it."""
        return self._learn.learned_node(node)
