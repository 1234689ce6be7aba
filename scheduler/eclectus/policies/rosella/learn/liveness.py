"""Liveness of nodes: what runs where, whose tasks are overdue, which nodes are dead or back.

States: `unknown`, no samples; `live`; `suspect`, its tasks are overdue, so it counts as slower
(maths/overdue.py); `dead`, the last choice for real work. Departures from the paper (Q. Wu, Z. Liu,
"Rosella", 2020), whose benchmarks arrive all the time: only time in which something ran on a node is
evidence against it, so an idle node never counts as dead. A dead node on which a task ends is suspect until
it has enough new samples. A dead node on which nothing runs is reset after a half-life, since without probes
nothing else would bring it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.estimators.ratio import Floats, RatioMatrix
from eclectus.maths.overdue import speed_share
from eclectus.policies.rosella.learn.running import RunningTasks

REVIVAL_SAMPLES = 8  # of tasks that started after the node died, that make it live again
TRIAL_SHARE = 0.125  # share of its learned speed that a dead node counts with after a sign of life
HOUR = 3600.0
MAX_MEAN_SIZES = 4.0  # the most that one running task counts for in the correction of sizes, in mean sizes


class Death:
    """Since when a node counts as dead, and its samples since then."""

    __slots__ = ("has_sign_of_life", "new_samples", "since")

    def __init__(self, since: float) -> None:
        self.since, self.new_samples, self.has_sign_of_life = since, 0, False


class Liveness:
    """Running tasks, silence and deaths; arrays by row, shape [capacity]."""

    def __init__(self) -> None:
        self.share: Floats = np.ones(0)  # of its learned speed with which a node counts; 0: dead
        self._tasks = RunningTasks()
        self._running: list[int] = []  # tasks on each row; and their maximum
        self._peak_this_hour: list[int] = []  # in this hour
        self._peak_last_hour: list[int] = []  # and in the last hour
        self._hour = float("-inf")
        self._last_end: Floats = np.zeros(0)  # when a task last ended there, seconds
        self._deaths: dict[int, Death] = {}

    # -- rows ----------------------------------------------------------------------------------

    def open_rows(self, rows: int) -> None:
        """Extend the arrays to `rows` rows."""
        missing = rows - len(self.share)
        if missing > 0:
            self.share = np.pad(self.share, (0, missing), constant_values=1.0)
            self._last_end = np.pad(self._last_end, (0, missing))
            for counts in (self._running, self._peak_this_hour, self._peak_last_hour):
                counts.extend([0] * missing)

    def clear_row(self, row: int) -> None:
        """The row belongs to no node or to a new one: no running tasks, not dead."""
        for uid in self._tasks.uids_on(row):
            self._tasks.remove(uid)
        self._running[row] = self._peak_this_hour[row] = self._peak_last_hour[row] = 0
        self.reset(row)

    def reset(self, row: int) -> None:
        """The row is not dead and counts with its full learned speed."""
        self.share[row] = 1.0
        self._deaths.pop(row, None)

    # -- tasks ---------------------------------------------------------------------------------

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """A task runs; further calls for the same task change nothing."""
        if uid not in self._tasks:
            self._tasks.add(uid, row, workload, now)
            self._running[row] += 1
            self._peak_this_hour[row] = max(self._peak_this_hour[row], self._running[row])

    def left(self, uid: str, now: float) -> None:
        """A task no longer runs; it may never have been seen running."""
        row = self._tasks.remove(uid)
        if row is not None:
            self._running[row] -= 1
            if row in self._deaths:
                self._last_end[row] = now

    def ended(self, row: int, began: float, now: float) -> bool:
        """A task has run to its end; returns whether its time is a sample of the node.

        On a dead node, only tasks that started after its death are samples, since others stood still with it.
        But any end is a sign of life, after which the node gets a little real work.
        """
        self._last_end[row] = now
        death = self._deaths.get(row)
        if death is None:
            self.share[row] = 1.0
            return True
        death.has_sign_of_life = True
        self.share[row] = TRIAL_SHARE
        is_sample = began >= death.since
        death.new_samples += is_sample
        return is_sample

    def revived_since(self, row: int) -> float | None:
        """Make the node live again if it has enough new samples; returns when it died, else None."""
        death = self._deaths.get(row)
        if death is None or death.new_samples < REVIVAL_SAMPLES:
            return None
        self.reset(row)
        return death.since

    # -- failure detection -------------------------------------------------------------------------------

    def is_dead(self, row: int) -> bool:
        """Whether the node counts as dead: it died and has shown no sign of life since."""
        return row in self._deaths and not self._deaths[row].has_sign_of_life

    def slots(self, now: float) -> NDArray[np.int64]:
        """The maximum number of tasks seen running on each row in the last one to two hours."""
        if now - self._hour >= HOUR:
            self._hour = now
            self._peak_last_hour, self._peak_this_hour = self._peak_this_hour, list(self._running)
        return np.maximum(self._peak_last_hour, self._peak_this_hour)

    def silence_shares(
        self, now: float, matrix: RatioMatrix, index: Mapping[str, int], unlikelihood: float
    ) -> Floats:
        """The upper bound of each row's speed that overdue tasks give, as a share of its learned speed, 0..1.

        1 for dead rows, which are not checked. `index`: workload -> row of the matrix.
        """
        rows, work, since = self._tasks.columns(index)
        is_checked = (work >= 0) & ~self._marked(self._dead_rows())[rows]
        rows, work, since = rows[is_checked], work[is_checked], since[is_checked]
        pace = matrix.rate[work, rows] / _size_correction(matrix, work, rows, now - since)
        overruns = (now - np.maximum(since, self._last_end[rows])) * pace
        return speed_share(rows, overruns, len(self.share), unlikelihood)

    def mark_dead(self, rows: NDArray[np.intp], now: float) -> list[int]:
        """These rows count as dead from now on; returns those that did not before."""
        died = [row for row in rows.tolist() if not self.is_dead(row)]
        for row in died:
            self._deaths[row] = Death(now)
            self._last_end[row] = now
        return died

    def apply_shares(self, share: Floats, nodes: int) -> None:
        """Take over the shares. Dead rows get 0, unless all nodes are dead, which must be an error."""
        dead = self._dead_rows()
        self.share = share
        for row, death in self._deaths.items():
            if death.has_sign_of_life:
                share[row] = min(share[row], TRIAL_SHARE)
        if len(dead) < nodes:
            share[dead] = 0.0

    def idle_dead_rows(self, now: float, after: float) -> list[int]:
        """Dead rows on which nothing has run for `after` seconds."""
        return [row for row in self._deaths if not self._running[row] and now - self._last_end[row] >= after]

    def is_dead_or_on_trial(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the rows are dead, or have shown a sign of life since but too few samples."""
        return self._marked(self._deaths)[rows]

    def _dead_rows(self) -> list[int]:
        return [row for row in self._deaths if self.is_dead(row)]

    def _marked(self, rows: Iterable[int]) -> NDArray[np.bool_]:
        """True for these rows; shape [capacity]."""
        marks = np.zeros(len(self.share), dtype=bool)
        marks[list(rows)] = True
        return marks


def _size_correction(
    matrix: RatioMatrix, work: NDArray[np.intp], rows: NDArray[np.intp], ages: Floats
) -> Floats:
    """The factor by which the workload's size is likely too small, for each running task.

    Short tasks end first, so sizes are too small while most tasks that started are still running. The time
    spent by all tasks, running ones included, over the number of ended ones is not too small. A running task
    counts for MAX_MEAN_SIZES at most, or hung tasks would hide that their node has stopped.
    """
    done = matrix.count.sum(axis=1)
    sizes = np.minimum(ages * matrix.factor[rows] / matrix.size[work], MAX_MEAN_SIZES)
    spent = np.bincount(work, sizes, minlength=len(done))
    factor: Floats = 1.0 + spent / np.maximum(done, 1.0)
    return factor[work]
