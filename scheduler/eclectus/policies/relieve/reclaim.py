"""Reclaim: pools that have had too little for too long take room back from pools above their share.

Zaharia, Borthakur, Sen Sarma, Elmeleegy, Shenker, Stoica, "Job Scheduling for Multi-User MapReduce Clusters",
2009: the preemption of the Hadoop Fair Scheduler. Which pool may claim how much, and whose pods it may take,
is in accounts/reclaim.py. A node is chosen with its victims (framework/reclaim_victims.py): the node on which
the fewest pods have to go, copies left aside, of these the one on which least work is lost.
The claimant is nominated there, so what it was given is held for it.

A gang takes room back as a whole or not at all. Its pods get room one after the other: what is free, or else
what pods on one node leave that may go beside those found before. Only when so many have room as start
together, all of them are nominated and all victims evicted.

Departures:
- a victim is chosen with the node on which the claimant then fits, not the newest pod of the cluster;
- no PodDisruptionBudget is ever violated, and gangs keep their quorum or go as a whole;
- pods that are on their way out make room first.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.accounts.group_shares import SEPARATOR
from eclectus.accounts.reclaim import Entitlement, Together
from eclectus.cluster.resources import PODS
from eclectus.framework import (
    Evict,
    Nominate,
    Refused,
    RefusedGang,
    ReliefAction,
    Relieve,
    RelieveTraits,
    Task,
    TaskClass,
    View,
    WouldReclaim,
)
from eclectus.framework.reclaim_victims import CANDIDATES_MOST, Search

WORK_MOST = 1_000  # nodes, and pods of gangs, examined in one step for all tasks: a tenth of a second at most
GANG_WORK_MOST = 5_000  # the same for one gang that takes room back, which is found at once or not at all


class Place(NamedTuple):
    """Where a task of a gang would start, and which pods would have to go for it."""

    task: Task
    row: int
    victims: tuple[Task, ...] = ()
    is_free: bool = False  # there is room now, beside all pods


@dataclass(eq=False)
class Reclaim(Relieve):
    """Evicts pods of pools above their share, for a pool that has waited for its own for long enough."""

    traits = RelieveTraits(evicts=True, reclaims=True)

    def __post_init__(self) -> None:
        self._step_at = -inf  # the time of the step, seconds
        self._work = 0  # in this step, and tasks
        self._next_at = inf  # when the first pod is old enough to go, of those in the way of the last tasks
        self._said = set[str]()  # pools that try out what they would take, and have said it in this step

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """For each task whose pool has a claim, the node with the fewest victims."""
        self._begin(view)
        for task in refused.tasks:
            if self._work >= WORK_MOST:
                return  # the class is asked about again
            self._work += 1
            if not task.pool or view.pools.limit_on(task) is not None:
                continue
            yield from self._reclaim(view, refused.task_class, task)

    def relieve_gang(self, view: View, refused: RefusedGang) -> Iterator[ReliefAction]:
        """For a gang whose pools have a claim, nodes for as many of its tasks as start together."""
        self._begin(view)
        claims = view.starvation.claims(refused.tasks[0], view.now) if self._work < WORK_MOST else ()
        for claim in claims:
            if claim.pool in self._said:
                continue
            plan = GangPlan(view, refused, claim)
            is_whole = plan.is_found()
            refused.trial.end()
            self._work += plan.work
            self._next_at = min(self._next_at, plan.until)
            if is_whole and view.pools.tries_out(claim.pool):
                self._said.add(claim.pool)
                for first in [each for each in plan.places if each.victims][:1]:
                    yield WouldReclaim(first.task, first.row, tuple(plan.victims.values()), claim)
            elif is_whole:
                yield from (Nominate(each.task, each.row) for each in plan.places)
                for each in plan.places:
                    yield from (Evict(pod, each.task, claim) for pod in each.victims)
                return

    def next_at(self, view: View) -> float:
        """When the first pod in their way has run for its pool's `minRuntimeSeconds`."""
        return self._next_at

    def _begin(self, view: View) -> None:
        self._next_at = inf
        if view.now != self._step_at:
            self._step_at, self._work = view.now, 0
            self._said.clear()

    def _reclaim(self, view: View, task_class: TaskClass, task: Task) -> Iterator[ReliefAction]:
        for claim in view.starvation.claims(task, view.now):
            if claim.pool in self._said:
                continue
            search = Search(view, task_class, task, claim)
            best = search.best(_rows(view, task_class, task), max(WORK_MOST - self._work, 0))
            self._work += search.work
            if best is None:
                self._next_at = min(self._next_at, search.until)
                continue
            row, found = best
            if not view.pools.tries_out(claim.pool):
                yield Nominate(task, row)
                yield from (Evict(pod, task, claim) for pod in found.pods)
                return
            self._said.add(claim.pool)
            yield WouldReclaim(task, row, found.pods, claim)


