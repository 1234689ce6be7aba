"""How many tasks arrive a second, of each class. Kept only if a policy needs `arrivals`.

The rate of all tasks is that of maths/load.py. A class has a share of it: the share of the
recent arrivals that are of the class, where an arrival counts half as much `HALF_LIFE` arrivals later. So the
memory is one number a class, and no time scale has to be chosen: a cluster with a thousand tasks an hour and
one with a thousand a second remember the same number of tasks.
"""

from __future__ import annotations

from heapq import nlargest

from eclectus.maths.load import ArrivalRate
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey

HALF_LIFE = 500.0  # arrivals
GROWTH: float = 2.0 ** (1.0 / HALF_LIFE)
MAX_WEIGHT = 1e100  # of one arrival; before floats overflow all weights are scaled back
MAX_CLASSES = 1024  # twice as many are kept at most; then the rarest are forgotten


class Arrivals:
    """Arrivals of tasks that end by themselves, for any scheduler."""

    def __init__(self) -> None:
        self._rate = ArrivalRate()
        self._weights: dict[ClassKey, float] = {}
        self._weight = 1.0  # of the next arrival: the newest grow, which is cheaper than shrinking all others

    def add(self, task: Task, now: float) -> None:
        """A task arrives. `now` must not decrease from call to call."""
        self._rate.add(now)
        key = (task.spec, task.workload)
        self._weights[key] = self._weights.get(key, 0.0) + self._weight
        self._weight *= GROWTH
        if len(self._weights) > 2 * MAX_CLASSES or self._weight > MAX_WEIGHT:
            self._keep_frequent()

    def _keep_frequent(self) -> None:
        kept = nlargest(MAX_CLASSES, self._weights.items(), key=lambda each: each[1])
        self._weights = {key: weight / self._weight for key, weight in kept}
        self._weight = 1.0

    def rates(self, now: float, most: int) -> dict[ClassKey, float]:
        """Tasks a second of the `most` classes that arrive most often; those of others count among these."""
        kept = nlargest(most, self._weights.items(), key=lambda each: each[1])
        total = sum(weight for _, weight in kept)
        rate = self._rate.slow(now)
        return {key: rate * weight / total for key, weight in kept}
