"""What each set of constraints demands of the nodes: what its pods hold and what those that wait will hold.

Kept only if a policy needs `prices`. Every pod that has a node counts,
whichever scheduler placed it, and of the others those of our profiles that are not gated. A bind changes
nothing: the pod's demand only turns from waiting to held. Services do not count, because the room that they
hold is not given back and so no part of the supply either; nor do probes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import Parts
from eclectus.feasibility.constraint_set import ConstraintSet, weighted_sets
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Amounts, Spec, Task

SETS_MOST = 1024  # the demand of further ones is not counted until some of these have none any more
LONG = SETS_MOST  # the row of all long tasks together, whatever their sets
LONG_FACTOR = 2.0  # a task is long if its estimate exceeds so many times the mean of those of late
ESTIMATES_AVERAGED = 1000  # tasks over which that mean is taken


class _Counted(Struct, frozen=True, gc=False):
    """A task as it was counted: its spec may change later."""

    spec: Spec
    holding: Amounts
    rows: tuple[tuple[int, float], ...]  # of `amounts`, and the weight with which it counts there
    parts: Parts
    is_long: bool


class SetDemand:
    """Amounts demanded, by set and resource.

    `sets`: set -> its row of `amounts`. `amounts`: shape [SETS_MOST + 1, columns], columns as the cluster's;
    the last row is what long tasks demand.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sets: dict[ConstraintSet, int] = {}
        self.sets: Mapping[ConstraintSet, int] = self._sets
        self.amounts: Floats = np.zeros((SETS_MOST + 1, len(cluster.columns)))
        self._tasks = [0] * (SETS_MOST + 1)  # that count in each row
        self._free_rows = list(range(SETS_MOST))[::-1]
        self._counted: dict[str, _Counted] = {}
        self._waiting: set[str] = set()
        self._holding: set[str] = set()
        self._estimates, self._mean_estimate = 0, 0.0  # seconds

    def is_long(self, uid: str) -> bool:
        """Whether a task was long among its like when it was first seen; without an estimate it is not."""
        counted = self._counted.get(uid)
        return counted is not None and counted.is_long

    # -- counting ------------------------------------------------------------------------------

    def wait(self, task: Task) -> None:
        """The task is pending, or was changed while it was."""
        self._waiting.add(task.uid)
        self._count(task)

    def leave(self, uid: str) -> None:
        """The task no longer waits; no error if it did not."""
        self._waiting.discard(uid)
        self._discount_unless_there(uid)

    def hold(self, task: Task) -> None:
        """The task has a node."""
        self._holding.add(task.uid)
        self._count(task)

    def release(self, uid: str) -> None:
        """The task has no node any more."""
        self._holding.discard(uid)
        self._discount_unless_there(uid)

    def regroup(self, task: Task) -> None:
        """Labels and owners of tasks do not count here."""

    def drop(self, constraints: ConstraintSet) -> None:
        """Forget a set of which no task counts."""
        self._free_rows.append(self._sets.pop(constraints))

    def widen(self) -> None:
        """Nodes may offer more resources by now: each needs a column."""
        more = len(self._cluster.columns) - self.amounts.shape[1]
        if more:
            self.amounts = np.pad(self.amounts, ((0, 0), (0, more)))

    def has_tasks(self, row: int) -> bool:
        """Whether any task counts in this row."""
        return self._tasks[row] > 0

    def _count(self, task: Task) -> None:
        before, spec = self._counted.get(task.uid), task.spec
        if spec.long_running or spec.probe:
            return
        if before is not None:
            if before.spec == spec and before.holding == task.holding:
                return
            self._add(before, -1)
        is_long = self._judge(task) if before is None else before.is_long
        rows = [(self._row_of(each), weight) for each, weight in weighted_sets(spec)]
        counting = tuple((row, weight) for row, weight in rows if row >= 0)
        counting += ((LONG, 1.0),) if is_long else ()
        counted = _Counted(spec, task.holding, counting, self._cluster.held_parts(task), is_long)
        self._counted[task.uid] = counted
        self._add(counted, 1)

    def _discount_unless_there(self, uid: str) -> None:
        if uid not in self._waiting and uid not in self._holding:
            counted = self._counted.pop(uid, None)
            if counted is not None:
                self._add(counted, -1)

    def _add(self, counted: _Counted, times: int) -> None:
        self.widen()
        amounts, tasks = self.amounts, self._tasks
        for row, weight in counted.rows:
            tasks[row] += times
            if not tasks[row]:
                amounts[row] = 0.0  # exactly: what was added in fractions leaves rounding errors
                continue
            for column, amount in counted.parts:
                amounts[row, column] += times * weight * amount

    def _row_of(self, constraints: ConstraintSet) -> int:
        """The row of a set; -1 if there are too many sets."""
        row = self._sets.get(constraints, -1)
        if row < 0 and self._free_rows:
            row = self._sets[constraints] = self._free_rows.pop()
        return row

    def _judge(self, task: Task) -> bool:
        """Whether a task that is seen for the first time is long. The first task of all is not."""
        if task.estimate is None:
            return False
        self._estimates = min(self._estimates + 1, ESTIMATES_AVERAGED)
        self._mean_estimate += (task.estimate - self._mean_estimate) / self._estimates
        return task.estimate > LONG_FACTOR * self._mean_estimate
