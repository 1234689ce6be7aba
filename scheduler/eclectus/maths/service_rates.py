"""Service rates from completion times of tasks of different sizes, by workload and node, and their changes.

Q. Wu, Z. Liu, "Rosella", 2020, estimate one rate for each node as one over the mean time of its tasks. Here
tasks differ in size, and nodes may rank differently for different workloads. The model: a task of workload
c on node i takes S = m_c / (f_i a_ic) on average, with m_c the workload's size in reference seconds, f_i
the node's speed over all workloads, a_ic what is special about the pair. From n_ic samples that took S_ic
seconds in all,

    rate_ic = (k + n_ic) / (k m_c / f_i + S_ic)                     tasks a second in one slot
    f_i     = (k + sum_c n_ic) / (k + sum_c S_ic / m_c)             expected over actual time
    m_c     = sum_i S_ic f_i / sum_i n_ic                           mean time at reference speed

So a cell without samples has the rate f_i / m_c, and each sample moves it from there towards its own rate.
k is the weight of that prior, in samples. f is scaled to a geometric mean of 1 over nodes with samples,
since only ratios matter to placement. m and f depend on each other; they are computed in alternation.

Samples lose weight with age: a sample of age t weighs 2^(-t / half_life), in n and in S alike. So a node
that was not used for long returns to the prior, and is used again. Only m_c stays, as a ratio of two sums
that lose weight alike.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from math import erf, exp, inf, log, sqrt
from typing import Any, Generic, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.maths.numbers import Arithmetic, Floats, Value, sum_of_products
from eclectus.maths.shrinkage import (
    LEAST_NODES,
    LEAST_SHAPE,
    LEAST_VARIATION,
    Estimates,
    Unfinished,
    estimates,
    node_weights,
)

Marks = NDArray[np.bool_]
Totals = tuple[Floats, Floats]
"""Samples and relative seconds of each row."""
SWEEPS = 3  # alternations in each refresh; few suffice, since they start from the last result
NEGLIGIBLE = 1e-6  # of a sample: a smaller weight counts as no sample
TOLERANCE = 1.0 / 3.0  # relative error of rates that placement tolerates at any load (docs/rosella.md)


class RatioMatrix:
    """Counts, sums and rates of C workloads by N rows. Both grow on demand."""

    def __init__(self, prior_samples: float, rows: int = 0, half_life: float = inf) -> None:
        self.prior_samples = prior_samples
        self.half_life = half_life
        self.count: Floats = np.zeros((0, rows))  # weight of the samples; 1 is a sample of age 0
        self.seconds: Floats = np.zeros((0, rows))
        self.size: Floats = np.zeros(0)  # m, reference seconds
        self.factor: Floats = np.ones(rows)  # f
        self.rate: Floats = np.zeros((0, rows))
        self.tried: Marks = np.zeros((0, rows), dtype=bool)  # whether a cell has ever had a sample
        self.samples: Floats = np.zeros(rows)  # weight of the samples of all workloads
        self._spent: Floats = np.zeros(rows)  # sum over workloads of seconds over size
        self.is_sized: list[bool] = []  # whether a workload has ever had a sample, which gave it a size
        self._weighed_at = 0.0  # the time to which `count` and `seconds` refer

    def open_rows(self, rows: int) -> None:
        """Extend the arrays to `rows` rows; new rows have no samples."""
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
        """Add a workload without samples and with the typical size; returns its index."""
        self.count, self.seconds = _with_row(self.count, 0.0), _with_row(self.seconds, 0.0)
        self.tried = _with_row(self.tried, False)
        sized = self.size[self.is_sized]
        typical = float(np.exp(np.log(sized).mean())) if len(sized) else 1.0
        self.size = np.append(self.size, typical)
        self.rate = _with_row(self.rate, self.factor / self.size[-1])
        self.is_sized.append(False)
        return len(self.size) - 1

    def clear_workload(self, workload: int) -> None:
        """Remove all samples of a workload; its index may be used for another."""
        self.samples -= self.count[workload]
        self._spent -= self.seconds[workload] / self.size[workload]
        self.count[workload] = self.seconds[workload] = 0
        self.tried[workload] = False
        self.is_sized[workload] = False
        self.rate[workload] = self.factor / self.size[workload]

    def clear_row(self, row: int) -> None:
        """Remove all samples of a row."""
        self.count[:, row] = self.seconds[:, row] = 0
        self.tried[:, row] = False
        self.samples[row] = self._spent[row] = 0
        self.factor[row] = 1.0
        self.rate[:, row] = 1.0 / self.size

    def weight(self, at: float) -> float:
        """The weight of a sample taken at this time, relative to the time of the last `fade`."""
        weight: float = 2.0 ** ((at - self._weighed_at) / self.half_life)
        return weight

    def add(self, workload: int, row: int, count: float, seconds: float) -> bool:
        """Add samples (with count < 0: remove old ones), already weighted, and update the cell's rate.

        The first samples of a workload give its size, which updates its rates on every row: then True.
        """
        is_first = not self.is_sized[workload]
        if is_first:  # its size follows from its time on this node
            self.size[workload] = seconds / count * self.factor.item(row)
            self.is_sized[workload] = True
        # Plain floats: numpy scalars take several times as long for each of these.
        size, k = self.size.item(workload), self.prior_samples
        self.tried[workload, row] = True
        self.count[workload, row] = mine = max(0.0, self.count.item(workload, row) + count)
        self.seconds[workload, row] = took = max(0.0, self.seconds.item(workload, row) + seconds)
        self.samples[row] = samples = max(0.0, self.samples.item(row) + count)
        self._spent[row] = spent = max(0.0, self._spent.item(row) + seconds / size)
        self.factor[row] = factor = (k + samples) / (k + spent)
        if is_first:
            self._rate(slice(workload, workload + 1))
        else:
            self.rate[workload, row] = (k + mine) / (k * size / factor + took)
        return is_first

    def fade(self, now: float) -> float:
        """Age all samples to `now`; returns the factor applied. Rates change with the next refresh."""
        share: float = 2.0 ** ((self._weighed_at - now) / self.half_life)
        self._weighed_at = now
        if share != 1.0:
            self.count *= share
            self.seconds *= share
        return share

    def speed_given(self, prior: Floats | float, weight: Floats | float, rows: slice) -> Floats:
        """f of these rows with p instead of 1 as their prior and k' instead of k as its weight.

        (k' + n) / (k' - k + k / p + T), T = sum_c S_ic / m_c. Only k of it is of speed p, so that what others
        say counts no more where nodes are found to be equal; the rest is of the common speed.
        """
        given: Floats = _speed(self.prior_samples, weight, prior, self.samples[rows], self._spent[rows])
        return given

    def rate_given(self, speed: Floats, weight: Floats, rows: slice, out: Floats | None = None) -> Floats:
        """The rates of these rows with these speeds and weights of each workload; shape [workloads, rows].

        Computed in `out` if it is given: fresh memory would take most of the time.
        """
        given = np.divide(self.size[:, None], speed, out=out)
        np.multiply(weight, given, out=given)
        np.add(given, self.seconds[:, rows], out=given)
        return np.divide(weight + self.count[:, rows], given, out=given)

    def cell_given(
        self, workload: int, row: int, prior: float, weight: float, pair_weight: float
    ) -> tuple[float, float]:
        """The same of one cell: its node's speed, and its rate. In plain floats, which are much faster."""
        speed = _speed(self.prior_samples, weight, prior, self.samples.item(row), self._spent.item(row))
        count, seconds = self.count.item(workload, row), self.seconds.item(workload, row)
        return speed, (pair_weight + count) / (pair_weight * (self.size.item(workload) / speed) + seconds)

    def totals(self, variation: Floats, unfinished: Unfinished) -> Totals:
        """Samples and relative seconds of each row, with the tasks that run; `variation`: C^2 by workload."""
        return unfinished.added_to(self.samples, self._spent, variation)

    def node_weights(self, totals: Totals, variation: Floats) -> tuple[Floats, bool]:
        """The weight of the common speed for each row (maths/shrinkage.py), and whether rows differ for sure.

        `variation`: C^2 by workload.
        """
        of_work = self.count.sum(axis=1)
        total = float(of_work.sum())
        mean = float(sum_of_products(of_work, variation)) / total if total > 0.0 else 1.0
        return node_weights(*totals, mean, self.prior_samples)

    def pair_estimates(
        self, workload: int, totals: Totals, variations: Floats, unfinished: Unfinished
    ) -> Estimates | None:
        """What is special about the nodes for a workload; None where too little is known.

        On nodes that have run other work as well: how their speeds for the two differ. `variations`: C^2 by
        workload.
        """
        variation = variations.item(workload)
        least = LEAST_SHAPE * max(variation, LEAST_VARIATION)
        samples, spent = totals
        mine, seconds = unfinished.of(workload).added_to(
            self.count[workload], self.seconds[workload] / self.size.item(workload), variations
        )
        rows = np.flatnonzero((mine >= least) & (samples - mine >= least))
        if len(rows) < LEAST_NODES:
            return None
        own = estimates(mine[rows], seconds[rows], variation)
        rest = estimates((samples - mine)[rows], (spent - seconds)[rows], variation)
        return Estimates(own.logs - rest.logs, own.variances + rest.variances)

    def refresh(self) -> None:
        """Fit sizes and node factors to all samples and compute every rate: O(C N)."""
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
            self.size[seen] = sum_of_products(self.seconds[seen], self.factor) / of_work[seen]
        self._spent = (self.seconds / self.size[:, None]).sum(axis=0)
        self._rate(slice(None))

    def _rate(self, workloads: slice) -> None:
        """Compute the rates of whole workloads, in place: fresh memory would take most of the time."""
        k, rate = self.prior_samples, self.rate[workloads]
        np.divide(k * self.size[workloads, None], self.factor, out=rate)
        np.add(rate, self.seconds[workloads], out=rate)
        np.divide(k + self.count[workloads], rate, out=rate)


