"""Speeds from service times: the size-aware ratio estimator, for a matrix of work by node.

The model (rosella.md 5.6, 9.4): a task of workload c on node i takes S = m_c / (f_i a_ic) on average,
with m_c the workload's size in reference seconds, f_i the node's speed for all work, a_ic what is
special about the pair. From n_ic samples that took S_ic seconds in all,

    rate_ic = (k + n_ic) / (k m_c / f_i + S_ic)                     tasks a second in one slot
    f_i     = (k + sum_c n_ic) / (k + sum_c S_ic / m_c)             expected over actual time
    m_c     = sum_i S_ic f_i / sum_i n_ic                           siblings, brought to reference speed

so a cell without samples is node factor over size, and every sample moves it from there to the ratio
estimate. k is the weight of that prior, in samples. f is scaled to a geometric mean of 1 over nodes
with samples; only ratios matter to placement. m and f depend on each other: alternating sweeps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SWEEPS = 3  # alternations a refresh; they start from the last refresh and so need no more


class RatioMatrix:
    """Counts, sums and rates of C workloads by N rows; rows and workloads are opened as they come."""

    def __init__(self, prior_samples: float, rows: int = 0) -> None:
        self.prior_samples = prior_samples
        self.count: Floats = np.zeros((0, rows))
        self.seconds: Floats = np.zeros((0, rows))
        self.size: Floats = np.zeros(0)  # m, reference seconds
        self.factor: Floats = np.ones(rows)  # f
        self.rate: Floats = np.zeros((0, rows))

    def open_rows(self, rows: int) -> None:
        """Make room for rows up to `rows`; new ones know nothing."""
        missing = rows - self.count.shape[1]
        if missing > 0:
            self.count = np.pad(self.count, ((0, 0), (0, missing)))
            self.seconds = np.pad(self.seconds, ((0, 0), (0, missing)))
            self.factor = np.pad(self.factor, (0, missing), constant_values=1.0)
            self.rate = np.pad(self.rate, ((0, 0), (0, missing)))
            self._rate_all()

    def open_workload(self) -> int:
        """A workload nothing is known of, of the size of a typical one; returns its index."""
        known = self.size[self.count.sum(axis=1) > 0]
        size = float(np.exp(np.log(known).mean())) if len(known) else 1.0
        self.count = np.pad(self.count, ((0, 1), (0, 0)))
        self.seconds = np.pad(self.seconds, ((0, 1), (0, 0)))
        self.size = np.append(self.size, size)
        self.rate = np.vstack([self.rate, self.factor / size])
        return len(self.size) - 1

    def clear_workload(self, workload: int) -> None:
        """Forget what was learned of a workload; its place may serve another."""
        self.count[workload] = self.seconds[workload] = 0
        self._rate_all()

    def clear_row(self, row: int) -> None:
        """Forget what was learned of a row."""
        self.count[:, row] = self.seconds[:, row] = 0
        self.factor[row] = 1.0
        self._rate_row(row)

    def add(self, workload: int, row: int, count: int, seconds: float) -> bool:
        """Take in samples (or, with count < 0, take old ones out) and mend the row's rates.

        The first samples of a workload say its size, which mends its rates on every row: then True.
        """
        self.count[workload, row] += count
        self.seconds[workload, row] = max(0.0, self.seconds[workload, row] + seconds)
        is_first = bool(self.count[workload].sum() == count)
        if is_first:  # its size is what it took here
            self.size[workload] = seconds / count * self.factor[row]
        k = self.prior_samples
        spent = float((self.seconds[:, row] / self.size).sum())
        self.factor[row] = (k + self.count[:, row].sum()) / (k + spent)
        self._rate_row(row)
        if is_first:
            self.rate[workload] = self._rated(
                self.count[workload], self.size[workload], self.seconds[workload]
            )
        return is_first

    def refresh(self) -> None:
        """Fit sizes and node factors to all samples and mend every rate: O(C N)."""
        k = self.prior_samples
        samples = self.count.sum(axis=1)
        seen = samples > 0
        known = self.count.sum(axis=0) > 0
        if not known.any():
            return
        for _ in range(SWEEPS):
            spent = (self.seconds / self.size[:, None]).sum(axis=0)
            self.factor = (k + self.count.sum(axis=0)) / (k + spent)
            self.factor /= np.exp(np.log(self.factor[known]).mean())
            self.factor[~known] = 1.0
            self.size[seen] = (self.seconds[seen] @ self.factor) / samples[seen]
        self._rate_all()

    def _rate_all(self) -> None:
        self.rate = self._rated(self.count, self.size[:, None], self.seconds)

    def _rate_row(self, row: int) -> None:
        k = self.prior_samples
        prior_seconds = k * self.size / self.factor[row]
        self.rate[:, row] = (k + self.count[:, row]) / (prior_seconds + self.seconds[:, row])

    def _rated(self, count: Floats, size: Floats, seconds: Floats) -> Floats:
        """Rates of whole workloads: `count` and `seconds` over all rows."""
        k = self.prior_samples
        rated: Floats = (k + count) / (k * size / self.factor + seconds)
        return rated
