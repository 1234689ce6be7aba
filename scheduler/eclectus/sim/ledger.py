"""What is written down while a world runs. Nothing here grows with the number of tasks that have ended.

Two books are kept apart and must agree in the end: times of tasks, added up as they end, and numbers in
the system, integrated over time. Little's law says that their totals are equal.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import inf

from eclectus.sim.histogram import Histogram
from eclectus.sim.machine import Running

POINTS = 240  # samples over the measured window: what a plot can show


@dataclass(frozen=True, slots=True)
class Window:
    """What counts: tasks and times from here on, and about how long it will be."""

    from_task: int = 0
    from_seconds: float = 0.0
    expected_end: float = 1.0
    until_task: float = inf  # tasks arrive until all before this one have ended

    @property
    def every(self) -> float:
        """Seconds between two samples."""
        return max((self.expected_end - self.from_seconds) / POINTS, 1e-9)


@dataclass(slots=True)
class Tally:
    """Times of the measured tasks of one kind, in seconds."""

    response: Histogram = field(default_factory=Histogram)  # arrival to end
    wait: Histogram = field(default_factory=Histogram)  # arrival to start
    slowdown: float = 0.0  # sum of response over size


class Ledger:
    """The books of one run."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.arrived = self.ended = self.in_system = self.running = 0
        self.dropped = 0  # went away before they had started
        self.staying = 0  # run and never end
        self.response_seconds = self.system_seconds = 0.0  # Little's two sides, over the whole run
        self.busy_seconds = 0.0  # tasks running, integrated
        self.work_ended = self.work_lost = 0.0
        self.tallies: dict[str, Tally] = defaultdict(Tally)
        self.jobs = Histogram()
        self.samples: list[tuple[float, int, int]] = []  # time, in system, waiting
        self.most_waiting = 0
        self.opened: tuple[float, float, float] | None = None  # time and both integrals…
        self.closed: tuple[float, float, float] | None = None  # …at the window's two ends
        self._now = 0.0
        self._next_sample = window.from_seconds
        self._open_jobs: dict[int, tuple[int, float]] = {}  # job -> measured tasks not ended, arrival

    def clock(self, now: float) -> None:
        """Time passes; what stands now has stood since the last moment."""
        if self.opened is not None and self.closed is None:
            while self._next_sample <= now:
                self.samples.append((self._next_sample, self.in_system, self.waiting))
                self._next_sample += self.window.every
        passed = now - self._now
        self.system_seconds += passed * self.in_system
        self.busy_seconds += passed * self.running
        self._now = now

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

    def arrive(self, job: int, tasks: int, now: float) -> None:
        """A job arrives."""
        window = self.window
        measured = window.from_task <= self.arrived < window.until_task and now >= window.from_seconds
        if measured:
            if self.opened is None:
                self.opened = (now, self.system_seconds, self.busy_seconds)
                self._next_sample = now
            self._open_jobs[job] = (tasks, now)
        self.arrived += tasks
        self.in_system += tasks
        self.most_waiting = max(self.most_waiting, self.waiting)

    def close(self) -> None:
        """No more arrivals: what follows only drains and is not measured."""
        if self.closed is None:
            self.closed = (self._now, self.system_seconds, self.busy_seconds)

    def start(self, run: Running, now: float) -> None:
        """A task begins to run."""
        self.running += 1
        if run.size == inf:
            self.staying += 1
            if run.job in self._open_jobs:
                self.tallies[run.kind.name].wait.add(now - run.arrived)

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
        if run.job in self._open_jobs:
            tally = self.tallies[run.kind.name]
            tally.response.add(response)
            tally.wait.add(run.started - run.arrived)
            tally.slowdown += response / run.size
            self._end_of_job(run.job, now)

    def _end_of_job(self, job: int, now: float) -> None:
        left, arrived = self._open_jobs[job]
        if left > 1:
            self._open_jobs[job] = (left - 1, arrived)
        else:
            del self._open_jobs[job]
            self.jobs.add(now - arrived)
