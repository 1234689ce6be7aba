"""What is written down while a world runs. Nothing here grows with the number of tasks that have ended.

Two books are kept apart and must agree in the end: times of tasks, added up as they end, and numbers in
the system, integrated over time. Little's law says that their totals are equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from math import inf
from typing import NamedTuple

from msgspec import Struct

from eclectus.sim.base.histogram import Histogram
from eclectus.sim.base.machine import Running
from eclectus.sim.base.result_labels import Cell, Groups
from eclectus.sim.base.series import Series
from eclectus.sim.base.work import Arrival, Kind

POINTS = 240  # of a series, at least, where a run lasts as long as expected: what a plot can show


@dataclass(frozen=True, slots=True)
class Window:
    """What counts: tasks and times from here on, and about how long it will be."""

    from_task: int = 0
    from_seconds: float = 0.0
    expected_end: float = 1.0
    until_task: float = inf  # tasks arrive until all before this one have ended

    @property
    def every(self) -> float:
        """Seconds between two moments of a series."""
        return max(self.expected_end / POINTS, 1e-9)


@dataclass(slots=True)
class Tally:
    """Times of the measured tasks and jobs of one cell, in seconds."""

    response: Histogram = field(default_factory=Histogram)  # arrival to end
    wait: Histogram = field(default_factory=Histogram)  # arrival to start
    jobs: Histogram = field(default_factory=Histogram)  # arrival to the end of the last task
    slowdown: float = 0.0  # sum of response over size


class Mark(NamedTuple):
    """Both integrals at a moment."""

    at: float = 0.0
    system_seconds: float = 0.0
    busy_seconds: float = 0.0


class _Open(Struct):
    """A measured job that has not ended."""

    left: int  # tasks
    arrived: float
    length: str
    kind: Kind | None  # None: its tasks are of several, perhaps
    tally: Tally


class Ledger:
    """The books of one run."""

    def __init__(self, window: Window, groups: Groups = Groups()) -> None:  # noqa: B008 — frozen
        self.window, self.groups = window, groups
        self.arrived = self.ended = self.in_system = self.running = 0
        self.dropped = 0  # went away before they had started
        self.staying = 0  # run and never end
        self.response_seconds = self.system_seconds = 0.0  # Little's two sides, over the whole run
        self.busy_seconds = 0.0  # tasks running, integrated
        self.work_ended = self.work_lost = 0.0
        self.tallies: dict[Cell, Tally] = defaultdict(Tally)
        self.most_waiting = 0
        self.series: Series[Mark] = Series(window.every, POINTS)  # over the whole run
        self.on_mark: Callable[[float], None] | None = None  # who else looks at the world now and then…
        self.on_close: Callable[[], None] | None = None  # …and when the window closes
        self.opened: Mark | None = None  # the window's…
        self.closed: Mark | None = None  # …two ends
        self._now = 0.0
        self._open_jobs: dict[int, _Open] = {}
        self._tally_of: dict[tuple[Kind, str], Tally] = {}  # the same tallies by kind and length of the job

    def clock(self, now: float) -> None:
        """Time passes; what stands now has stood since the last moment."""
        if now >= self.series.due:
            self._mark(now)
        passed = now - self._now
        self.system_seconds += passed * self.in_system
        self.busy_seconds += passed * self.running
        self._now = now

    def _mark(self, now: float) -> None:
        while self.series.due <= now:
            at = self.series.due
            self.series.add(self._integrals(at))
            if self.on_mark is not None:
                self.on_mark(at)

    def _integrals(self, at: float) -> Mark:
        passed = at - self._now
        system = self.system_seconds + passed * self.in_system
        return Mark(at, system, self.busy_seconds + passed * self.running)

    @property
    def waiting(self) -> int:
        """Tasks that have arrived and do not run."""
        return self.in_system - self.running

    @property
    def settled(self) -> int:
        """Tasks of which nothing more is to come."""
        return self.ended + self.dropped + self.staying

    @property
    def has_all(self) -> bool:
        """Whether all that is measured has ended, and nothing more needs to arrive."""
        return self.arrived >= self.window.until_task and not self._open_jobs

    def wanted(self, jobs: Iterator[Arrival]) -> Iterator[Arrival]:
        """Those that come before all that is measured has ended."""
        return jobs if self.window.until_task == inf else takewhile(lambda job: not self.has_all, jobs)

    def arrive(self, number: int, job: Arrival, now: float) -> None:
        """A job arrives. Its tasks `enter` when they are there."""
        if self.arrived < self.window.until_task and (self.opened is not None or self._opens(now)):
            self._open_jobs[number] = self._open(job, now)
        self.arrived += len(job.sizes)

    def _opens(self, now: float) -> bool:
        """Whether the window opens with this job."""
        if self.arrived < self.window.from_task or now < self.window.from_seconds:
            return False
        self.opened = self._integrals(now)
        return True

    def _open(self, job: Arrival, now: float) -> _Open:
        length = self.groups.length(job)
        if job.dag is None:
            return _Open(len(job.sizes), now, length, job.kind, self._tally(job.kind, length))
        return _Open(len(job.sizes), now, length, None, self.tallies[self.groups.job_cell(job, length)])

    def _tally(self, kind: Kind, length: str) -> Tally:
        tally = self._tally_of.get((kind, length))
        if tally is None:
            tally = self._tally_of[kind, length] = self.tallies[self.groups.cell(kind, length)]
        return tally

    def enter(self, tasks: int) -> None:
        """Tasks of jobs that have arrived are there, and wait."""
        self.in_system += tasks
        waiting = self.in_system - self.running
        if waiting > self.most_waiting:
            self.most_waiting = waiting

    def close(self) -> None:
        """No more arrivals: what follows only drains and is not measured."""
        if self.closed is None:
            self.closed = self._integrals(self._now)
            if self.on_close is not None:
                self.on_close()

    def start(self, run: Running, now: float) -> None:
        """A task begins to run."""
        self.running += 1
        if run.size == inf:
            self.staying += 1
            job = self._open_jobs.get(run.job)
            if job is not None:
                self._tally(run.kind, job.length).wait.add(now - run.arrived)

    def drop(self, run: Running, now: float) -> None:
        """A task goes away without having run."""
        self.in_system -= 1
        self.dropped += 1
        self.response_seconds += now - run.arrived

    def stay(self, run: Running, now: float) -> None:
        """The run is over, and this task would go on: it has been in the system until now."""
        self.response_seconds += now - run.arrived

    def lose(self, run: Running) -> None:
        """A running task was lost with its machine and waits again."""
        self.running -= 1
        if run.size == inf:
            self.staying -= 1
        else:
            self.work_lost += run.size - run.remaining
        self.most_waiting = max(self.most_waiting, self.waiting)

    def end(self, run: Running, now: float) -> None:
        """A task has ended."""
        self.running -= 1
        self.in_system -= 1
        self.ended += 1
        response = now - run.arrived
        self.response_seconds += response
        self.work_ended += run.size
        job = self._open_jobs.get(run.job)
        if job is not None:
            tally = job.tally if job.kind is run.kind else self._tally(run.kind, job.length)
            tally.response.add(response)
            tally.wait.add(run.started - run.arrived)
            tally.slowdown += response / run.size
            job.left -= 1
            if not job.left:
                del self._open_jobs[run.job]
                job.tally.jobs.add(now - job.arrived)

    def sum_up(self) -> None:
        """Now and then, so that what has ended takes no room."""
        for tally in self.tallies.values():
            for times in (tally.response, tally.wait, tally.jobs):
                times.sum_up()