def _speed(k: float, weight: Any, prior: Any, samples: Any, spent: Any) -> Any:
    """`speed_given`, of numbers or arrays."""
    return (weight + samples) / (weight - k + k / prior + spent)


def _with_row(table: NDArray[Any], row: Any) -> NDArray[Any]:
    """The table with one more row. It is copied only when its memory is full, which then doubles."""
    used, memory = len(table), table if table.base is None else table.base
    if used == len(memory):
        memory = np.empty((max(2 * used, 4), table.shape[1]), table.dtype)
        memory[:used] = table
    memory[used] = row
    return memory[: used + 1]


_STEPS = np.linspace(0.0, 4.0, 401)
_ERF = np.array([erf(each) for each in _STEPS])  # numpy has no erf; linear interpolation is exact to 1e-5


def relative_error(variation: float, samples: float) -> float:
    """Relative standard error of a rate; `variation` is C^2 of the times. inf without samples."""
    return sqrt(variation / samples) if samples > 0 else inf


def confidence(error: float) -> float:
    """The probability that a rate of this relative standard error is within a third of the truth."""
    return erf(TOLERANCE / error / sqrt(2.0)) if error > 0 else 1.0


def confidences(variation: float, samples: Floats) -> Floats:
    """The same for many rates of one workload, all of them with samples; shape [len(samples)]."""
    if variation <= 0:
        return np.ones_like(samples)
    found: Floats = np.interp(TOLERANCE * np.sqrt(samples / (2.0 * variation)), _STEPS, _ERF)
    return found


