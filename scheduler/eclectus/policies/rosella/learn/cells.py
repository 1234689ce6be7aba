"""What one node has shown at each kind of work, and whether it has begun to show something else."""

from __future__ import annotations

from math import log

from eclectus.maths import numbers
from eclectus.maths.cusum import AT_REST, changed_since, step
from eclectus.maths.estimators.samples import Samples

Stale = list[tuple[int, float]]
"""(workload, time): samples of the workload from before that time are of another speed."""


class Cell:
    """The window of samples of one kind of work, and the CUSUM over them."""

    __slots__ = ("samples", "sums")

    def __init__(self) -> None:
        self.samples, self.sums = Samples(), AT_REST


class NodeCells:
    """The cells of one node by workload, and one more CUSUM over its samples of all work.

    What befalls a node shows in all its work, so its samples are also tested together: where there are
    many kinds of work, each alone would wait long for its ten samples. An alarm over all gives up all
    windows, so it must be the rarer the more there are: ln(cells) more on the threshold, because the mean
    run to a false alarm grows about e-fold with each 1 there (maths/cusum.py).
    """

    __slots__ = ("by_workload", "sums")

    def __init__(self) -> None:
        self.by_workload: dict[int, Cell] = {}
        self.sums = AT_REST

    def cell(self, workload: int) -> Cell:
        """The cell of this workload, which may be new."""
        found = self.by_workload.get(workload)
        if found is None:
            found = self.by_workload[workload] = Cell()
        return found

    def add_score(self, cell: Cell, score: float, at: float, slack: float) -> None:
        """Put one more score of the cell to both tests."""
        cell.sums = step(numbers, cell.sums, score, at, slack)
        self.sums = step(numbers, self.sums, score, at, slack)

    def check_alarm(self, workload: int, threshold: float) -> Stale:
        """What the newest score, of this workload, has shown to be stale; its tests begin anew."""
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
