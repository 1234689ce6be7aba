"""Failure detector: which nodes count as dead for a namespace, because its tasks are overdue or too slow.

Tasks are compared with tasks of the same workload and requests alone (EndedShapes). A node that seems slow
by work of which tasks with different requests have ended counts as a typical one here: the times may differ
because the requests do.
"""

from dataclasses import dataclass
from math import nan

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.maths.load import cut_margin, cut_off_rate, error_aimed, speed_share, unlikelihood
from eclectus.maths.numbers import Floats, sum_of_products
from eclectus.maths.service_rates import NEGLIGIBLE, RatioMatrix
from eclectus.policies.rosella.namespaces import Knowledge
from eclectus.policies.rosella.rates import RunningTasks

MAX_MEAN_SIZES = 4.0  # the most that one running task counts for in the correction of sizes, in mean sizes


class Seen(Struct, frozen=True):
    """What all namespaces have in common at a check: the nodes' rows, and arrays by row."""

    now: float
    rows: NDArray[np.intp]  # of all nodes
    slots: NDArray[np.int64]
    last_end: Floats
    load: float


@dataclass(frozen=True, slots=True)
class FailureDetector:
    """`certainty` is x and `spare_share` c0 of maths/load.py.

    `reset_after`: seconds after which a dead node on which nothing runs counts as unknown again.
    """

    certainty: float
    spare_share: float
    reset_after: float

    def check(self, space: Knowledge, running: RunningTasks, seen: Seen) -> list[int]:
        """Check all nodes for one namespace; returns the rows that died or were reset."""
        liveness, matrix, rows, nodes = space.liveness, space.rates.matrix, seen.rows, len(seen.rows)
        share = _silence_shares(space, running, seen, unlikelihood(nodes, self.certainty))
        speed, slots = matrix.factor[rows], seen.slots[rows]
        mean = float(sum_of_products(speed, slots)) / slots.sum() if slots.any() else float(speed.mean())
        limit = cut_off_rate(mean * nodes, seen.load, nodes, self.spare_share)
        margin = cut_margin(matrix.samples[rows], nodes, self.certainty, error_aimed(seen.load))
        # Whether tasks with different requests have ended of workloads of which the row has samples.
        is_mixed = np.any(matrix.count[space.rates.ended.mixed()] > NEGLIGIBLE, axis=0)
        speed = np.where(is_mixed[rows], np.maximum(speed, 1.0), speed)
        # What overdue tasks bound is the speed itself: the learned one cancels out, and with it its error.
        is_silent = (share[rows] < 1.0) & (speed * share[rows] < limit)
        is_slow = (speed * (1.0 + margin) < limit) & ~liveness.marked(liveness.deaths)[rows]
        changed = liveness.mark_dead(rows[is_silent | is_slow], seen.now)
        # Dead nodes on which nothing has run for long are reset.
        idle = liveness.idle_dead_rows(running.by_row, seen.now, self.reset_after)
        for row in idle:
            liveness.reset(row)
            space.rates.clear(row)
        changed += idle
        liveness.apply_shares(share, nodes)
        return changed


def _silence_shares(space: Knowledge, running: RunningTasks, seen: Seen, unlikelihood: float) -> Floats:
    """What overdue tasks leave of each row's learned speed at most, 0..1; 1 for dead rows, not checked."""
    liveness, matrix = space.liveness, space.rates.matrix
    rows, kinds, since = running.columns()
    if not len(rows):
        return np.ones(len(liveness.share))
    works, paces = _by_kind(space, running)
    work, most = works[kinds], paces[kinds]
    is_checked = (work >= 0) & ~liveness.marked(liveness.dead_rows())[rows]
    rows, work, since, most = rows[is_checked], work[is_checked], since[is_checked], most[is_checked]
    pace = np.minimum(matrix.rate[work, rows], most) / _size_correction(matrix, work, rows, seen.now - since)
    overruns = (seen.now - np.maximum(since, liveness.silent_since(seen.last_end)[rows])) * pace
    return speed_share(rows, overruns, len(liveness.share), unlikelihood)


def _by_kind(space: Knowledge, running: RunningTasks) -> tuple[NDArray[np.intp], Floats]:
    """By number of a kind: the workload, -1 if no comparable task has ended; the most tasks a second."""
    numbers, rates = running.numbers, space.rates
    count = 1 + max(numbers.values())
    works, paces = np.full(count, -1), np.full(count, nan)
    for (workload, requests), number in numbers.items():
        index = rates.index.get(workload, -1)
        pace = rates.ended.pace(index, requests)
        if pace is not None:
            works[number], paces[number] = index, pace
    return works, paces


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
