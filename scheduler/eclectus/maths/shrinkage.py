"""How far nodes differ at all, and so how far an estimate of one of them is to be believed: empirical Bayes.

R. DerSimonian, N. Laird, "Meta-analysis in clinical trials", 1986, split what estimates y_i with variances
v_i differ by into what their samples explain and the rest, the variance between nodes:

    w_i = 1 / v_i,   y = sum w_i y_i / sum w_i,   Q = sum w_i (y_i - y)^2
    tau^2 = max(0, (Q - (N - 1)) / (sum w_i - sum w_i^2 / sum w_i))

Here y_i is the logarithm of a node's speed. The mean of n times with squared coefficient of variation C^2 is
taken as that of a gamma distribution of shape a = n / C^2, whose logarithm has the mean -1 / 2a and the
variance 1 / (a - 1/2), nearly. A speed from n samples is then weighed against the common one as if that had

    k = C^2 / tau^2    samples

so equal nodes are believed to be equal, however many samples say by chance that they are not, and where nodes
differ much a few samples suffice (B. Efron, C. Morris, "Stein's estimation rule and its competitors", 1973).

Where little is known, what the samples do not explain may be more than it seems: Q counts as larger by two of
the standard deviations that it has where all nodes are equal, so nodes are drawn together on evidence only.
Tasks that still run count, too. The first to end of those that began together are the short ones, so a node
that has had work for a little while would seem fast, and nodes that came into use one after the other would
differ. A slot that is never idle ends T / m + (C^2 - 1) / 2 tasks of mean m in a time T (D. Cox, "Renewal
theory", 1962, for T much longer than m), so a node with n ended and r running ones has ended as many as

    n + r (1 - C^2) / 2 samples in the time of all of them, of which the ends tell m without bias.

One node that differs while all others are equal would be drawn to these. As in Efron and Morris' limited
translation, it is believed for itself once it is further from them than the largest of N errors is likely to
be, sqrt(2 ln N) of its standard errors.
"""

from math import exp, log, sqrt
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats, upper_median

LEAST_NODES = 3  # with samples, to say how far nodes differ
LEAST_SHAPE = 1.0  # n / C^2 of the estimates that say it
OUTLIER_SHAPE = 4.0  # and of a node that is believed for itself: fewer samples are often far from their mean
EXPONENTIAL_VARIATION = 1.0  # C^2 of exponential times
LEAST_VARIATION = 0.01  # of C^2: tasks of one length vary by more than is known of them
LEAST_SECONDS = 1e-9  # of relative time: what is left of sums after subtractions may be 0
MOST_PRIOR = 1e6  # samples: as good as any number
LEAST_LEFT = 0.5  # of the samples, where C^2 is above 1: what is taken off holds only after a long time
DEVIATIONS = 2.0  # of Q, that tau^2 may be larger by


class Unfinished(NamedTuple):
    """Tasks that run; arrays have shape [tasks]."""

    rows: NDArray[np.int64]
    works: NDArray[np.int64]  # the indices of their workloads
    sizes: Floats  # for how long each has run, in times that a task of its workload takes on a typical node

    @classmethod
    def none(cls) -> Self:
        """Nothing runs."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def of(self, workload: int) -> "Unfinished":
        """Those of one workload."""
        chosen = self.works == workload
        return Unfinished(*(column[chosen] for column in self))

    def added_to(self, samples: Floats, relative_seconds: Floats, variation: Floats) -> tuple[Floats, Floats]:
        """Samples and relative seconds of each row with these tasks; `variation`: C^2 by workload."""
        count = np.bincount(self.rows, 0.5 * (1.0 - variation[self.works]), minlength=len(samples))
        seconds = np.bincount(self.rows, self.sizes, minlength=len(samples))
        return np.maximum(samples + count, LEAST_LEFT * samples), relative_seconds + seconds


class Estimates(NamedTuple):
    """Logarithms of speeds and their variances; arrays have shape [nodes]."""

    logs: Floats
    variances: Floats


def estimates(samples: Floats, relative_seconds: Floats, variation: float) -> Estimates:
    """Of nodes with so many samples, which took so long in all for what is expected of one to take 1."""
    shape = samples / max(variation, LEAST_VARIATION)
    logs = np.log(samples / np.maximum(relative_seconds, LEAST_SECONDS)) - 0.5 / shape
    return Estimates(logs, 1.0 / (shape - 0.5))


def between_variance(found: Estimates, deviations: float = DEVIATIONS) -> float:
    """tau^2 of DerSimonian and Laird, with so many standard deviations of Q more."""
    weights = 1.0 / found.variances
    total = weights.sum()
    mean = (weights * found.logs).sum() / total
    free = len(weights) - 1
    excess = (weights * (found.logs - mean) ** 2).sum() - free + deviations * sqrt(2.0 * free)
    return max(0.0, float(excess / (total - (weights**2).sum() / total)))


def differ(found: Estimates, variation: float) -> bool:
    """Whether the estimates differ by more than chance: Q is above N - 1 by two standard deviations.

    `variation`: the C^2 with which they were made. Times are taken to vary as exponential ones do at least:
    until tasks have ended for several times as long as one takes, they seem to vary by less than they do.
    """
    variances = found.variances * max(1.0, EXPONENTIAL_VARIATION / max(variation, LEAST_VARIATION))
    return between_variance(Estimates(found.logs, variances), -DEVIATIONS) > 0.0


def prior_weight(variation: float, between: float, least: float) -> float:
    """k, the weight of the common speed in samples; `least`: what it has where nodes differ much."""
    variation = max(variation, LEAST_VARIATION)
    return max(least, min(variation / between, MOST_PRIOR)) if between > 0.0 else MOST_PRIOR


def node_weights(
    samples: Floats, relative_seconds: Floats, variation: float, least: float
) -> tuple[Floats, bool]:
    """k of each node, and whether nodes differ for sure.

    `least` of all where too few nodes have samples, which are taken to differ, and of outliers.
    """
    found = np.full(len(samples), least)
    known = np.flatnonzero(samples >= LEAST_SHAPE * max(variation, LEAST_VARIATION))
    if len(known) < LEAST_NODES:
        return found, True
    of_known = estimates(samples[known], relative_seconds[known], variation)
    found[:] = prior_weight(variation, between_variance(of_known), least)
    error = np.abs(of_known.logs - upper_median(of_known.logs)) / np.sqrt(of_known.variances)
    is_sure = samples[known] >= OUTLIER_SHAPE * max(variation, LEAST_VARIATION)
    found[known[is_sure & (error > sqrt(2.0 * log(len(known))))]] = least
    return found, differ(of_known, variation)


def untried_share(between: float, least: float) -> float:
    """What a node counts with for a workload that it has never run, where workloads rank nodes differently.

    Two standard deviations of what is special about a pair of them, but not less than `least`.
    """
    return max(least, exp(-2.0 * sqrt(between)))
