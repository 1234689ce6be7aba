"""What placement is told: learned rates times the share of them that is believed.

A silent node is believed slower (watch.py). And a node is believed slower at work it has never done than its
speed at other work says: kinds of work may rank nodes differently, a task that finds that out is a slow one,
and there are nodes known to be good at it. A node of which nothing at all is known still counts as typical;
and a cell whose samples were given up has been tried, and what it has become is worth finding out.
"""

from __future__ import annotations

import numpy as np

from eclectus.framework import Speeds
from eclectus.maths.estimators.ratio import NEGLIGIBLE, Floats, RatioMatrix
from eclectus.policies.rosella.learn.liveness import Liveness


class EffectiveRates:
    """Arrays over nodes, of all work and of each kind; between two fits single rows change in place."""

    def __init__(self, matrix: RatioMatrix, watch: Liveness, untried_share: float) -> None:
        self._matrix, self._liveness, self._untried_share = matrix, watch, untried_share
        self._rate: Floats = np.ones((1, 0))  # of all work, then of each workload
        self._speeds: dict[str, Speeds] = {}
        self._epoch, self._most = 0, 1.0

    @property
    def rows(self) -> int:
        """Length of the arrays."""
        return len(self._rate[0])

    def speeds(self, workload: str, index: int | None) -> Speeds:
        """Of the workload with that index in the matrix; without one, what nodes are worth for all work."""
        found = self._speeds.get(workload)
        if found is None:
            rate = self._rate[0 if index is None else index + 1]
            found = self._speeds[workload] = Speeds(rate, self._most, self._epoch)
        return found

    def rebuild(self) -> None:
        """Everything may have changed."""
        self._rate = np.vstack([self._matrix.factor, self._discounted(slice(None))]) * self._liveness.share
        self._most = float(self._rate.max(initial=0.0)) or 1.0
        self._epoch += 1
        self._speeds.clear()

    def update_row(self, row: int) -> None:
        """One node has changed."""
        share = self._liveness.share[row]
        self._rate[0, row] = self._matrix.factor[row] * share
        self._rate[1:, row] = self._discounted(slice(row, row + 1))[:, 0] * share
        self._raise_bound(float(self._rate[:, row].max()))

    def update_cell(self, workload: int, row: int) -> None:
        """One node that is fully believed has shown something at one kind of work."""
        factor, rate = self._matrix.factor.item(row), self._matrix.rate.item(workload, row)
        self._rate[0, row], self._rate[workload + 1, row] = factor, rate
        self._raise_bound(max(factor, rate))

    def _discounted(self, rows: slice) -> Floats:
        """Rates of all work on these rows, those that are guesses taken down; shape [C, rows]."""
        matrix = self._matrix
        is_seen = np.array(matrix.is_sized, dtype=bool)[:, None]  # work that nobody has done is new to all
        is_guess = ~matrix.tried[:, rows] & is_seen & (matrix.samples[rows] > NEGLIGIBLE)
        return np.where(is_guess, self._untried_share, 1.0) * matrix.rate[:, rows]

    def _raise_bound(self, rate: float) -> None:
        """Keep `most` above all that is said of a row that has changed."""
        if rate > self._most:
            self._most = rate
            self._speeds.clear()
