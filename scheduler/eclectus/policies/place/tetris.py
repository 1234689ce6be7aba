"""Tetris: multi-resource packing, combined with shortest remaining work first.

Grandl, Ananthanarayanan, Kandula, Rao, Akella, "Multi-Resource Packing for Cluster Schedulers", SIGCOMM
2014. A task may be placed on a machine if its whole demand fits. The alignment of a task and a machine is
the dot product of the task's demand and the machine's free resources, both as shares of the machine. The
score is the alignment minus e times the remaining work of the task's job, with e = mean alignment / mean
remaining work, so that both have the same weight. The pair of task and machine with the highest score is
placed next, until nothing fits.

Departures:
- a demand is what the pod requests, of whatever resources nodes offer. The paper's is the measured peak use
  of processor, memory, disk and network, and a task that reads from elsewhere needs room there too.
- the paper scores tasks for one machine when it has freed resources. Here all machines with room are compared
  for each placement, and e is computed over the candidates at hand, because one scheduling cycle may see many
  changed nodes.
- only the head of each class queue is compared. With an Order by job (sjf, srtf, drf with by: job) that is
  one task of each job and class, with fifo the oldest of each class. The order of the queues decides ties.
- remaining work is in task-seconds (`Task.job_work`) and not weighted by demand, because an annotation on a
  pod cannot know the cluster's capacity. A job without it counts as the longest known one.
- the remote penalty applies to nodes that meet few of a pod's preferences, which is how locality is expressed
  in Kubernetes.
- the fairness knob counts only jobs with a task that fits somewhere, so that it leaves no room unused.
- `spec.priority` is compared before the score.
- there is no barrier knob, since the progress of a stage is not known here, and no machine is reserved for a
  starving task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite
from statistics import fmean
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from eclectus.cluster.changelog import Rows
from eclectus.cluster.resources import PODS
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Bind, Need, PendingTasks, Place, PlaceTraits, Unschedulable, View
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Spec, Task
from eclectus.model.settings import setting


class Offer(NamedTuple):
    """A task that fits somewhere, and the machine with its best alignment."""

    at: int  # index among the heads of the class queues
    task: Task
    row: int
    alignment: float
    work: float  # remaining work of its job, seconds; inf if unknown


@dataclass(eq=False)
class Tetris(Place):
    """The best aligned task and node, short jobs preferred."""

    shortness: float = setting(
        1.0,
        "weight of the remaining work of a task's job against its alignment; 0: alignment only",
        why="as in the paper: both have the same weight",
        least=0,
        most=1000,
    )
    fairness: float = setting(
        0.25,
        "share of the jobs that must wait: those with the largest dominant shares",
        why="as in the paper, where a quarter costs little; 0 is the Tetris that Carbyne (OSDI 2016) "
        "compares with",
        least=0,
        most=0.99,
    )
    remote_penalty: float = setting(
        0.1,
        "share of the alignment lost on a node that meets none of a pod's preferences",
        why="as in the paper for remote input",
        least=0,
        most=1,
    )

    @property
    def traits(self) -> PlaceTraits:
        """The remaining work of jobs is needed for shortness, and what they hold for fairness only."""
        needs: set[Need] = set()
        if self.shortness:
            needs.add("work")
        if self.fairness:
            needs.add("shares")
        return PlaceTraits(takes_all_pending=True, needs=frozenset(needs))

    @override
    def counted_by(self, task: Task) -> str:
        return task.job or task.uid

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Place the best of the heads of all class queues until none fits; O(class queues) each."""
        queues = list(pending.queues())
        heads = [task for queue in queues if (task := pending.take(queue)) is not None]
        while offers := self._offers(view, heads):
            best = self._best(self._poorest(view, offers))
            queue = queues.pop(best.at)
            del heads[best.at]
            yield Bind(best.task, best.row)
            if (task := pending.take(queue)) is not None:
                queues.append(queue)
                heads.append(task)
        yield from (Unschedulable(task) for task in heads)

    def _offers(self, view: View, heads: Sequence[Task]) -> Sequence[Offer]:
        """The tasks of the highest priority that fit somewhere, each with its best machine."""
        best: dict[tuple[Spec, str], tuple[int, float] | None] = {}
        offers = []
        for at, task in enumerate(heads):
            key = (task.spec, task.workload)
            if key not in best:
                task_class = view.task_class(task)
                has_room = task_class.fits_now_count > 0
                best[key] = view.ranking(task_class, self._cost, self).best() if has_room else None
            found = best[key]
            if found is not None:
                offers.append(Offer(at, task, found[0], -found[1], view.work_left(task)))
        highest = max((offer.task.priority for offer in offers), default=0)
        return [offer for offer in offers if offer.task.priority == highest]

    def _poorest(self, view: View, offers: Sequence[Offer]) -> Sequence[Offer]:
        """The offers of the jobs with the least dominant shares: a share of 1 - `fairness` of the jobs."""
        jobs = list(dict.fromkeys(self.counted_by(offer.task) for offer in offers))
        keep = ceil((1.0 - self.fairness) * len(jobs))
        if keep == len(jobs):
            return offers
        kept = set(sorted(jobs, key=view.shares(self).dominant_share)[:keep])
        return [offer for offer in offers if self.counted_by(offer.task) in kept]

    def _best(self, offers: Sequence[Offer]) -> Offer:
        known = [offer.work for offer in offers if isfinite(offer.work)]
        longest = max(known, default=0.0)
        works = [min(offer.work, longest) for offer in offers]
        mean = fmean(works)
        weight = self.shortness * fmean(offer.alignment for offer in offers) / mean if mean else 0.0
        scores = [offer.alignment - weight * work for offer, work in zip(offers, works, strict=True)]
        return offers[scores.index(max(scores))]

    def _cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """The negative alignment; inf where the task does not fit."""
        penalty = 1.0 - self.remote_penalty * (1.0 - task_class.preference_score[rows])
        return np.where(task_class.fits_now[rows], -alignment(task_class, rows) * penalty, inf)


def alignment(task_class: TaskClass, rows: Rows) -> Floats:
    """Dot product of requested and free resources, as shares of each machine; the pod count is left out."""
    cluster = task_class.cluster
    demand = cluster.task_vector(task_class.spec.requests).copy()
    demand[cluster.columns[PODS]] = 0.0
    need = np.flatnonzero(demand)
    allocatable, used, tentative = cluster.layers[:3].take(rows, axis=1).take(need, axis=2)
    free = np.maximum(allocatable - used - tentative, 0.0)
    offered = np.maximum(allocatable, 1.0)  # avoids dividing by 0: without capacity nothing is free
    return np.asarray((demand[need] / offered * free / offered).sum(axis=1))