# Location and spread of the logarithm of relative task times, for one workload.
#
# The relative time of a task is r = actual over expected seconds. Over all nodes, ln r has a location and a
# spread that depend on the distribution of task sizes: -0.58 and 1.28 for exponential sizes, 0 and nearly 0
# for equal ones. Both are followed with weight 1 / MEMORY, by scores clipped to +-2, so that a single task
# moves them little (Huber, "Robust estimation of a location parameter", 1964):
#
#     z = (ln r - location) / spread, clipped
#     location += a spread z,      spread *= 1 + a (|z| / 0.80 - 1),      a = max(1 / MEMORY, 1 / (16 + n))
#
# 0.80 is the mean of |z| for normal data. A new workload starts with the values for exponential sizes. What
# happens to all nodes at once goes into the location, so a workload whose tasks grow tenfold raises no alarm
# on any node.
#
# The squared coefficient of variation of r itself, C^2, says how many samples an estimate needs. For it, r is
# clipped to 4 spreads above the location, or one task that hung for a day would determine it.
#
# A task that still runs has a score so far, for the tests for a change of speed (maths/service_rates.py):
#
#     (x + 2) / 4,   x = (ln r - location) / spread,   within 0..1
#
# The mean score of all tasks that take at least as long as x = -1, 0, 1 is .30, .67, 1.28 for exponential
# times, .28, .78, 1.47 for log-normal ones. The score so far is less, since too much of it looks like a
# slower node; when the task ends, its score takes the place.

