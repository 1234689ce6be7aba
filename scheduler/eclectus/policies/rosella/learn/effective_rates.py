"""Effective rates: what placement uses of one namespace's learned rates.

They are multiplied by a share for silence (liveness.py). A node also counts as slower for a workload that it
has never run than its speed for other workloads suggests: workloads may rank nodes differently, a task that
finds this out runs long, and other nodes are known to be good at it. Two cases are exempt: a node without any
samples counts as typical, and so does a cell whose samples were dropped, since it was tried and its present
speed must be found out. What other namespaces have learned of the nodes is a prior
(maths/estimators/of_nodes.py): it enters here alone, so that it changes nothing of what is learned.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.scalars import read_only
from eclectus.framework import Speeds
from eclectus.maths.estimators.ratio import NEGLIGIBLE, RatioMatrix
from eclectus.maths.numbers import Floats


class EffectiveRates:
    """Rates by node, for all workloads together and for each; between two fits single rows are updated."""

    def __init__(self, matrix: RatioMatrix, untried_share: float) -> None:
        self._matrix, self._untried_share = matrix, untried_share
        self._rate: Floats = np.ones((1, 0))  # row 0: all workloads together; then one row for each workload
        self._prior: Floats | None = None  # of the nodes' speeds, from other namespaces
        self._speeds: dict[int | None, Speeds] = {}
        self._epoch, self._most = 0, 1.0

    @property
    def rows(self) -> int:
        """Length of the arrays."""
        return len(self._rate[0])

    def speeds(self, index: int | None) -> Speeds:
        """Rates of the workload with this index in the matrix; for None, of all workloads together."""
        found = self._speeds.get(index)
        if found is None:
            rate = self._rate[0 if index is None else index + 1]
            found = self._speeds[index] = Speeds(read_only(rate), self._most, self._epoch)
        return found

    def rebuild(self, share: Floats, prior: Floats | None, epoch: int) -> None:
        """Compute all rates again. `share` and `prior` have shape [rows]; without others it is None."""
        self._prior, self._epoch = prior, epoch
        factor, rate = self._believed(slice(None))
        if self._rate.shape != (shape := (len(rate) + 1, len(factor))):
            self._rate = np.empty(shape)
        self._rate[0] = factor  # in place: fresh memory would take most of the time
        np.multiply(self._discounts(slice(None)), rate, out=self._rate[1:])
        self._rate *= share
        self._most = float(self._rate.max(initial=0.0)) or 1.0
        self._speeds.clear()

    def update_row(self, row: int, share: float) -> None:
        """Compute the rates of one node again."""
        rows = slice(row, row + 1)
        factor, rate = self._believed(rows)
        self._rate[0, row] = factor[0] * share
        self._rate[1:, row] = self._discounts(rows)[:, 0] * rate[:, 0] * share
        self._raise_bound(float(self._rate[:, row].max()))

    def update_cell(self, workload: int, row: int) -> None:
        """Compute the rate of one cell again, of a node whose share is 1."""
        if self._prior is None:
            factor, rate = self._matrix.factor.item(row), self._matrix.rate.item(workload, row)
        else:
            factors, rates = self._believed(slice(row, row + 1))
            factor, rate = factors.item(0), rates.item(workload, 0)
        self._rate[0, row], self._rate[workload + 1, row] = factor, rate
        self._raise_bound(max(factor, rate))

    def _believed(self, rows: slice) -> tuple[Floats, Floats]:
        """Speeds and rates of these rows, with what others know of them."""
        matrix = self._matrix
        if self._prior is None:
            return matrix.factor[rows], matrix.rate[:, rows]
        speed = matrix.speed_given(self._prior, rows)
        return speed, matrix.rate_given(speed, rows)

    def _discounts(self, rows: slice) -> Floats:
        """What the rates of all workloads on these rows are multiplied by: less than 1 where untried."""
        matrix = self._matrix
        is_known = np.array(matrix.is_sized, dtype=bool)[
            :, None
        ]  # a workload that no node has run gives no node an advantage
        is_untried = ~matrix.tried[:, rows] & is_known & (matrix.samples[rows] > NEGLIGIBLE)
        return np.where(is_untried, self._untried_share, 1.0)

    def _raise_bound(self, rate: float) -> None:
        """Keep `most` an upper bound of all rates after an update."""
        if rate > self._most:
            self._most = rate
            self._speeds.clear()
