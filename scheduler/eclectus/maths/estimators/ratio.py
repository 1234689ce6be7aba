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

Samples fade: one of age t weighs 2^(-t / half_life), in n and in S alike. So a node that nobody has used
for long returns to what is usual, and is tried again. Only m_c stays, being a ratio of two that fade.
"""

from __future__ import annotations

from math import erf, inf, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
SWEEPS = 3  # alternations a refresh; they start from the last refresh and so need no more
NEGLIGIBLE = 1e-6  # of a sample: less than that is none
TOLERANCE = 1.0 / 3.0  # error of a rate that placement bears at any load (rosella.md 4.4)


class RatioMatrix:
    """Counts, sums and rates of C workloads by N rows; rows and workloads are opened as they come."""

    def __init__(self, prior_samples: float, rows: int = 0, half_life: float = inf) -> None:
        self.prior_samples, self.half_life = prior_samples, half_life
        self.count: Floats = np.zeros((0, rows))  # in whole samples of age 0
        self.seconds: Floats = np.zeros((0, rows))
        self.size: Floats = np.zeros(0)  # m, reference seconds
        self.factor: Floats = np.ones(rows)  # f
        self.rate: Floats = np.zeros((0, rows))
        self.tried: Marks = np.zeros((0, rows), dtype=bool)  # whether a cell has ever had a sample
        self.samples: Floats = np.zeros(rows)  # of all work
        self._spent: Floats = np.zeros(rows)  # sum over workloads of seconds over size
        self.is_sized: list[bool] = []  # whether a workload's samples have ever said its size
        self._weighed_at = 0.0  # the time at which samples weigh what count and seconds say

    def open_rows(self, rows: int) -> None:
        """Make room for rows up to `rows`; new ones know nothing."""
        missing = rows - self.count.shape[1]
        if missing > 0:
            self.count = np.pad(self.count, ((0, 0), (0, missing)))
            self.seconds = np.pad(self.seconds, ((0, 0), (0, missing)))
            self.tried = np.pad(self.tried, ((0, 0), (0, missing)))
            self.factor = np.pad(self.factor, (0, missing), constant_values=1.0)
            self.samples = np.pad(self.samples, (0, missing))
            self._spent = np.pad(self._spent, (0, missing))
            unknown = np.tile(1.0 / self.size[:, None], missing)
            self.rate = np.hstack([self.rate, unknown])

    def open_workload(self) -> int:
        """A workload nothing is known of, of the size of a typical one; returns its index."""
        self.count = np.pad(self.count, ((0, 1), (0, 0)))
        self.seconds = np.pad(self.seconds, ((0, 1), (0, 0)))
        self.tried = np.pad(self.tried, ((0, 1), (0, 0)))
        self.size = np.append(self.size, self._typical_size())
        self.rate = np.vstack([self.rate, self.factor / self.size[-1]])
        self.is_sized.append(False)
        return len(self.size) - 1

    def clear_workload(self, workload: int) -> None:
        """Forget what was learned of a workload; its place may serve another."""
        self.samples -= self.count[workload]
        self._spent -= self.seconds[workload] / self.size[workload]
        self.count[workload] = self.seconds[workload] = 0
        self.tried[workload] = False
        self.is_sized[workload] = False
        self.rate[workload] = self.factor / self.size[workload]

    def clear_row(self, row: int) -> None:
        """Forget what was learned of a row."""
        self.count[:, row] = self.seconds[:, row] = 0
        self.tried[:, row] = False
        self.samples[row] = self._spent[row] = 0
        self.factor[row] = 1.0
        self.rate[:, row] = 1.0 / self.size

    def weight(self, at: float) -> float:
        """What a sample taken at this time weighs beside the others, whose weight `fade` has set."""
        weight: float = 2.0 ** ((at - self._weighed_at) / self.half_life)
        return weight

    def add(self, workload: int, row: int, count: float, seconds: float) -> bool:
        """Take in samples (or, with count < 0, take old ones out), weighed; mend the cell's rate.

        The first samples of a workload say its size, which mends its rates on every row: then True.
        """
        is_first = not self.is_sized[workload]
        if is_first:  # its size is what it took here
            self.size[workload] = seconds / count * self.factor.item(row)
            self.is_sized[workload] = True
        # Plain floats: numpy's own take several times as long over each of these.
        size, k = self.size.item(workload), self.prior_samples
        self.tried[workload, row] = True
        self.count[workload, row] = mine = max(0.0, self.count.item(workload, row) + count)
        self.seconds[workload, row] = took = max(0.0, self.seconds.item(workload, row) + seconds)
        self.samples[row] = samples = max(0.0, self.samples.item(row) + count)
        self._spent[row] = spent = max(0.0, self._spent.item(row) + seconds / size)
        self.factor[row] = factor = (k + samples) / (k + spent)
        if is_first:
            self.rate[workload] = self._rated(self.count[workload], size, self.seconds[workload])
        else:
            self.rate[workload, row] = (k + mine) / (k * size / factor + took)
        return is_first

    def fade(self, now: float) -> float:
        """Let all samples grow older, to `now`; by what share they fade. Rates follow with a refresh."""
        share: float = 2.0 ** ((self._weighed_at - now) / self.half_life)
        self.count *= share
        self.seconds *= share
        self._weighed_at = now
        return share

    def own_rate(self, workload: int, row: int) -> float:
        """The rate of a cell by its samples alone, of which it must have some."""
        return self.count.item(workload, row) / self.seconds.item(workload, row)

    def refresh(self) -> None:
        """Fit sizes and node factors to all samples and mend every rate: O(C N)."""
        k = self.prior_samples
        of_work = self.count.sum(axis=1)
        seen = of_work > NEGLIGIBLE
        self.samples = self.count.sum(axis=0)
        known = self.samples > NEGLIGIBLE
        self.factor[~known] = 1.0
        for _ in range(SWEEPS if known.any() else 0):
            spent = (self.seconds / self.size[:, None]).sum(axis=0)
            self.factor = (k + self.samples) / (k + spent)
            self.factor /= np.exp(np.log(self.factor[known]).mean())
            self.factor[~known] = 1.0
            self.size[seen] = (self.seconds[seen] @ self.factor) / of_work[seen]
        self._spent = (self.seconds / self.size[:, None]).sum(axis=0)
        self.rate = self._rated(self.count, self.size[:, None], self.seconds)

    def _typical_size(self) -> float:
        sized = self.size[self.is_sized]
        return float(np.exp(np.log(sized).mean())) if len(sized) else 1.0

    def _rated(self, count: Floats, size: Floats | float, seconds: Floats) -> Floats:
        """Rates of whole workloads: `count` and `seconds` over all rows."""
        k = self.prior_samples
        rated: Floats = (k + count) / (k * size / self.factor + seconds)
        return rated


_STEPS = np.linspace(0.0, 4.0, 401)
_ERF = np.array(
    [erf(each) for each in _STEPS]
)  # numpy has none of its own; between steps it is straight to 1e-5


def relative_error(variation: float, samples: float) -> float:
    """Standard error of a rate over the rate, from so many samples of squared variation C^2."""
    return sqrt(variation / samples) if samples > 0 else inf


def confidence(error: float) -> float:
    """The chance that a rate of this relative standard error is within a third of the truth; 0..1."""
    return erf(TOLERANCE / error / sqrt(2.0)) if error > 0 else 1.0


def confidences(variation: float, samples: Floats) -> Floats:
    """The same for many rates of one variation at once, all of them with samples."""
    if variation <= 0:
        return np.ones_like(samples)
    found: Floats = np.interp(TOLERANCE * np.sqrt(samples / (2.0 * variation)), _STEPS, _ERF)
    return found
