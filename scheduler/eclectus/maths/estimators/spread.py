"""What is usual for a kind of work: where and how wide the logarithms of its relative times lie.

The relative time of a task is r = actual over expected seconds. Over all nodes its logarithm has a
location and a spread that belong to the law of the sizes: -0.58 and 1.28 for exponential ones, 0 and
next to nothing for equal ones. Both are followed with weight 1 / MEMORY, from scores clipped to +-2, so
that no single task moves them by much (Huber's way):

    z = (ln r - location) / spread, clipped
    location += a spread z,      spread *= 1 + a (|z| / 0.80 - 1),      a = max(1 / MEMORY, 1 / (16 + n))

0.80 being the mean of |z| for normal data. A new kind of work begins as an exponential one. The location
also takes in what befalls all nodes at once: a workload whose tasks grow tenfold accuses no node.

The squared coefficient of variation of r itself, C^2, says how many samples an estimate needs; there r
is clipped to 4 spreads above the location, or one task that stood still for a day would be all of it.
"""

from __future__ import annotations

from math import exp, log

from eclectus.maths.cusum import CLIP

MEMORY = 100.0  # samples; short beside a change of all nodes, long beside the share one node has in them
PRIOR_SAMPLES = 16.0  # samples that the first assumption weighs
MIN_SPREAD = 0.25  # a spread below a quarter is not looked at more closely: such changes do not matter
NORMAL_MEAN_ABS = 0.7979  # E|z|
OUTLIER = 4.0  # spreads
MAX_VARIATION = 25.0  # of C^2: beyond it the estimate is of one task


class Spread:
    """One kind of work."""

    __slots__ = ("_first", "_samples", "_second", "location", "spread")

    def __init__(self) -> None:
        self.location, self.spread = -0.5772, 1.2825  # of ln of an exponential time
        self._first, self._second, self._samples = 1.0, 2.0, 0

    @property
    def variation(self) -> float:
        """C^2, at least 0."""
        return min(max(self._second / self._first**2 - 1.0, 0.0), MAX_VARIATION)

    def score(self, relative: float) -> float:
        """z of a relative time > 0, and one more sample of what is usual."""
        beyond = (log(relative) - self.location) / self.spread
        score = min(max(beyond, -CLIP), CLIP)
        if beyond > OUTLIER:
            relative = exp(self.location + OUTLIER * self.spread)
        weight = max(1.0 / MEMORY, 1.0 / (PRIOR_SAMPLES + self._samples))
        self._samples += 1
        self.location += weight * self.spread * score
        self.spread = max(self.spread * (1.0 + weight * (abs(score) / NORMAL_MEAN_ABS - 1.0)), MIN_SPREAD)
        self._first += weight * (relative - self._first)
        self._second += weight * (relative * relative - self._second)
        return score
