"""Reclaim: pools that have had too little for too long take room back from pools above their share.

Zaharia, Borthakur, Sen Sarma, Elmeleegy, Shenker, Stoica, "Job Scheduling for Multi-User MapReduce Clusters",
2009: the preemption of the Hadoop Fair Scheduler. Which pool may claim how much, and whose pods it may take,
is in accounts/reclaim.py. A node is chosen with its victims (framework/reclaim_victims.py): the node on which
the fewest pods have to go, of these the one on which least work is lost.
The claimant is nominated there, so what it was given is held for it.

Departures:
- a victim is chosen with the node on which the claimant then fits, not the newest pod of the cluster;
- no PodDisruptionBudget is ever violated, and gangs keep their quorum or go as a whole;
- pods that are on their way out make room first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from eclectus.framework import (
    Evict,
    Nominate,
    Refused,
    ReliefAction,
    Relieve,
    RelieveTraits,
    Task,
    TaskClass,
    View,
    WouldReclaim,
)
from eclectus.framework.reclaim_victims import Search

WORK_MOST = 1_000  # nodes, and pods of gangs, examined in one step for all tasks: a tenth of a second at most


@dataclass(eq=False)
class Reclaim(Relieve):
    """Evicts pods of pools above their share, for a pool that has waited for its own for long enough."""

    traits = RelieveTraits(evicts=True, reclaims=True)

    def __post_init__(self) -> None:
        self._step_at = -inf  # the time of the step, seconds
        self._work = 0  # in this step, and tasks
        self._said = set[str]()  # pools that try out what they would take, and have said it in this step

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """For each task whose pool has a claim, the node with the fewest victims."""
        if view.now != self._step_at:
            self._step_at, self._work = view.now, 0
            self._said.clear()
        for task in refused.tasks:
            if self._work >= WORK_MOST:
                return  # the class is asked about again
            self._work += 1
            if not task.pool or view.pools.limit_on(task) is not None:
                continue
            yield from self._reclaim(view, refused.task_class, task)

    def _reclaim(self, view: View, task_class: TaskClass, task: Task) -> Iterator[ReliefAction]:
        for claim in view.starvation.claims(task, view.now):
            if claim.pool in self._said:
                continue
            search = Search(view, task_class, task, claim)
            best = search.best(_rows(view, task_class, task), max(WORK_MOST - self._work, 0))
            self._work += search.work
            if best is None:
                continue
            row, found = best
            if not view.pools.tries_out(claim.pool):
                yield Nominate(task, row)
                yield from (Evict(pod, task, claim) for pod in found.pods)
                return
            self._said.add(claim.pool)
            yield WouldReclaim(task, row, found.pods, claim)


def _rows(view: View, task_class: TaskClass, task: Task) -> Sequence[int]:
    """All feasible ones, from a random one on; first where room was being made for the task before."""
    rows = np.flatnonzero(task_class.feasible).tolist()
    if len(rows) <= 1:
        return rows
    begin = view.rng.randrange(len(rows))
    before = view.cluster.rows.get(task.nominated)
    first = [] if before is None or not task_class.feasible[before] else [before]
    return first + rows[begin:] + rows[:begin]
