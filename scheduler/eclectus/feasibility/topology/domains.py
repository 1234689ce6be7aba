"""Topology domains: the nodes that have an equal value of one label, numbered."""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT, Codes
from eclectus.cluster.nodes import Cluster

SEVERAL = -1  # rows, or none


class Domains:
    """The domain of every row, by one topology key. Rules share it, and each may refresh it.

    `of_row`: the number of the row's domain, `ABSENT` where there is no node or it lacks the label, shape
    [capacity]. `count`: numbers so far, some perhaps of domains without nodes. They keep their meaning while
    `generation` stays the same.
    """

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._cluster, self.key = cluster, key
        self._cursor = -1
        self.generation = 0
        self._only_row: list[int] = []  # of each domain: the row that is alone in it, or `SEVERAL`
        self._start_over()

    @property
    def count(self) -> int:
        """Numbers of domains in use, from 0."""
        return len(self._numbers)

    def rows_of(self, numbers: list[int]) -> Rows:
        """The rows of these domains, ascending."""
        if len(numbers) == 1:
            only = self._only_rows()[numbers[0]]
            return np.flatnonzero(self.of_row == numbers[0]) if only == SEVERAL else np.array([only])
        is_wanted = np.zeros(self.count + 1, dtype=bool)  # the last place: no domain
        is_wanted[numbers] = True
        return np.flatnonzero(is_wanted[self.of_row])

    def _only_rows(self) -> list[int]:
        """Kept while nodes stay the same: most keys are nodes, and each pod that counts asks for its own."""
        if not self._only_row:
            rows = np.flatnonzero(self.of_row != ABSENT)
            domains = self.of_row[rows]
            only = np.full(self.count, SEVERAL, dtype=np.intp)
            only[domains] = rows
            only[np.bincount(domains, minlength=self.count) != 1] = SEVERAL
            self._only_row = only.tolist()
        return self._only_row

    def refresh(self) -> None:
        """Look at the nodes that have changed since the last time."""
        shape = self._cluster.shape
        if self._cursor == shape.head:
            return
        changed = shape.since(self._cursor)
        # Numbers are never given back one by one, so values that come and go would need ever more.
        if changed is None or self.count > 2 * self._cluster.capacity:
            self._start_over()
            return
        self._cursor, self._only_row = shape.head, []
        for row in changed:
            value = self._cluster.labels.value(self.key, row)
            known = self._numbers
            self.of_row[row] = ABSENT if value is None else known.setdefault(value, len(known))

    def _start_over(self) -> None:
        labels = self._cluster.labels
        self._cursor, self.generation = self._cluster.shape.head, self.generation + 1
        self.of_row: Codes = labels.column(self.key).copy()
        self._numbers, self._only_row = dict(labels.codes(self.key)), []
