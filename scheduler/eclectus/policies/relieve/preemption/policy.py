"""Preemption: pods of lower priority are evicted for a task that fits nowhere (kube-scheduler's PostFilter).

Kubernetes, "Pod Priority and Preemption"; KEP-4832 for asynchronous evictions. The task is nominated to the
node where evictions cost least, and its room is held there until the victims have ended. A victim always has
a lower priority than the task that it makes room for. Created again, it can evict only pods of still lower
priority, so every chain of evictions ends.

Departures:
- the victims on a node are remembered, so that many equal tasks do not search all nodes again each;
- evictions that are under way count against a PodDisruptionBudget before its status shows them;
- pods that are on their way out are used before others are evicted (framework/victims.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from eclectus.framework import Evict, Nominate, Refused, ReliefAction, Relieve, RelieveTraits, View
from eclectus.model.objects import Spec, Task
from eclectus.model.outranking import may_outrank, outranks
from eclectus.model.settings import Setting
from eclectus.policies.relieve.preemption.candidates import Candidates

TABLES_MOST = 64  # kinds of preemptors whose candidates are remembered; the one used longest ago is dropped


@dataclass(eq=False)
class Preemption(Relieve):
    """Evicts pods of lower priority, those that cost least."""

    traits = RelieveTraits(evicts=True)

    min_candidate_nodes_percentage: Annotated[
        int,
        Setting(
            "share of the feasible nodes that are compared before victims are chosen",
            why="kube-scheduler's default",
            unit="%",
            least=0,
            most=100,
        ),
    ] = 10
    min_candidate_nodes_absolute: Annotated[
        int,
        Setting(
            "number of nodes that are compared at least, where so many are candidates",
            why="kube-scheduler's default",
            least=1,
            most=100_000,
        ),
    ] = 100

    def __post_init__(self) -> None:
        self._tables: dict[tuple[Spec, int], Candidates] = {}  # the one used last is the last

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """Reserve the cheapest node for each task in turn, and evict its victims."""
        share = refused.task_class.feasible_count * self.min_candidate_nodes_percentage // 100
        enough = max(share, self.min_candidate_nodes_absolute)
        for task in refused.tasks:
            if not may_outrank(task.priority, view.lowest_priority):
                return  # the tasks behind it have no higher priority
            task_class = view.task_class(task)
            found = self._table(task).best(view, task_class, enough)
            if found is None or found[1].is_room_free:
                return  # nor would other tasks of the class find a node where eviction helps
            row, victims = found
            yield Nominate(task, row)
            for pod in victims.pods:
                yield Evict(pod, task)

    def _table(self, task: Task) -> Candidates:
        kind = (task.spec, task.priority)  # tasks of one kind outrank the same pods
        found = self._tables.pop(kind, None) or Candidates(partial(outranks, task))
        self._tables[kind] = found
        if len(self._tables) > TABLES_MOST:
            del self._tables[next(iter(self._tables))]
        return found
