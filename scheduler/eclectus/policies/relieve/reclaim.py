"""Reclaim: pools that have had too little for too long take room back from pools above their share.

Zaharia, Borthakur, Sen Sarma, Elmeleegy, Shenker, Stoica, "Job Scheduling for Multi-User MapReduce Clusters",
2009: the preemption of the Hadoop Fair Scheduler. Which pool may claim how much, and whose pods it may take,
is in accounts/reclaim.py. Here a node is chosen with its victims: the node on which the fewest pods have to
go, of these the one on which least work is lost; on a node the newest pods first, and no more than needed.
The claimant is nominated there, so what it was given is held for it.

Departures:
- a victim is chosen with the node on which the claimant then fits, not the newest pod of the cluster;
- no PodDisruptionBudget is ever violated, and no pod of a gang is a victim: one less could stop all others;
- pods that are on their way out make room first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.accounts.reclaim import Entitlement, Taking
from eclectus.feasibility.fit_error import RoomWithout
from eclectus.framework import Evict, Nominate, Refused, ReliefAction, Relieve, RelieveTraits, TaskClass, View
from eclectus.framework.victims import is_spared
from eclectus.model.objects import Task

CANDIDATES_MOST = 16  # nodes with victims that are compared for one task
ROWS_MOST = 1_000  # nodes examined in one step, for all tasks together: a tenth of a second at most


Bound = tuple[Task, float]
"""A pod on a node, and since when it is there, seconds."""


class Found(NamedTuple):
    """The victims on one node. Fewer are better, then less work lost, in seconds."""

    pods: tuple[Task, ...]
    lost_seconds: float

    @property
    def cost(self) -> tuple[float, float]:
        """What decides between nodes."""
        return len(self.pods), self.lost_seconds


@dataclass(eq=False)
class Reclaim(Relieve):
    """Evicts pods of pools above their share, for a pool that has waited for its own for long enough."""

    traits = RelieveTraits(evicts=True, reclaims=True)

    def __post_init__(self) -> None:
        self._step_at = -inf  # the time of the step, seconds
        self._examined = 0  # nodes and tasks, in this step

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """For each task whose pool has a claim, the node with the fewest victims."""
        if view.now != self._step_at:
            self._step_at, self._examined = view.now, 0
        for task in refused.tasks:
            if self._examined >= ROWS_MOST or not view.starvation.above_share:
                return  # the class is asked about again
            self._examined += 1
            if not task.pool or view.pools.limit_on(task) is not None:
                continue
            for claim in view.starvation.claims(task, view.now):
                best = self._best(view, refused.task_class, task, claim)
                if best is not None:
                    row, found = best
                    yield Nominate(task, row)
                    for pod in found.pods:
                        yield Evict(pod, task, claim)
                    break

    def _best(
        self, view: View, task_class: TaskClass, task: Task, claim: Entitlement
    ) -> tuple[int, Found] | None:
        """The best of the nodes that are examined, from a random one on."""
        candidates: dict[int, Found] = {}
        taking = Taking(view.pools, view.starvation, claim, task)
        if not any(map(taking.gives, view.starvation.above_share)):
            return None
        for row in _rows(view, task_class):
            self._examined += 1
            taking.begin_again()
            found = victims_for(view, task_class, row, taking)
            if found is not None:
                candidates[row] = found
            is_enough = len(candidates) == CANDIDATES_MOST or self._examined >= ROWS_MOST
            if is_enough or view.budgets.has_compared_enough:
                break
        return min(candidates.items(), key=lambda item: item[1].cost, default=None)


def _rows(view: View, task_class: TaskClass) -> Sequence[int]:
    rows = np.flatnonzero(task_class.feasible).tolist()
    if len(rows) <= 1:
        return rows
    begin = view.rng.randrange(len(rows))
    return rows[begin:] + rows[:begin]


def victims_for(view: View, task_class: TaskClass, row: int, taking: Taking) -> Found | None:
    """The pods that must go from a row; None where the claim makes no room there."""
    bound = [each for each in view.placed.on_row(row) if each[0].node]
    if not any(taking.gives(pod.pool) or _is_going(view, pod) for pod, _ in bound):
        return None
    room = RoomWithout(task_class, row)
    if room.fits:
        return None  # waiting pods alone are in its way
    taken = list(_taken(view, bound, room, taking))
    if not taken or not taken[-1].makes_room:
        return None
    needed = [each for each in taken if each.pod is not None and not _is_given_back(room, each.pod, taking)]
    pods = tuple(each.pod for each in needed if each.pod is not None)
    if any(view.budgets.violated_by(pods)):
        return None
    return Found(pods, sum(view.now - each.since for each in needed))


class _Taken(NamedTuple):
    """A pod that goes."""

    pod: Task | None  # None: it goes anyway
    since: float  # when it took its room
    makes_room: bool  # for the task, with those before it


def _taken(view: View, bound: Sequence[Bound], room: RoomWithout, taking: Taking) -> Iterator[_Taken]:
    """The pods that may go, the newest first, until the task fits."""
    for pod, since in sorted(bound, key=lambda each: (-each[1], each[0].uid)):
        is_going = _is_going(view, pod)
        if not is_going and not (_may_go(view, pod, since) and taking.may_take(pod)):
            continue
        if not is_going:
            taking.take(pod)
        room.remove(pod)
        yield _Taken(None if is_going else pod, since, room.fits)
        if room.fits:
            return


def _is_going(view: View, pod: Task) -> bool:
    return pod.deleting or pod.uid in view.evicted


def _is_given_back(room: RoomWithout, pod: Task, taking: Taking) -> bool:
    """Whether the task fits beside the pod after all."""
    if is_spared(room, pod):
        taking.give_back(pod)
        return True
    return False


def _may_go(view: View, pod: Task, since: float) -> bool:
    """Whether a pod may be a victim now, whatever its pool holds."""
    if pod.gang is not None or pod.uid in view.spared:
        return False
    pool = view.pools.tree.of_path(pod.pool)
    if pool is not None and view.now - since < pool.preemption.min_runtime_seconds:
        return False
    return not any(view.budgets.violated_by((pod,)))
