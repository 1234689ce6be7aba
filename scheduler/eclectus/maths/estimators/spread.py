"""Location and spread of the logarithm of relative task times, for one workload.

The relative time of a task is r = actual over expected seconds. Over all nodes, ln r has a location and a
spread that depend on the distribution of task sizes: -0.58 and 1.28 for exponential sizes, 0 and nearly 0
for equal ones. Both are followed with weight 1 / MEMORY, by scores clipped to +-2, so that a single task
moves them little (Huber, "Robust estimation of a location parameter", 1964):

    z = (ln r - location) / spread, clipped
    location += a spread z,      spread *= 1 + a (|z| / 0.80 - 1),      a = max(1 / MEMORY, 1 / (16 + n))

0.80 is the mean of |z| for normal data. A new workload starts with the values for exponential sizes. What
happens to all nodes at once goes into the location, so a workload whose tasks grow tenfold raises no alarm
on any node.

The squared coefficient of variation of r itself, C^2, says how many samples an estimate needs. For it, r is
clipped to 4 spreads above the location, or one task that hung for a day would determine it.

A task that still runs has a score so far, for the tests for a change of speed (maths/cusum.py):

    (x + 2) / 4,   x = (ln r - location) / spread,   within 0..1

The mean score of all tasks that take at least as long as x = -1, 0, 1 is .30, .67, 1.28 for exponential
times, .28, .78, 1.47 for log-normal ones. The score so far is less, since too much of it looks like a slower
node; when the task ends, its score takes the place.
"""

from __future__ import annotations

from math import exp, log

from eclectus.maths.cusum import CLIP, clipped

MEMORY = 100.0  # samples; few enough to follow a change of all nodes, more than one node contributes
PRIOR_SAMPLES = 16.0  # weight of the initial values, in samples
MIN_SPREAD = 0.25  # so that changes far below a factor of 2 raise no alarm
NORMAL_MEAN_ABS = 0.7979  # E|z|
OUTLIER = 4.0  # spreads
MAX_VARIATION = 25.0  # of C^2; larger values come from single tasks


class Spread:
    """Location, spread and variation of one workload."""

    __slots__ = ("_first", "_samples", "_second", "location", "spread")

    def __init__(self) -> None:
        self.location, self.spread = -0.5772, 1.2825  # of ln of an exponential time
        self._first, self._second, self._samples = 1.0, 2.0, 0

    @property
    def variation(self) -> float:
        """C^2, from 0 to MAX_VARIATION."""
        return min(max(self._second / self._first**2 - 1.0, 0.0), MAX_VARIATION)

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

    def so_far(self, relative: float) -> float:
        """The score so far, 0..1, of a task that has run for this relative time and not ended."""
        if relative <= 0.0:
            return 0.0
        return (clipped((log(relative) - self.location) / self.spread) + CLIP) / (2.0 * CLIP)