MEMORY = 100.0  # samples; few enough to follow a change of all nodes, more than one node contributes
PRIOR_SAMPLES = 16.0  # weight of the initial values, in samples
MIN_SPREAD = 0.25  # so that changes far below a factor of 2 raise no alarm
NORMAL_MEAN_ABS = 0.7979  # E|z|
OUTLIER = 4.0  # spreads
EXPONENTIAL_SPREAD = 1.2825  # of ln of an exponential time
MAX_VARIATION = 25.0  # of C^2; larger values come from single tasks


class Spread(Struct, eq=False):
    """Location, spread and variation of one workload."""

    location: float = -0.5772  # location and spread: of ln of an exponential time
    spread: float = EXPONENTIAL_SPREAD
    _first: float = 1.0
    _second: float = 2.0
    _samples: int = 0

    @property
    def variation(self) -> float:
        """C^2, from 0 to MAX_VARIATION."""
        return min(max(self._second / self._first**2 - 1.0, 0.0), MAX_VARIATION)

    @property
    def usual_variation(self) -> float:
        """C^2, at most a quarter more than exponential times of this spread have: that is steadier."""
        return min(self.variation, 1.25 * (self.spread / EXPONENTIAL_SPREAD) ** 2)

    def score(self, relative: float) -> float:
        """The score z of a relative time > 0, which is then taken into the estimates."""
        beyond = (log(relative) - self.location) / self.spread
        score = clipped(beyond)
        if beyond > OUTLIER:
            relative = exp(self.location + OUTLIER * self.spread)
        weight = max(1.0 / MEMORY, 1.0 / (PRIOR_SAMPLES + self._samples))
        self._samples += 1
        self.location += weight * self.spread * score
        self.spread = max(self.spread * (1.0 + weight * (abs(score) / NORMAL_MEAN_ABS - 1.0)), MIN_SPREAD)
        self._first += weight * (relative - self._first)
        self._second += weight * (relative * relative - self._second)
        return score

    def overtaken(self, relative: float) -> float:
        """The score z of a task that would have run on: at least that of its run so far, and not below 0."""
        return max(0.0, clipped((log(relative) - self.location) / self.spread)) if relative > 0.0 else 0.0

    def so_far(self, relative: float) -> float:
        """The score so far, 0..1, of a task that has run for this relative time and not ended."""
        if relative <= 0.0:
            return 0.0
        return (clipped((log(relative) - self.location) / self.spread) + CLIP) / (2.0 * CLIP)


