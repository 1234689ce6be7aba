"""The record of a run: counts, times and integrals. Its size does not grow with the tasks that have ended.

Samples are kept in bounded memory: a series over time, and histograms of times with geometric buckets, whose
quantiles are within 0.25 %; their sum, count and maximum are exact, and two can be merged.

Two totals are kept independently and must agree in the end: the times of tasks, added up as they end, and the
number in the system, integrated over time. By Little's law they are equal. The result for tasks that never
end is a curve of what is allocated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import exp, inf, log
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from eclectus.model.commands import Bind, Command
from eclectus.model.events import BindRefused, Event, TaskSeen
from eclectus.model.objects import amount_of
from eclectus.sim.base.machine import Machine, TaskRun
from eclectus.sim.base.results import Grouping, Labels, Times
from eclectus.sim.base.work import Arrival, WorkClass

T = TypeVar("T")


class Series(Generic[T]):
    """Holds between `most` and 2 * `most` samples once the run is long enough.

    At 2 * `most` samples every other one is dropped and the interval doubles.
    """

    __slots__ = ("due", "every", "items", "most")

    def __init__(self, every: float, most: int) -> None:
        self.every = every
        self.most = most
        self.due = every  # time of the next sample
        self.items: list[T] = []

    def add(self, item: T) -> None:
        """Add the sample taken at `due`."""
        self.items.append(item)
        if len(self.items) == 2 * self.most:
            del self.items[::2]
            self.every *= 2
        self.due += self.every


RATIO = 1.005  # upper over lower bound of a bucket; the error of a quantile is at most half of that
_SCALE = 1.0 / log(RATIO)
ZERO_BUCKET = -(10**6)  # the bucket of times that are zero


class Histogram:
    """A growing sample of times, in seconds; it is read after a call of `aggregate`.

    New values are kept in a list and put into buckets by numpy in one go, which is far faster than one by
    one. A caller that adds without limit must call `aggregate` from time to time.
    """

    __slots__ = ("_new", "add", "buckets", "largest", "total")

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()  # bucket -> number of values
        self.total = 0.0  # the exact sum
        self.largest = 0.0
        self._new: list[float] = []
        self.add: Callable[[float], None] = self._new.append  # add one value

    def aggregate(self) -> None:
        """Move the values added since the last call into buckets."""
        if not self._new:
            return
        new = np.array(self._new)
        self._new.clear()
        is_positive = new > 1e-12
        buckets = np.full(len(new), ZERO_BUCKET)
        buckets[is_positive] = np.floor(np.log(new[is_positive]) * _SCALE)
        self.buckets.update(buckets.tolist())
        # One after the other, so that the sum does not depend on how many values are aggregated at a time.
        self.total = float(np.cumsum(np.concatenate(([self.total], new)))[-1])
        self.largest = max(self.largest, float(new.max()))

    @property
    def count(self) -> int:
        """The number of values; O(buckets)."""
        return self.buckets.total()

    def merge(self, other: Histogram) -> None:
        """Add what another histogram has aggregated."""
        self.buckets.update(other.buckets)
        self.total += other.total
        self.largest = max(self.largest, other.largest)

    @property
    def mean(self) -> float:
        """The exact mean in seconds; 0 if empty."""
        return self.total / self.count if self.buckets else 0.0

    def quantile(self, share: float) -> float:
        """The quantile at `share` (0 to 1), in seconds; 0 if empty."""
        rank, seen = share * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                return min(bucket_middle(bucket), self.largest)
        return 0.0


def times_of(sample: Histogram) -> Times:
    """The sample as results show it."""
    p50, p90, p99, p999 = (sample.quantile(share) for share in (0.5, 0.9, 0.99, 0.999))
    buckets = dict(sorted(sample.buckets.items()))
    return Times(sample.count, sample.mean, p50, p90, p99, p999, sample.largest, buckets)


def bucket_middle(bucket: int) -> float:
    """The time that represents a bucket, in seconds."""
    return 0.0 if bucket == ZERO_BUCKET else exp((bucket + 0.5) / _SCALE)


POINTS = 240  # least number of samples of a run of the expected length: the resolution of a plot


@dataclass(frozen=True, slots=True)
class Window:
    """The measured window: where it starts, and the expected end of the run."""

    from_task: int = 0
    from_seconds: float = 0.0
    expected_end: float = 1.0
    until_task: float = inf  # arrivals go on until all tasks before this one have ended

    @property
    def every(self) -> float:
        """Seconds between two samples of the series."""
        return max(self.expected_end / POINTS, 1e-9)


@dataclass(slots=True)
class Tally:
    """Times of the measured tasks and jobs with the same labels, in seconds."""

    response: Histogram = field(default_factory=Histogram)  # arrival to end
    wait: Histogram = field(default_factory=Histogram)  # arrival to start
    jobs: Histogram = field(default_factory=Histogram)  # arrival to the end of the last task
    slowdown: float = 0.0  # sum of response over size
    preferring: int = 0  # tasks with preferences
    met: float = 0.0  # sum over them of the share of their preferences that their nodes meet


class Integrals(NamedTuple):
    """Both integrals at one time: tasks in the system, and running tasks."""

    at: float = 0.0
    system_seconds: float = 0.0
    busy_seconds: float = 0.0


class _OpenJob(Struct):
    """A measured job that has not ended."""

    left: int  # tasks that have not ended
    arrived: float
    length: str
    work_class: WorkClass | None  # None: its stages may have several
    tally: Tally


class RunRecord:
    """The record of one run; `World` calls it at every change."""

    def __init__(self, window: Window, grouping: Grouping = Grouping()) -> None:  # noqa: B008 — frozen
        self.window = window
        self.grouping = grouping
        self.arrived = self.ended = self.in_system = self.running = 0
        self.surplus = 0  # running pods whose work another one does or has done: copies, and what they beat
        self.evictions = 0  # of running tasks, to make room for others
        self.dropped = 0  # withdrawn before they had started
        self.never_ending = 0  # running tasks of infinite size
        self.response_seconds = self.system_seconds = 0.0  # the two sides of Little's law, over the whole run
        self.busy_seconds = 0.0  # running tasks, integrated over time
        self.work_ended = self.work_lost = 0.0
        self.tallies: dict[Labels, Tally] = defaultdict(Tally)
        self.peak_waiting = 0
        self.series: Series[Integrals] = Series(window.every, POINTS)  # over the whole run
        self.on_sample: Callable[[float], None] | None = None  # called at every sample of the series
        self.on_close: Callable[[], None] | None = None  # called when the window closes
        self.window_start: Integrals | None = None
        self.window_end: Integrals | None = None
        self._now = 0.0
        self._open_jobs: dict[int, _OpenJob] = {}
        self._tally_of: dict[tuple[WorkClass, str], Tally] = {}  # cache of `tallies` by class and job length

    def advance(self, now: float) -> None:
        """Advance to `now`; counts have not changed since the last call."""
        while self.series.due <= now:
            at = self.series.due
            self.series.add(self._integrals(at))
            if self.on_sample is not None:
                self.on_sample(at)
        passed = now - self._now
        self.system_seconds += passed * self.in_system
        self.busy_seconds += passed * (self.running + self.surplus)
        self._now = now

    def _integrals(self, at: float) -> Integrals:
        passed = at - self._now
        system = self.system_seconds + passed * self.in_system
        return Integrals(at, system, self.busy_seconds + passed * (self.running + self.surplus))

    @property
    def waiting(self) -> int:
        """Tasks that have been submitted and do not run."""
        return self.in_system - self.running

    @property
    def settled(self) -> int:
        """Tasks that have ended, were dropped or never end."""
        return self.ended + self.dropped + self.never_ending

    def measures(self, number: int) -> bool:
        """Whether the job is measured and has not ended."""
        return number in self._open_jobs

    def until_measured(self, jobs: Iterator[Arrival]) -> Iterator[Arrival]:
        """The jobs that arrive before all measured tasks have ended."""
        until = self.window.until_task
        return takewhile(lambda job: self.arrived < until or bool(self._open_jobs), jobs)

    def arrive(self, number: int, job: Arrival, now: float) -> None:
        """A job arrives. Its tasks count from `submit` on."""
        window = self.window
        if self.arrived < window.until_task:
            if self.window_start is None and self.arrived >= window.from_task and now >= window.from_seconds:
                self.window_start = self._integrals(now)
            if self.window_start is not None:
                self._open_jobs[number] = self._open_job(job, now)
        self.arrived += len(job.sizes)

    def _open_job(self, job: Arrival, now: float) -> _OpenJob:
        length = self.grouping.length(job)
        if job.dag is None:
            return _OpenJob(len(job.sizes), now, length, job.work_class, self._tally(job.work_class, length))
        tally = self.tallies[self.grouping.job_labels(job, length)]
        return _OpenJob(len(job.sizes), now, length, None, tally)

    def _tally(self, work_class: WorkClass, length: str) -> Tally:
        tally = self._tally_of.get((work_class, length))
        if tally is None:
            tally = self.tallies[self.grouping.labels(work_class, length)]
            self._tally_of[work_class, length] = tally
        return tally

    def submit(self, tasks: int) -> None:
        """Tasks of arrived jobs are submitted and wait."""
        self.in_system += tasks
        self.peak_waiting = max(self.peak_waiting, self.waiting)

    def close(self) -> None:
        """Arrivals have ended: close the window, since the rest of the run only drains."""
        if self.window_end is None:
            self.window_end = self._integrals(self._now)
            if self.on_close is not None:
                self.on_close()

    def start(self, run: TaskRun, now: float) -> None:
        """A task has started."""
        self.running += 1
        if run.size == inf:
            self.never_ending += 1
            job = self._open_jobs.get(run.job)
            if job is not None:
                self._tally(run.work_class, job.length).wait.add(now - run.arrived)

    def drop(self, run: TaskRun, now: float) -> None:
        """A waiting task is withdrawn."""
        self.in_system -= 1
        self.dropped += 1
        self.response_seconds += now - run.arrived

    def lose_surplus(self, run: TaskRun) -> None:
        """A running pod is stopped whose work another one does or has done."""
        self.surplus -= 1
        self.work_lost += run.size - run.remaining

    def end_surplus(self, run: TaskRun) -> None:
        """A pod has ended whose work another one had done."""
        self.surplus -= 1
        self.work_lost += run.size

    def lose(self, run: TaskRun) -> None:
        """A running task was lost and waits again."""
        self.running -= 1
        if run.size == inf:
            self.never_ending -= 1
        else:
            self.work_lost += run.size - run.remaining
        self.peak_waiting = max(self.peak_waiting, self.waiting)

    def evict(self, run: TaskRun) -> None:
        """A running task was evicted and waits again."""
        self.evictions += 1
        self.lose(run)

    def end(self, run: TaskRun, now: float) -> None:
        """A task has ended."""
        self.running -= 1
        self.in_system -= 1
        self.ended += 1
        response = now - run.arrived
        self.response_seconds += response
        self.work_ended += run.size
        job = self._open_jobs.get(run.job)
        if job is not None:
            tally = job.tally if job.work_class is run.work_class else self._tally(run.work_class, job.length)
            tally.response.add(response)
            tally.wait.add(run.started - run.arrived)
            tally.slowdown += response / run.size
            if run.task.spec.preferences:
                tally.preferring += 1
                tally.met += run.met
            job.left -= 1
            if not job.left:
                del self._open_jobs[run.job]
                job.tally.jobs.add(now - job.arrived)

    def aggregate(self) -> None:
        """Aggregate all histograms, to bound memory; call from time to time."""
        for tally in self.tallies.values():
            for times in (tally.response, tally.wait, tally.jobs):
                times.aggregate()


def total_allocatable(machines: Mapping[str, Machine], resource: str) -> int:
    """The sum over all machines."""
    return sum(amount_of(machine.node.allocatable, resource) for machine in machines.values())


class AllocationCurve:
    """Collects the curve from the events and commands of an engine."""

    def __init__(self, resource: str, machines: Mapping[str, Machine]) -> None:
        self._resource = resource
        self._capacity = total_allocatable(machines, resource)
        self._requested = self._allocated = 0
        self._amounts: dict[str, int] = {}  # uid -> requested amount
        self._sums: dict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))  # x -> count, sum of y

    def record_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine: its events and the commands it returned."""
        seen = [event.task for event in events if isinstance(event, TaskSeen)]
        arrived = [task for task in seen if not task.ended and task.uid not in self._amounts]
        gone = [task.uid for task in seen if task.ended]
        gone += [event.uid for event in events if isinstance(event, BindRefused)]
        self._amounts |= {task.uid: amount_of(task.spec.requests, self._resource) for task in arrived}
        self._allocated -= sum(self._amounts[uid] for uid in gone)
        bound = [command.uid for command in commands if isinstance(command, Bind)]
        self._allocated += sum(self._amounts[uid] for uid in bound)
        for task in arrived:
            self._requested += self._amounts[task.uid]
            x = round(100 * self._requested / self._capacity)
            count, total = self._sums[x]
            self._sums[x] = (count + 1, total + self._allocated)

    @property
    def curve(self) -> dict[int, float]:
        """Requested, in whole per cent of capacity -> allocated, in per cent; ascending."""
        means = ((x, total / count) for x, (count, total) in sorted(self._sums.items()))
        return {x: 100 * mean / self._capacity for x, mean in means}
