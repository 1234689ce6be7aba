"""Tetris: of all waiting tasks, the one that best fills what a machine has left, of short jobs rather.

Grandl, Ananthanarayanan, Kandula, Rao, Akella, "Multi-Resource Packing for Cluster Schedulers", SIGCOMM 2014.
A task may go where its whole demand fits. How well it goes there is its alignment, the dot product of what
it asks for and what is free, both as shares of the machine. From that is taken e times the work left in
its job, where e makes both weigh alike: e = mean alignment / mean work left. The pair of task and machine of
the highest score comes next, until nothing fits.

Departures:
- the paper asks when a machine falls free; here all machines with room are compared, task by task, and e is
  of the candidates at hand;
- compared is the first task of each lane: under an Order by job (sjf, srtf, drf by: job) one of each job and
  kind of task, under fifo the oldest of each kind. Equal scores go by turns;
- work left is in task-seconds (`Task.job_work`), not weighed by demand; a job that says nothing counts as
  the longest that does;
- the remote penalty is for nodes that meet few of a pod's soft preferences: so Kubernetes speaks of locality;
- the fairness knob counts jobs of which a task fits somewhere, so that it never leaves room unused;
- `spec.priority` goes before the score;
- no barrier knob (a stage's progress is not known here) and no machine kept free for a starving task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite
from statistics import fmean
from typing import Annotated, NamedTuple

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.resources import PODS
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, PendingTasks, Place, PlacePolicy, Unschedulable, View
from eclectus.model.objects import Spec, Task
from eclectus.model.settings import Setting


class Offer(NamedTuple):
    """A task that fits somewhere."""

    at: int  # among those that wait
    task: Task
    row: int  # where it goes best
    alignment: float
    work: float  # left in its job, seconds; inf if unknown


@dataclass(eq=False)
class Tetris(PlacePolicy):
    """Alignment, less the work left in the job."""

    shortness: Annotated[
        float,
        Setting(
            "weight of the work left in a task's job against its alignment; 0 packs and nothing else",
            why="1 is the paper's: both weigh alike",
            least=0,
            most=1000,
        ),
    ] = 1.0
    fairness: Annotated[
        float,
        Setting(
            "share of the jobs that is passed over, those with the largest dominant shares",
            why="the paper's: a quarter costs little; 0 is Tetris as Carbyne (OSDI 2016) compares with it",
            least=0,
            most=0.99,
        ),
    ] = 0.25
    remote_penalty: Annotated[
        float,
        Setting(
            "how much less a node counts that meets none of a pod's soft preferences",
            why="the paper's tenth for remote input",
            least=0,
            most=1,
        ),
    ] = 0.1

    @property
    def wants_work(self) -> bool:
        """Only if shortness counts."""
        return self.shortness > 0

    @property
    def counted_by(self) -> Callable[[Task], str] | None:
        """Jobs, if fairness is asked for."""
        return _job if self.fairness else None

    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        """Answers the best of all tasks at hand, one of each lane, again and again; O(lanes) an answer."""
        turns.one_per_queue()
        waiting = list(turns)
        while offers := self._offers(view, waiting):
            best = self._best(self._poorest(view, offers))
            del waiting[best.at]
            yield Place(best.task, best.row)
            waiting.extend(turns)  # the next of its lane
        yield from (Unschedulable(task) for task in waiting)

    # -- who may be next -------------------------------------------------------------------------

    def _offers(self, view: View, waiting: Sequence[Task]) -> Sequence[Offer]:
        """Tasks of the highest priority that fit, each with the machine it fits best."""
        best: dict[tuple[Spec, str], tuple[int, float] | None] = {}
        offers = []
        for at, task in enumerate(waiting):
            kind = (task.spec, task.workload)
            if kind not in best:
                task_class = view.task_class(task)
                has_room = task_class.fits_now_count > 0
                best[kind] = view.ranking(task_class, self._cost, self).best() if has_room else None
            found = best[kind]
            if found is not None:
                offers.append(Offer(at, task, found[0], -found[1], view.work_left(task)))
        highest = max((offer.task.priority for offer in offers), default=0)
        return [offer for offer in offers if offer.task.priority == highest]

    def _poorest(self, view: View, offers: Sequence[Offer]) -> Sequence[Offer]:
        """Those of the jobs with the least dominant shares, all but `fairness` of them."""
        jobs = list(dict.fromkeys(_job(offer.task) for offer in offers))
        keep = ceil((1.0 - self.fairness) * len(jobs))
        if keep == len(jobs):
            return offers
        kept = set(sorted(jobs, key=view.shares(self).dominant_share)[:keep])
        return [offer for offer in offers if _job(offer.task) in kept]

    # -- the score -------------------------------------------------------------------------------

    def _best(self, offers: Sequence[Offer]) -> Offer:
        known = [offer.work for offer in offers if isfinite(offer.work)]
        longest = max(known, default=0.0)
        works = [min(offer.work, longest) for offer in offers]
        mean = fmean(works)
        each = self.shortness * fmean(offer.alignment for offer in offers) / mean if mean else 0.0
        scores = [offer.alignment - each * work for offer, work in zip(offers, works, strict=True)]
        return offers[scores.index(max(scores))]

    def _cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """The alignment, negative; inf where the task does not fit."""
        penalty = 1.0 - self.remote_penalty * (1.0 - task_class.preference_score[rows])
        return np.where(task_class.fits_now[rows], -alignment(task_class, rows) * penalty, inf)


def alignment(task_class: TaskClass, rows: Rows) -> Floats:
    """Dot product of what a task asks for and what is free, as shares of each machine; pod places apart."""
    cluster = task_class.cluster
    demand = cluster.task_vector(task_class.spec.requests).copy()
    demand[cluster.columns[PODS]] = 0.0
    need = np.flatnonzero(demand)
    allocatable, used, meant = cluster.layers[:3].take(rows, axis=1).take(need, axis=2)
    free = np.maximum(allocatable - used - meant, 0.0)
    offered = np.maximum(allocatable, 1.0)  # what offers nothing has nothing free either
    return np.asarray((demand[need] / offered * free / offered).sum(axis=1))


def _job(task: Task) -> str:
    return task.job or task.uid