# A test for a change of speed: two-sided CUSUM on the logarithm of actual over expected time, clipped.
#
# E. S. Page, "Continuous inspection schemes", Biometrika, 1954. Each sample gives a score
#
#     z = (ln r - usual location of ln r for this workload) / its usual spread,   clipped to +-2
#     up   = max(0, up + z - slack)        grows when tasks take longer than expected
#     down = max(0, down - z - slack)      grows when they take less
#
# An alarm is raised when either sum exceeds the threshold: the speed has changed, and the samples since that
# sum was last 0 are samples of the new speed.
#
# Tasks that start together end in the order of their sizes: the first ends look like those of a faster node,
# the last ones like those of a slower. So with each end a test gets what ended *and* running tasks have shown
# since the last one:
#
#     z' = z + sum over the running tasks of their scores so far - that sum after the last end,   within -2..4
#
# A score so far grows from 0 at a task's start (maths/service_rates.py). In all, a task that ends adds its
# own z and a deleted one nothing, whatever the order.
#
# Task sizes are heavy-tailed, so three things keep false alarms rare. The logarithm turns a factor into a
# difference. Location and spread are estimated for each workload (maths/service_rates.py), so no distribution
# of sizes is assumed. The clip limits a single task, however long, to two spreads; from 0 an alarm takes at
# least five samples of tasks that run alone, and two where many run.
#
# Measured for tasks that run alone, with slack 0.5 and threshold 6: mean number of samples to a false alarm;
# and, after all times change by a factor, mean number of samples to the alarm (90th percentile). `scv` is the
# squared coefficient of variation.
#
#     sizes              false alarm      x 4      x 1/4        x 2      x 1/2
#     exponential              2,037   10 (16)   11 (17)    35 (71)    47 (97)
#     scv 4                    1,531   11 (19)   12 (20)   50 (103)   54 (114)
#     scv 10                   1,584   11 (18)   12 (19)    44 (87)   50 (103)
#     scv 25                   1,704   10 (16)   11 (18)    39 (79)    47 (95)
#     log-normal, sd 2         2,344   27 (53)   27 (52)  165 (370)  161 (368)
#     bounded Pareto 1.5       1,460    5 (5)     5 (7)      9 (14)     9 (14)
#     log-normal, sd 0.3       2,596    4 (5)     4 (5)      5 (6)      5 (6)
#     within 5 %               never    5 (5)     5 (5)      5 (5)      5 (5)
#
# With exponential sizes, a change by a factor of 2 is found in about as many samples as a window holds.
# Threshold 5: a false alarm in 650 samples, a change by 4 found in 8; threshold 7: in 5,000, and in 12.

CLIP = 2.0
MOST_SHOWN = 4.0  # what one sample counts for, where many tasks run that are overdue


class Sums(NamedTuple, Generic[Value]):
    """The two sums, and the time of the first sample since each was last 0; floats, or arrays over cells."""

    up: Value
    down: Value
    up_since: Value
    down_since: Value


AT_REST = Sums(0.0, 0.0, 0.0, 0.0)


def next_sums(m: Arithmetic[Value], sums: Sums[Value], score: Value, at: float, slack: float) -> Sums[Value]:
    """The sums after one more sample of score z, taken at time `at`, seconds."""
    up, down, up_since, down_since = sums
    return Sums(
        m.maximum(up + score - slack, 0.0),
        m.maximum(down - score - slack, 0.0),
        m.where(up > 0.0, up_since, at),
        m.where(down > 0.0, down_since, at),
    )


def clipped(score: float) -> float:
    """A score within +-CLIP."""
    return min(max(score, -CLIP), CLIP)


def shown(score: float, growth: float) -> float:
    """z' from the score of an ended task and the change of the sum of the scores so far."""
    return min(max(score + growth, -CLIP), MOST_SHOWN)


def changed_since(sums: Sums[float], threshold: float) -> float | None:
    """The time since which the speed of one cell has been another; None without an alarm."""
    if sums.up > threshold:
        return float(sums.up_since)
    return float(sums.down_since) if sums.down > threshold else None


# Tasks that were overtaken: how long each would have run on.
#
# Where a copy of a task ends first, the task is deleted after s seconds: a censored sample. It is replaced by
# its expectation (A. Dempster, N. Laird, D. Rubin, "Maximum likelihood from incomplete data via the EM
# algorithm", 1977), with the mean m that is believed of its node:
#
#     left = m (1 + (C^2 - 1) min(s / m, 1))       m at the start, C^2 m for a task that is late
#
# For exponential times it is m however long the task has run, which makes rates those of maximum likelihood:
# ends over seconds, whoever ran them. Tasks of equal length that are overtaken before the time that their
# node is believed to take confirm that belief, so a slow node is not forgotten where all its tasks are
# overtaken early. One that has run for longer contradicts it, and says nothing of by how much: it is expected
# to run on for as long as such a task takes on a typical node, at least. All of that would grow without
# bound where nothing ends, so a task is taken to last for MOST_LASTING typical ones, if not longer already.

