"""The watch over nodes: what runs where, who has gone silent, who counts as dead and who is back.

Rosella's states (rosella.md 5.4): `unknown`, no sample yet; `live`; `suspect`, its tasks are overdue, so
that it is believed slower (maths/liveness.py); `dead`, no real work. Departures from the paper, whose
benchmarks always come: only time in which something ran on a node is evidence against it, so an idle
node is never found dead. A dead one on which something ends after all is suspect until it has shown
enough; one on which nothing runs any more is forgiven after a half-life: without probes nothing else would
bring it back.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.estimators.ratio import Floats, RatioMatrix
from eclectus.maths.overdue import speed_share
from eclectus.policies.rosella.learn.running import RunningTasks

REVIVAL_SAMPLES = 8  # samples, of tasks begun after a node was found dead, that bring it back
TRIAL_SHARE = (
    0.125  # share of its old speed that a dead node is believed to have once it has shown a sign of life
)
HOUR = 3600.0
MAX_MEAN_SIZES = 4.0  # mean sizes that a running task counts for when sizes are doubted


class Death:
    """Since when a node counts as dead, and what it has shown since."""

    __slots__ = ("has_sign_of_life", "new_samples", "since")

    def __init__(self, since: float) -> None:
        self.since, self.new_samples, self.has_sign_of_life = since, 0, False


class Liveness:
    """Arrays over rows, shape [capacity]."""

    def __init__(self) -> None:
        self.share: Floats = np.ones(0)  # of its learned speed that a node is believed to have; 0: dead
        self._tasks = RunningTasks()
        self._running: list[int] = []  # tasks on each row; and the most at a time…
        self._peak_this_hour: list[int] = []  # …in this hour…
        self._peak_last_hour: list[int] = []  # …and in the last
        self._hour = float("-inf")
        self._last_end: Floats = np.zeros(0)  # when something last ended there
        self._deaths: dict[int, Death] = {}

    # -- rows ----------------------------------------------------------------------------------

    def open_rows(self, rows: int) -> None:
        """Make room for rows up to `rows`."""
        missing = rows - len(self.share)
        if missing > 0:
            self.share = np.pad(self.share, (0, missing), constant_values=1.0)
            self._last_end = np.pad(self._last_end, (0, missing))
            for counts in (self._running, self._peak_this_hour, self._peak_last_hour):
                counts.extend([0] * missing)

    def clear_row(self, row: int) -> None:
        """Another node's row, or one that begins anew: nothing runs there and nothing is held against it."""
        for uid in self._tasks.uids_on(row):
            self._tasks.remove(uid)
        self._running[row] = self._peak_this_hour[row] = self._peak_last_hour[row] = 0
        self.reset(row)

    def reset(self, row: int) -> None:
        """Nothing is held against it."""
        self.share[row] = 1.0
        self._deaths.pop(row, None)

    # -- tasks ---------------------------------------------------------------------------------

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """A task runs; being told so again changes nothing."""
        if uid not in self._tasks:
            self._tasks.add(uid, row, workload, now)
            self._running[row] += 1
            self._peak_this_hour[row] = max(self._peak_this_hour[row], self._running[row])

    def left(self, uid: str, now: float) -> None:
        """A task runs no more, if it did."""
        row = self._tasks.remove(uid)
        if row is not None:
            self._running[row] -= 1
            if row in self._deaths:
                self._last_end[row] = now

    def ended(self, row: int, began: float, now: float) -> bool:
        """A task has run to its end; whether its time tells of the node as it is now.

        Of a dead node only what began after its death does: the rest has stood still with it. But whatever
        ends there is a sign of life, and lets the node try a little real work.
        """
        self._last_end[row] = now
        death = self._deaths.get(row)
        if death is None:
            self.share[row] = 1.0
            return True
        death.has_sign_of_life = True
        self.share[row] = TRIAL_SHARE
        is_fresh = began >= death.since
        death.new_samples += is_fresh
        return is_fresh

    def revived_since(self, row: int) -> float | None:
        """When the node died, if it has just shown enough to be alive again; None otherwise."""
        death = self._deaths.get(row)
        if death is None or death.new_samples < REVIVAL_SAMPLES:
            return None
        self.reset(row)
        return death.since

    # -- judging -------------------------------------------------------------------------------

    def is_dead(self, row: int) -> bool:
        """Whether it counts as dead."""
        return row in self._deaths and not self._deaths[row].has_sign_of_life

    def slots(self, now: float) -> NDArray[np.int64]:
        """The most tasks seen running at a time on each row in the last one to two hours."""
        if now - self._hour >= HOUR:
            self._hour = now
            self._peak_last_hour, self._peak_this_hour = self._peak_this_hour, list(self._running)
        return np.maximum(self._peak_last_hour, self._peak_this_hour)

    def silence_shares(
        self, now: float, matrix: RatioMatrix, index: Mapping[str, int], unlikelihood: float
    ) -> Floats:
        """What share of its learned speed silence leaves each row; 1 for the dead, who are not judged.

        `index`: workload -> row of the matrix.
        """
        rows, work, since = self._tasks.columns(index)
        is_judged = work >= 0
        is_judged[np.isin(rows, [row for row in self._deaths if self.is_dead(row)])] = False
        rows, work, since = rows[is_judged], work[is_judged], since[is_judged]
        pace = matrix.rate[work, rows] / _size_correction(matrix, work, rows, now - since)
        overruns = (now - np.maximum(since, self._last_end[rows])) * pace
        return speed_share(rows, overruns, len(self.share), unlikelihood)

    def mark_dead(self, rows: NDArray[np.intp], now: float) -> list[int]:
        """These rows count as dead; those of them that did not before."""
        died = [row for row in rows.tolist() if not self.is_dead(row)]
        for row in died:
            self._deaths[row] = Death(now)
            self._last_end[row] = now
        return died

    def apply_shares(self, share: Floats, nodes: int) -> None:
        """Go by what silence leaves; the dead get no work, unless all of `nodes` seem dead: then we err."""
        dead = [row for row in self._deaths if self.is_dead(row)]
        self.share = share
        for row, death in self._deaths.items():
            if death.has_sign_of_life:
                share[row] = min(share[row], TRIAL_SHARE)
        if len(dead) < nodes:
            share[dead] = 0.0

    def idle_dead_rows(self, now: float, after: float) -> list[int]:
        """Dead rows on which nothing has run for so long, seconds."""
        return [row for row in self._deaths if not self._running[row] and now - self._last_end[row] >= after]

    def is_dead_or_on_trial(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the rows are dead, or were until they stirred and have not shown enough since."""
        return np.isin(rows, list(self._deaths))


def _size_correction(
    matrix: RatioMatrix, work: NDArray[np.intp], rows: NDArray[np.intp], ages: Floats
) -> Floats:
    """By what factor a workload's size is likely too small, for each task that runs.

    What ends first is short, so sizes are too small while most of the tasks begun are still running. All
    the time spent, by running tasks too, over the number of those that have ended is not. Of a task that
    stands still only so much counts, or nodes that have stopped would excuse themselves.
    """
    done = matrix.count.sum(axis=1)
    sizes = np.minimum(ages * matrix.factor[rows] / matrix.size[work], MAX_MEAN_SIZES)
    spent = np.bincount(work, sizes, minlength=len(done))
    factor: Floats = 1.0 + spent / np.maximum(done, 1.0)
    return factor[work]
