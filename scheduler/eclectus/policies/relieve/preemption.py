"""Preemption: pods of lower priority are evicted for a task that fits nowhere (kube-scheduler's PostFilter).

Kubernetes, "Pod Priority and Preemption"; KEP-4832 for asynchronous evictions. The task is nominated to the
node where evictions cost least, and its room is held there until the victims have ended. A victim always has
a lower priority than the task that it makes room for. Created again, it can evict only pods of still lower
priority, so every chain of evictions ends.

Departures:
- the victims on a node are remembered, so that many equal tasks do not search all nodes again each;
- evictions that are under way count against a PodDisruptionBudget before its status shows them;
- pods that are on their way out are used before others are evicted (framework/victims.py);
- a pod that more than 32 budgets select counts as one whose eviction violates one (cluster/budgets.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from eclectus.framework import Evict, Nominate, Refused, ReliefAction, Relieve, RelieveTraits, TaskClass, View
from eclectus.framework.victims import Victims, may_be_victim, victims_on
from eclectus.model.objects import Spec, Task, may_outrank
from eclectus.model.settings import setting

ROWS_MOST = 2_000  # nodes examined in one search, some tens of milliseconds; the next search examines others


class Candidates:
    """Row -> victims, of the rows examined so far."""

    def __init__(self, task: Task) -> None:
        self._task = task  # one of those that outrank the same pods
        self._found: dict[int, Victims | None] = {}  # None: no eviction there helps
        self._usage_cursor = self._shape_cursor = self._budget_changes = -1
        self._topology_version = self._pools_version = -1

    def best(self, view: View, task_class: TaskClass, enough: int) -> tuple[int, Victims] | None:
        """Row and victims of the least cost among at least `enough` candidates, if there are so many.

        As in kube-scheduler the search goes on until a candidate violates no budget; or until so many pods
        were compared with budgets as one step bears, and then the next search goes on.
        """
        self._forget_changed(view, task_class)
        candidates = {row: found for row, found in self._found.items() if found is not None}
        is_harmless = any(not found.cost[0] for found in candidates.values())
        gives_way = partial(may_be_victim, view, self._task)
        for row in self._unexamined(view, task_class):
            if (len(candidates) >= enough and is_harmless) or view.budgets.has_compared_enough:
                break
            found = victims_on(view, task_class, row, gives_way)
            # A bind under way may end without a change of what is held.
            if all(pod.node or view.placed.is_nominated(pod.uid) for pod, _ in view.placed.on_row(row)):
                self._found[row] = found
            if found is not None:
                candidates[row] = found
                is_harmless |= not found.cost[0]
        return min(candidates.items(), key=lambda item: item[1].cost, default=None)

    def _unexamined(self, view: View, task_class: TaskClass) -> Sequence[int]:
        """Rows to examine, from a random one on: the same few nodes must not serve every preemptor.

        Those with copies first, since a copy is the best victim wherever it runs.
        """
        rows = [row for row in np.flatnonzero(task_class.feasible).tolist() if row not in self._found]
        if len(rows) <= 1:
            return rows
        begin = view.rng.randrange(len(rows))
        return view.copies_first(rows[begin:] + rows[:begin])[:ROWS_MOST]

    def _forget_changed(self, view: View, task_class: TaskClass) -> None:
        cluster, budgets, topology = view.cluster, view.budgets, task_class.topology
        used, shaped = cluster.usage.since(self._usage_cursor), cluster.shape.since(self._shape_cursor)
        version = -1 if topology is None else topology.version
        pools_version = view.pools.limits_version  # priorities count inside a pool
        is_other = version != self._topology_version or pools_version != self._pools_version
        if used is None or shaped is None or is_other:
            self._found.clear()
        else:
            for row in (*used, *shaped):
                self._found.pop(row, None)
        if budgets.changes != self._budget_changes:
            for row in [row for row, found in self._found.items() if found is not None and found.has_budget]:
                del self._found[row]
        self._usage_cursor, self._shape_cursor = cluster.usage.head, cluster.shape.head
        self._budget_changes = budgets.changes
        self._topology_version, self._pools_version = version, pools_version


TABLES_MOST = 64  # kinds of preemptors whose candidates are remembered; the one used longest ago is dropped


@dataclass(eq=False)
class Preemption(Relieve):
    """Evicts pods of lower priority, those that cost least."""

    traits = RelieveTraits(evicts=True)

    min_candidate_nodes_percentage: int = setting(
        10,
        "share of the feasible nodes that are compared before victims are chosen",
        why="kube-scheduler's default",
        unit="%",
        least=0,
        most=100,
    )
    min_candidate_nodes_absolute: int = setting(
        100,
        "number of nodes that are compared at least, where so many are candidates",
        why="kube-scheduler's default",
        least=1,
        most=100_000,
    )

    def __post_init__(self) -> None:
        self._tables: dict[tuple[Spec, int, str], Candidates] = {}  # the one used last is the last

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """Reserve the cheapest node for each task in turn, and evict its victims."""
        share = refused.task_class.feasible_count * self.min_candidate_nodes_percentage // 100
        enough = max(share, self.min_candidate_nodes_absolute)
        in_vain: dict[str, None] = {}  # pools of which a task found no node where eviction helps
        for task in refused.tasks:
            if task.pool in in_vain or not may_outrank(task.priority, view.placed.lowest_priority):
                continue
            if view.pools.limit_on(task) is not None:
                continue  # with room held for those before it
            found = self._table(task).best(view, view.task_class(task), enough)
            if found is not None and found[1].is_room_free:
                return  # for any task of the class
            if found is None:  # nor would others of its pool, which have no higher priority
                in_vain[task.pool] = None
                continue
            row, victims = found
            yield Nominate(task, row)
            for pod in victims.pods:
                yield Evict(pod, task)

    def _table(self, task: Task) -> Candidates:
        kind = (task.spec, task.priority, task.pool)  # tasks of one kind outrank the same pods
        found = self._tables.pop(kind, None) or Candidates(task)
        self._tables[kind] = found
        if len(self._tables) > TABLES_MOST:
            del self._tables[next(iter(self._tables))]
        return found