MOST_LASTING = 4.0


def seconds_left(so_far: float, expected: float, size: float, variation: float) -> float:
    """How long a task that was overtaken would have run on, seconds.

    `expected`: the mean time on its node as is believed; `size`: on a typical node. `variation`: C^2.
    """
    left = expected * (1.0 + (variation - 1.0) * min(so_far / expected, 1.0))
    if so_far > expected:
        left = max(left, size)
    return max(0.0, min(left, MOST_LASTING * size - so_far))


class Samples:
    """The newest service times of one node for one workload, oldest first; 16 bytes each."""

    __slots__ = ("_at", "_gone", "_seconds")

    def __init__(self) -> None:
        self._at = array("d")
        self._seconds = array("d")
        self._gone = 0  # removed samples at the beginning of the arrays, which are not yet cut off

    def __len__(self) -> int:
        return len(self._at) - self._gone

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """(time, seconds), oldest first."""
        return zip(self._at[self._gone :], self._seconds[self._gone :], strict=True)

    @property
    def newest_at(self) -> float:
        """Time of the newest sample."""
        return self._at[-1]

    def add(self, at: float, seconds: float) -> None:
        """Add a sample. Times must not decrease."""
        self._at.append(at)
        self._seconds.append(seconds)

    def add_equal(self, at: float, seconds: float, count: int) -> None:
        """Add so many samples of the same time and value."""
        self._at += array("d", (at,)) * count
        self._seconds += array("d", (seconds,)) * count

    def take_oldest(self) -> tuple[float, float]:
        """Remove the oldest sample and return (time, seconds)."""
        gone = self._gone
        oldest = self._at[gone], self._seconds[gone]
        self._gone = gone + 1
        if 2 * self._gone > len(self._at):  # amortized: each sample is moved once at most
            del self._at[: self._gone]
            del self._seconds[: self._gone]
            self._gone = 0
        return oldest


# What one namespace takes from the speeds that others have learned: a prior, robust and bounded.
#
# Each namespace has one vote for a node, whatever the number of its samples, once they weigh LEAST_SAMPLES:
# the logarithm v of the node's speed, where the geometric mean over the nodes of that namespace is 1. For
# node i and namespace g,
#
#     q_gi = the number nearest to 0 between the lower and the upper median of v_hi over all h other than g
#     ln p_gi = q_gi - (mean of q_g over the nodes of which g has samples itself),  within +-ln MOST_PRIOR
#
# An odd number of votes has one median. With an even number the two middle ones count as far as they agree:
# of two votes the weaker one, and none if they contradict each other. So one liar among two or more votes
# moves q to a value between 0 and the honest ones at most. The mean over the nodes that g knows is subtracted
# because only ratios matter: the same factor on all nodes says nothing. For it, q is within -2 ln MOST_PRIOR
# .. 2 ln MOST_PRIOR, so that a single node moves it little.

LEAST_SAMPLES = 4.0  # weight: a speed from 4 samples of exponential times has a relative error of a half
MOST_PRIOR = 2.0  # factor on a rate, up or down: a ratio of two rates changes by its square at most


def vote(factor: Floats, samples: Floats) -> Floats:
    """Logarithms of the speeds of one namespace, nan where it has no vote; all arrays have shape [rows]."""
    has_vote = samples >= LEAST_SAMPLES
    found = np.full(len(factor), np.nan)
    if has_vote.any():
        logs = np.log(factor[has_vote])
        found[has_vote] = logs - logs.mean()
    return found


