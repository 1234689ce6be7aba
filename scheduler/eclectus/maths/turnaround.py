"""Turnaround: for how long a slot is held beside the run of a task, and what that makes of a rate.

A slot is held from the bind until the scheduler has seen the end, and the task runs for a part of that time:
the bind must be written, the kubelet must read it and start the container, and the end must be written and
read. On a quiet cluster this takes a tenth of a second, on one whose API server is short of CPU, or for a
large image, many seconds. A slot that serves r tasks a second while they run serves

    r / (1 + r T),    T = mean of (time held - time run)

tasks a second in all. The faster the node, the more it loses; for short tasks fast nodes may be hardly faster
than others. T is the mean of the last samples, of which none counts as more than STRAGGLER times their
median, so that a pod that hangs at its start does not change it.

Each namespace learns from its own tasks. A workload has a T of its own only where it certainly differs from
that of its namespace, as with a large image. A namespace with too few samples believes the lower median of
what the others have learned and of 0: as much as two others agree on, so that no tenant alone moves it.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable
from math import dist, fsum, hypot, inf
from typing import TypeVar

from eclectus.maths.numbers import Value

SAMPLES = 48  # the newest ones, of which T is the mean
EVERY = 8  # samples after which it is computed again; the first time after as many
STRAGGLER = 4.0  # times the median: of exponential times a sixteenth of the mean is lost
CHANGE = 0.25  # of T, by which it must have changed to be another one: rates are not known better
LEAST = 0.01  # seconds, likewise
CERTAIN = 3.0  # standard errors by which a workload differs from its namespace
NAMESPACES_MOST, WORKLOADS_MOST = 128, 32  # of each namespace; beyond it the one without samples for longest

Known = TypeVar("Known")


def with_turnaround(rate: Value, seconds: Value | float) -> Value:
    """Tasks a second that a slot serves in all; `rate` while they run, `seconds` is T."""
    return rate / (1.0 + rate * seconds)


class Turnaround:
    """T of one kind of work: `seconds` and their standard `error`; 0 and inf before the first samples."""

    def __init__(self) -> None:
        self._newest = deque[float](maxlen=SAMPLES)
        self._since = 0  # samples since it was computed
        self.seconds, self.error = 0.0, inf

    def observe(self, seconds: float) -> None:
        """A slot was held for so long beside a run; less than 0 where clocks are coarse."""
        self._newest.append(seconds)
        self._since += 1
        if self._since == EVERY:
            self._since = 0
            self._compute()

    def _compute(self) -> None:
        ascending = sorted(self._newest)
        most = STRAGGLER * max(ascending[len(ascending) // 2], LEAST)
        low, high = bisect_left(ascending, -most), bisect_right(ascending, most)
        counted = [-most] * low + ascending[low:high] + [most] * (len(ascending) - high)
        mean = fsum(counted) / len(counted)
        self.error = dist(counted, [mean] * len(counted)) / len(counted)
        if _differ(mean := max(mean, 0.0), self.seconds):
            self.seconds = mean


def _differ(seconds: float, known: float) -> bool:
    return abs(seconds - known) > max(LEAST, CHANGE * known)


class _Namespace:
    """T of all its tasks, and of each of its workloads."""

    def __init__(self) -> None:
        self.all = Turnaround()
        self._workloads = OrderedDict[str, Turnaround]()

    def observe(self, workload: str, seconds: float) -> None:
        self.all.observe(seconds)
        _newest(self._workloads, workload, Turnaround, WORKLOADS_MOST).observe(seconds)

    def of(self, workload: str) -> float:
        own, common = self._workloads.get(workload, self.all), self.all
        difference = abs(own.seconds - common.seconds)
        is_certain = difference > CERTAIN * hypot(own.error, common.error)
        return own.seconds if is_certain and _differ(own.seconds, common.seconds) else common.seconds


class Turnarounds:
    """T by namespace and workload. The namespace "" is everybody's: it learns, and has no vote."""

    def __init__(self) -> None:
        self._namespaces = OrderedDict[str, _Namespace]()

    def observe(self, namespace: str, workload: str, seconds: float) -> None:
        """A task has ended that has held its slot for so long beside its run."""
        _newest(self._namespaces, namespace, _Namespace, NAMESPACES_MOST).observe(workload, seconds)

    def of(self, namespace: str, workload: str) -> float:
        """T in seconds; a workload without one of its own has that of its namespace."""
        own = self._namespaces.get(namespace)
        if own is not None and own.all.error < inf:
            return own.of(workload)
        known = [each.all.seconds for name, each in self._namespaces.items() if name and each.all.error < inf]
        votes = sorted((0.0, *known))
        return votes[(len(votes) - 1) // 2]


def _newest(known: OrderedDict[str, Known], name: str, new: Callable[[], Known], most: int) -> Known:
    """The one of this name, made if there is none; `most` of them are kept."""
    found = known[name] = known.pop(name, None) or new()
    if len(known) > most:
        known.popitem(last=False)
    return found
