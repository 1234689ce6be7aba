"""The samples of one node by workload, and the tests for a change of its speed."""

from __future__ import annotations

from math import log

from eclectus.maths import numbers
from eclectus.maths.cusum import AT_REST, changed_since, step
from eclectus.maths.estimators.samples import Samples

Stale = list[tuple[int, float]]
"""(workload, time): samples of the workload from before that time are outdated."""


class Cell:
    """The window of samples of one workload on one node, and the CUSUM over them."""

    __slots__ = ("samples", "sums")

    def __init__(self) -> None:
        self.samples, self.sums = Samples(), AT_REST


class NodeCells:
    """The cells of one node by workload, and one more CUSUM over the samples of all its workloads.

    A change of the node affects all its workloads, so its samples are also tested together: with many
    workloads, each alone would need a long time for the ten samples of an alarm. An alarm over all workloads
    drops samples of all windows, so it must be rarer the more windows there are: its threshold is higher by
    ln(cells), because the mean run to a false alarm grows by about e with each 1 (maths/cusum.py).
    """

    __slots__ = ("by_workload", "sums")

    def __init__(self) -> None:
        self.by_workload: dict[int, Cell] = {}
        self.sums = AT_REST

    def cell(self, workload: int) -> Cell:
        """The cell of this workload, created on demand."""
        found = self.by_workload.get(workload)
        if found is None:
            found = self.by_workload[workload] = Cell()
        return found

    def add_score(self, cell: Cell, score: float, at: float, slack: float) -> None:
        """Add one more score of the cell to both tests."""
        cell.sums = step(numbers, cell.sums, score, at, slack)
        self.sums = step(numbers, self.sums, score, at, slack)

    def check_alarm(self, workload: int, threshold: float) -> Stale:
        """What the newest score, of this workload, has shown to be outdated; empty without an alarm.

        A test that raised an alarm starts again from 0.
        """
        since = changed_since(self.sums, threshold + log(len(self.by_workload)))
        if since is not None:
            self.sums = AT_REST
            for each in self.by_workload.values():
                each.sums = AT_REST
            return [(each, since) for each in self.by_workload]
        cell = self.by_workload[workload]
        since = changed_since(cell.sums, threshold)
        if since is None:
            return []
        cell.sums = AT_REST
        return [(workload, since)]