class Votes:
    """The votes of all namespaces, each of shape [rows]; a median needs at least one."""

    def __init__(self, votes: Sequence[Floats]) -> None:
        self._votes = np.array(votes)
        self._sorted = np.sort(self._votes, axis=0)  # nan comes last
        self._count = (~np.isnan(self._votes)).sum(axis=0)

    def median(self, without: int | None = None) -> Floats:
        """q of each row, of all namespaces or of all but one; nan where there is no vote."""
        count, rank = self._count, np.full(len(self._count), len(self._votes))
        if without is not None:
            own = self._votes[without]
            has_vote = ~np.isnan(own)
            rank = np.where(has_vote, (self._votes < own).sum(axis=0), rank)
            count = count - has_vote
        lower, upper = self._at((count - 1) // 2, rank), self._at(count // 2, rank)
        return np.where(count > 0, np.clip(0.0, lower, upper), np.nan)

    def _at(self, position: NDArray[np.intp], left_out: NDArray[np.intp]) -> Floats:
        """The vote at this position of each row, in ascending order without the one left out."""
        position = np.maximum(position, 0)
        position = np.minimum(position + (position >= left_out), len(self._sorted) - 1)
        return np.asarray(self._sorted[position, np.arange(len(position))])


def prior(median: Floats, is_known: Marks) -> Floats:
    """p of each row, 1 where there is no vote. `is_known`: the rows of which there are own samples."""
    has_vote = ~np.isnan(median)
    if not has_vote.any():
        return np.ones(len(median))
    is_reference = has_vote & is_known
    bounded = np.clip(median, -2.0 * log(MOST_PRIOR), 2.0 * log(MOST_PRIOR))
    reference = bounded[is_reference if is_reference.any() else has_vote].mean()
    return np.where(has_vote, np.exp(np.clip(bounded - reference, -log(MOST_PRIOR), log(MOST_PRIOR))), 1.0)


# Common changes: many nodes change speed at about the same time, and what is known of others is in doubt.
#
# Q. Wu, Z. Liu, "Rosella", 2020, ask how soon a scheduler recovers then. An alarm (maths/service_rates.py)
# needs ends of tasks on the node itself. Of a node that became faster there are none: it was slow, so nothing
# is sent there while its old speed is believed, although others are full. But where every third node has
# changed within a short time, the rest have probably changed as well: their samples from before are dropped,
# and they count as typical until they have new ones, as after a start.
#
# Only alarms over all workloads of a node count, since those over one may be a change of that workload alone.
# With a false alarm of a node in about 1,500 samples, about one node in a hundred has one within the time
# that counts.

COMMON_SHARE, COMMON_NODES = 1.0 / 3.0, 3  # of the nodes with samples, and in any case so many
SAMPLES_PER_NODE = 16  # how long an alarm counts; a fourfold change is detected after 10 to 12
ROWS_AT_ONCE = 128  # of which samples are dropped at a fit: those of 5,000 nodes would take a second


class _Alarm(NamedTuple):
    sample: int  # the number of the sample that raised it
    since: float  # when the node changed


class CommonChanges:
    """The newest alarms of one namespace by node, and the rows of which older samples are to be dropped."""

    def __init__(self) -> None:
        self.samples = 0  # taken so far, of all nodes
        self._alarms: dict[int, _Alarm] = {}
        self._outdated: dict[int, float] = {}

    def alarm(self, row: int, since: float, known: NDArray[np.intp]) -> bool:
        """Count an alarm of a whole node; whether it makes a common change. `known`: the rows with samples.

        The nodes that have raised an alarm are judged by their own.
        """
        first = self.samples - SAMPLES_PER_NODE * len(known)
        self._alarms = {each: alarm for each, alarm in self._alarms.items() if alarm.sample > first}
        self._alarms[row] = _Alarm(self.samples, since)
        if len(self._alarms) < max(COMMON_NODES, COMMON_SHARE * len(known)):
            return False
        at = max(alarm.since for alarm in self._alarms.values())
        self._outdated = {each: at for each in known.tolist() if each not in self._alarms}
        self._alarms.clear()
        return True

    def take_outdated(self) -> Iterator[tuple[int, float]]:
        """The next rows of which samples from before the given time are to be dropped."""
        for row in list(islice(self._outdated, ROWS_AT_ONCE)):
            yield row, self._outdated.pop(row)

    def forget(self, row: int) -> None:
        """The node of this row is gone, or its samples are."""
        self._alarms.pop(row, None)
        self._outdated.pop(row, None)
