"""The samples of one node by workload, and the tests for a change of its speed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import log

from eclectus.maths import numbers
from eclectus.maths.cusum import AT_REST, changed_since, shown, step
from eclectus.maths.estimators.run_times import Samples

Stale = list[tuple[int, float]]
"""(workload, time): samples of the workload from before that time are outdated."""


class Cell:
    """The window of samples of one workload on one node, and the CUSUM over them.

    `running` is the sum of the scores so far of the tasks that were still running at the last sample.
    """

    __slots__ = ("running", "samples", "sums")

    def __init__(self) -> None:
        self.samples, self.sums, self.running = Samples(), AT_REST, 0.0


class NodeCells:
    """The cells of one node by workload, and one more CUSUM over the samples of all its workloads.

    A change of the node affects all its workloads, so its samples are also tested together: with many
    workloads, each alone would need a long time for the ten samples of an alarm. An alarm over all workloads
    drops samples of all windows, so it must be rarer the more windows there are: its threshold is higher by
    ln(cells), because the mean run to a false alarm grows by about e with each 1 (maths/cusum.py).

    `running` is the sum of the scores so far of all tasks that were still running at the last sample.
    """

    __slots__ = ("by_workload", "running", "sums")

    def __init__(self) -> None:
        self.by_workload: dict[int, Cell] = {}
        self.sums, self.running = AT_REST, 0.0

    def cell(self, workload: int) -> Cell:
        """The cell of this workload, created on demand."""
        found = self.by_workload.get(workload)
        if found is None:
            found = self.by_workload[workload] = Cell()
        return found

    def add_score(
        self, workload: int, score: float, running: Mapping[int, float], at: float, slack: float
    ) -> None:
        """Add the score of one more sample to both tests.

        `running`: by workload the scores so far of the tasks that still run on the node, added up.
        """
        cell, mine, total = self.by_workload[workload], running.get(workload, 0.0), sum(running.values())
        cell.sums = step(numbers, cell.sums, shown(score, mine - cell.running), at, slack)
        self.sums = step(numbers, self.sums, shown(score, total - self.running), at, slack)
        cell.running, self.running = mine, total

    def count_running(self, workloads: Iterable[int], running: Mapping[int, float]) -> None:
        """Take these as the scores so far, without a change of the sums: expected times have changed."""
        for each in workloads:
            self.by_workload[each].running = running.get(each, 0.0)
        self.running = sum(running.values())

    def reset_tests(self) -> None:
        """Start all tests again from 0."""
        self.sums = AT_REST
        for each in self.by_workload.values():
            each.sums = AT_REST

    def check_alarm(self, workload: int, threshold: float) -> Stale:
        """What the newest score, of this workload, has shown to be outdated; empty without an alarm.

        A test that raised an alarm starts again from 0.
        """
        since = changed_since(self.sums, threshold + log(len(self.by_workload)))
        if since is not None:
            self.reset_tests()
            return [(each, since) for each in self.by_workload]
        cell = self.by_workload[workload]
        since = changed_since(cell.sums, threshold)
        if since is None:
            return []
        cell.sums = AT_REST
        return [(workload, since)]
