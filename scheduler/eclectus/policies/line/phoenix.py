"""Phoenix's node queues: short tasks whose constraints are contended go first, within Eagle's limits.

Thinakaran, Gunasekaran, Sharma, Kandemir, Das, "Phoenix: A Constraint-aware Scheduler for Heterogeneous
Datacenters", ICDCS 2017: Eagle, whose queues are reordered by a Constraint Resource Vector (CRV), the demand
for nodes with certain properties over their supply. While nodes are busy and a constraint is contended, the
reservation with the highest ratio goes first, of equal ones that with the least remaining work; otherwise the
queue is Eagle's (`srpt`). With `by: wait` the first is instead the one whose set has the longest estimated
wait. Limits on overtaking and long tasks at the head are Eagle's in both cases. Use it with
`place: {policy: eagle}`.

The order takes from some what it gives to others: pods without constraints wait longer.

Departures, beside those of `srpt`. The paper's formulas and thresholds are not public, so these are chosen:
- ratios are those of whole sets of constraints (`maths/scarcity.py`), smoothed over heartbeats;
- pods without constraints have the ratio 0;
- messages take no time, so ratios are those of the last heartbeat at every node;
- a wait is estimated from what is queued and not as of an M/G/1 queue, which has no wait at full load: a set
  is served by many nodes, and queues are reordered only where these are nearly full;
- soft constraints have no ratio: `place: eagle` negotiates them when a job arrives, and nothing in queues.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest
from math import inf
from statistics import fmean
from typing import Literal

import numpy as np

from eclectus.framework import ClassKey, Reservation, Spec, View, setting
from eclectus.maths.scarcity import contention, estimated_waits
from eclectus.policies.shared import OvertakingLine, Rank

# How contended the nodes of each class of queued tasks are (its CRV), as of the last heartbeat.
#
# Eagle's nodes exchange a bit vector of long work; Phoenix adds a vector of demand and supply by constraints
# (succinct state sharing). Here messages take no time, so there is one vector, and all nodes have the newest.
# All its numbers are of one epoch, the time of the heartbeat: ratios of different times are never compared,
# and what was measured earlier never replaces what is known.

CLASSES_MOST = 64  # with a ratio, those of which most tasks are queued; others count as unconstrained


class ContendedClasses:
    """Ratio and estimated wait of every queued class, renewed at most once a heartbeat."""

    def __init__(self, heartbeat_seconds: float) -> None:
        self._heartbeat = heartbeat_seconds
        self.epoch = -inf  # when all this was measured, seconds
        # Of classes whose constraints exclude nodes: demand over supply, and the estimated wait in seconds.
        self.ratios: Mapping[ClassKey, float] = {}
        self.waits: Mapping[ClassKey, float] = {}
        self.highest = 0.0  # of the ratios
        self.utilisation = 0.0  # of the resource of which most is in use, 0..1
        self._task_seconds: Mapping[ClassKey, float] = {}  # of queued classes, what a task takes in the mean
        self._noted: dict[ClassKey, tuple[float, int]] = {}  # since the epoch: seconds, of how many tasks

    def note(self, key: ClassKey, seconds: float, tasks: int) -> None:
        """So many queued tasks of a class are expected to take so many seconds in all."""
        before, count = self._noted.get(key, (0.0, 0))
        self._noted[key] = before + seconds, count + tasks

    def refresh(self, view: View) -> None:
        """Measure again if the next heartbeat is due; the view of an earlier time changes nothing.

        Within a heartbeat a figure moves half of the way to what is measured: one is mostly noise.
        """
        if view.now < self.epoch + self._heartbeat:
            return
        kept = 0.5 ** ((view.now - self.epoch) / self._heartbeat)
        means = {key: seconds / count for key, (seconds, count) in self._noted.items()}
        queued = {key: count for key, count in view.queued_tasks.items() if is_constrained(key[0])}
        known = {**self._task_seconds, **means}
        self._task_seconds = {key: known[key] for key in queued if key in known}
        self._noted = {}
        ratios, waits = _measured(view, queued, self._task_seconds)
        self.ratios, self.waits = _moved(self.ratios, ratios, kept), _moved(self.waits, waits, kept)
        self.highest, self.utilisation = max(self.ratios.values(), default=0.0), _utilisation(view)
        self.epoch = view.now


def _moved(
    before: Mapping[ClassKey, float], measured: Mapping[ClassKey, float], kept: float
) -> dict[ClassKey, float]:
    return {key: value + kept * (before.get(key, value) - value) for key, value in measured.items()}


def is_constrained(spec: Spec) -> bool:
    """Whether the pod names nodes, or labels that they must have.

    Nodes that it does not tolerate, or that are too small for it, are no constraints of its own.
    """
    return bool(spec.node_selector or spec.affinity is not None or spec.node_name)


Figures = dict[ClassKey, float]


def _measured(
    view: View, queued: Mapping[ClassKey, int], task_seconds: Mapping[ClassKey, float]
) -> tuple[Figures, Figures]:
    """The ratios now, and the estimated waits in seconds, of which there are none until run times are known.

    Pods that name no node have none: everything else may run only inside their nodes, so that they would
    rank with the most contended. A class of which nothing is known takes what others do in the mean.
    """
    keys = nlargest(CLASSES_MOST, queued, key=lambda key: queued[key])
    classes, present = (
        {key: view.classes.current(*key) for key in keys},
        np.count_nonzero(view.cluster.present),
    )
    chosen = {key: each for key, each in classes.items() if each.feasible_count < present}
    if not chosen:
        return {}, {}
    nodes = np.array([each.feasible for each in chosen.values()])
    tasks = np.array([float(queued[key]) for key in chosen])
    # Tasks of the class that fit now, on all nodes, and that fit beside services alone.
    free = np.array([np.floor(1.0 - each.overflow[each.fits_now]).sum() for each in chosen.values()])
    ratios = dict(zip(chosen, contention(nodes, tasks, free).tolist(), strict=True))
    if not task_seconds:
        return ratios, {}
    slots = np.array([each.service_slots[each.feasible].sum() for each in chosen.values()])
    usual = fmean(task_seconds.values())
    work = tasks * np.array([task_seconds.get(key, usual) for key in chosen])
    return ratios, dict(zip(chosen, estimated_waits(nodes, work, slots).tolist(), strict=True))


def _utilisation(view: View) -> float:
    cluster = view.cluster
    present = cluster.present
    have = cluster.allocatable[present].sum(axis=0)
    held = cluster.used[present].sum(axis=0)
    return float(np.divide(held, have, out=np.zeros_like(have), where=have > 0).max(initial=0.0))


@dataclass(eq=False)
class ContendedFirst(OvertakingLine):
    """The most contended constraints first, then the shortest remaining work, with a limit on overtaking."""

    heartbeat: float = setting(
        5.0,
        "time between two measurements of demand and supply",
        unit="s",
        why="the monitor interval of Eagle's published commands",
        least=0.1,
    )
    busy: float = setting(
        0.8,
        "utilisation up to which queues stay in Eagle's order",
        why="as in the public simulator; below it hardly anything waits",
        least=0,
        most=1,
    )
    contended: float = setting(
        1.0,
        "tasks that wait for a free slot of their constraints up to which queues stay in Eagle's order",
        why="with less there is a slot for everybody",
        least=0,
    )

    by: Literal["ratio", "wait"] = setting(
        "ratio",
        "what goes first where queues are reordered: the most contended constraints, or those whose pods are "
        "expected to wait longest",
        why="the paper has both; the ratio needs no expected run times",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._classes = ContendedClasses(self.heartbeat)

    def rank(self, view: View, reservation: Reservation, remaining_seconds: float) -> Rank:
        """By contention where the queues are reordered; by remaining work where they are not, or at a tie."""
        classes = self._classes
        classes.refresh(view)
        if self.by == "wait":
            classes.note(reservation.class_key, remaining_seconds, len(reservation.tasks))
        if classes.utilisation <= self.busy or classes.highest <= self.contended:
            return (0.0, remaining_seconds)
        first = classes.ratios if self.by == "ratio" else classes.waits
        return (-first.get(reservation.class_key, 0.0), remaining_seconds)
