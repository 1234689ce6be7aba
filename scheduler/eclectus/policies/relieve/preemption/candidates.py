"""The nodes on which tasks of one class and priority fit after evictions; an update costs what has changed.

The victims on a node are found once and kept until the node or a budget of its pods changes, so that a
thousand equal tasks cost little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eclectus.framework import TaskClass, View
from eclectus.framework.victims import GivesWay, Victims, victims_on

ROWS_MOST = 2_000  # nodes examined in one search, some tens of milliseconds; the next search examines others


class Candidates:
    """Row -> victims, of the rows examined so far."""

    def __init__(self, gives_way: GivesWay) -> None:
        self._gives_way = gives_way
        self._found: dict[int, Victims | None] = {}  # None: no eviction there helps
        self._usage_cursor = self._shape_cursor = self._budget_changes = -1
        self._topology_version = -1

    def best(self, view: View, task_class: TaskClass, enough: int) -> tuple[int, Victims] | None:
        """Row and victims of the least cost among at least `enough` candidates, if there are so many.

        As in kube-scheduler the search goes on until a candidate violates no budget.
        """
        self._forget_changed(view, task_class)
        candidates = {row: found for row, found in self._found.items() if found is not None}
        is_harmless = any(not found.cost[0] for found in candidates.values())
        for row in self._unexamined(view, task_class):
            if len(candidates) >= enough and is_harmless:
                break
            found = victims_on(view, task_class, row, self._gives_way)
            if not _has_binds_under_way(view, row):  # which may end without a change of what is held
                self._found[row] = found
            if found is not None:
                candidates[row] = found
                is_harmless |= not found.cost[0]
        if not candidates:
            return None
        return min(candidates.items(), key=lambda item: item[1].cost)

    def _unexamined(self, view: View, task_class: TaskClass) -> Sequence[int]:
        """Rows to examine, from a random one on: the same few nodes must not serve every preemptor."""
        rows = [row for row in np.flatnonzero(task_class.feasible).tolist() if row not in self._found]
        if len(rows) <= 1:
            return rows
        begin = view.rng.randrange(len(rows))
        return (rows[begin:] + rows[:begin])[:ROWS_MOST]

    def _forget_changed(self, view: View, task_class: TaskClass) -> None:
        cluster, budgets, topology = view.cluster, view.budgets, task_class.topology
        used, shaped = cluster.usage.since(self._usage_cursor), cluster.shape.since(self._shape_cursor)
        version = -1 if topology is None else topology.version
        if used is None or shaped is None or version != self._topology_version:
            self._found.clear()
        else:
            for row in (*used, *shaped):
                self._found.pop(row, None)
        if budgets.changes != self._budget_changes:
            for row in [row for row, found in self._found.items() if found is not None and found.has_budget]:
                del self._found[row]
        self._usage_cursor, self._shape_cursor = cluster.usage.head, cluster.shape.head
        self._budget_changes, self._topology_version = budgets.changes, version


def _has_binds_under_way(view: View, row: int) -> bool:
    return any(not pod.node and not view.is_nominated(pod.uid) for pod, _ in view.placed_pods(row))
