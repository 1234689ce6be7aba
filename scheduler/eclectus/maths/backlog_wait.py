"""How long a task waits for one of several busy servers: until these have worked off what is ahead of it.

    W = (queued work + r) / c,      r = s (1 + C^2) / 2

for c servers with mean service time s. r is what is left of the service at hand, C^2 the squared coefficient
of variation of service times. Phoenix (ICDCS 2017) has a wait of M/G/1, a mean over the steady state: it is
infinite at saturation, is for one server, and does not say what is ahead of a task that waits already.

Where some tasks may use a few of the servers only, work is shared out by water-filling: each queue ahead, in
the order of arrival, goes to those of its servers that are free first, so that these are busy for equally
long. W is then the least t at which the servers of the task have been free for r in all,

    sum over its servers i of max(t - B_i, 0) = r,      B_i  until when server i is busy with what is ahead

so what waits for few servers delays others only as far as these few can serve it by then.
"""

from collections import OrderedDict
from typing import NamedTuple, Self

import numpy as np

from eclectus.maths.numbers import Floats


def residual_seconds(service_seconds: float, service_scv: float) -> float:
    """What is left in the mean of a service at hand. `service_scv`: squared coefficient of variation."""
    return service_seconds * (1.0 + service_scv) / 2.0


class Filling:
    """Nodes that one kind of task may use, and until when more work keeps those busy that are free first.

    `busy`: seconds from now until which each of them works off what is ahead. `slots`: tasks that it runs at
    once, above 0. Shape [nodes], at least one.
    """

    def __init__(self, busy: Floats, slots: Floats) -> None:
        order = np.argsort(busy, kind="stable")
        self._level = busy[order]
        width = np.cumsum(slots[order])
        self._most_width = float(width[-1])
        self._work = np.zeros(len(order))  # that raises the nodes before to the level of each
        np.cumsum(width[:-1] * np.diff(self._level), out=self._work[1:])

    def seconds(self, work: float) -> float:
        """Until when the nodes that are free first are busy, after so many seconds of work more."""
        above = work - float(self._work[-1])
        if above >= 0.0:
            return float(self._level[-1]) + above / self._most_width
        return float(np.interp(work, self._work, self._level))


# Mean and variation of the run times of each kind of work, from its last tasks, on whatever nodes they ran.
#
# Weighted by completions this mean is slots over throughput where all slots are at work, which is what a wait
# behind a backlog depends on, although fast nodes complete more.

MEMORY = 200.0  # tasks: weight of a new one is 1 / MEMORY, once there were so many
MIN_SAMPLES = 5  # before which nothing is estimated
MAX_WORKLOADS = 4096  # beyond it the one without a completion for longest is forgotten
MAX_VARIATION = 25.0  # of the squared coefficient of variation; larger values come from single tasks


class ServiceTime(NamedTuple):
    """Of one kind of work: mean in seconds, and squared coefficient of variation."""

    mean_seconds: float
    variation: float

    def held(self, turnaround: float) -> Self:
        """Of a server that each task holds for so many seconds longer."""
        seconds = self.mean_seconds + turnaround
        variation = self.variation * (self.mean_seconds / seconds) ** 2
        return self._replace(mean_seconds=seconds, variation=variation)


class ServiceTimes:
    """The service times of the kinds of work that were seen last."""

    def __init__(self) -> None:
        self._moments: OrderedDict[str, tuple[int, float, float]] = OrderedDict()  # samples, E[S], E[S^2]

    def observe(self, workload: str, seconds: float) -> None:
        """A task has run for so long, above 0."""
        samples, first, second = self._moments.pop(workload, (0, 0.0, 0.0))
        weight = max(1.0 / MEMORY, 1.0 / (samples + 1))
        first += weight * (seconds - first)
        second += weight * (seconds * seconds - second)
        self._moments[workload] = samples + 1, first, second
        if len(self._moments) > MAX_WORKLOADS:
            self._moments.popitem(last=False)

    def of(self, workload: str) -> ServiceTime | None:
        """The service time of this kind of work; None until enough of its tasks have ended."""
        samples, first, second = self._moments.get(workload, (0, 0.0, 0.0))
        if samples < MIN_SAMPLES:
            return None
        return ServiceTime(first, min(max(second / first**2 - 1.0, 0.0), MAX_VARIATION))