class GangPlan:
    """Where the tasks of a gang would start together, and who would go for them by one claim."""

    def __init__(self, view: View, refused: RefusedGang, claim: Entitlement) -> None:
        self._view, self._refused, self._claim = view, refused, claim
        self._in_vain: dict[object, None] = {}  # class and pool of tasks that have found nothing
        self._last: int | None = None  # row where the last task has found victims: others may be there too
        self.places = list[Place]()
        self.victims: dict[str, Task] = {}  # by uid
        self.work = 0  # nodes that were examined, and pods of gangs
        self.until = inf  # when the first pod in the way is old enough to go, seconds

    def is_found(self) -> bool:
        """Look for all places; whether so many are found as are needed, and not all of them are free.

        Where all are, nothing keeps the gang from starting in its turn. The trial holds what is found.
        """
        tasks = [task for task in self._refused.tasks if _is_of(task, self._claim.pool)]
        for at, task in enumerate(tasks):
            missing = self._refused.needed - len(self.places)
            if not missing or len(tasks) - at < missing or self.work >= GANG_WORK_MOST:
                break
            self._place(task, tasks[at + 1 : at + missing])
        return len(self.places) == self._refused.needed and not all(each.is_free for each in self.places)

    def _place(self, task: Task, others: Sequence[Task]) -> None:
        kind = task.spec, task.workload, task.pool
        if kind in self._in_vain or self._view.pools.limit_on(task) is not None:
            return
        may_take = self._claim.is_for(task)
        task_class = self._view.task_class(task)
        if task_class.fits_now_count:
            found = Place(task, int(task_class.fits_now_rows[0]), is_free=True)
        else:
            searched = self._searched(task_class, task, others) if may_take else None
            if searched is None:
                self._in_vain[kind] = None
                return
            found = searched
        self._refused.trial.hold(task, found.row)
        self.places.append(found)
        self.victims.update((pod.uid, pod) for pod in found.victims)

    def _searched(self, task_class: TaskClass, task: Task, others: Sequence[Task]) -> Place | None:
        more = Counter[str]()
        for other in others:
            more.update(dict(other.spec.requests))
            more[PODS] += 1
        together = Together(self.victims, tuple(more.items()))
        candidates = max(CANDIDATES_MOST // self._refused.needed, 1)
        search = Search(self._view, task_class, task, self._claim, together=together, candidates=candidates)
        rows = _rows(self._view, task_class, task, self._last)
        best = search.best(rows, GANG_WORK_MOST - self.work)
        self.work += search.work
        if best is None:
            self.until = min(self.until, search.until)
            return None
        self._last, found = best
        return Place(task, self._last, found.pods)


def _is_of(task: Task, pool: str) -> bool:
    """Whether a task is in a pool, or in one below it."""
    return task.pool == pool or task.pool.startswith(f"{pool}{SEPARATOR}")


def _rows(view: View, task_class: TaskClass, task: Task, first: int | None = None) -> Sequence[int]:
    """All feasible ones, from a random one on, those with copies first of these.

    Before them this one, or where room was being made for the task.
    """
    rows = np.flatnonzero(task_class.feasible).tolist()
    if len(rows) <= 1:
        return rows
    begin = view.rng.randrange(len(rows))
    before = view.cluster.rows.get(task.nominated) if first is None else first
    preferred = [] if before is None or not task_class.feasible[before] else [before]
    return [*preferred, *view.copies_first(rows[begin:] + rows[:begin])]
