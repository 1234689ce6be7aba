"""How contended the nodes of each class of queued tasks are (its CRV), as of the last heartbeat.

Eagle's nodes exchange a bit vector of long work; Phoenix adds a vector of demand and supply by constraints
(succinct state sharing). Here messages take no time, so there is one vector, and all nodes have the newest.
All its numbers are of one epoch, the time of the heartbeat: ratios of different times are never compared, and
what was measured earlier never replaces what is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from math import inf

import numpy as np

from eclectus.framework import ClassKey, Floats, Spec, TaskClass, View
from eclectus.maths.contention import contention

CLASSES_MOST = 64  # with a ratio, those of which most tasks are queued; others count as unconstrained


class ContendedClasses:
    """The ratio of demand to supply of every queued class, renewed at most once a heartbeat."""

    def __init__(self, heartbeat_seconds: float) -> None:
        self._heartbeat = heartbeat_seconds
        self.epoch = -inf  # when the ratios were measured, seconds
        self.ratios: Mapping[ClassKey, float] = {}  # of classes whose constraints exclude nodes
        self.highest = 0.0  # of the ratios
        self.utilisation = 0.0  # of the resource of which most is in use, 0..1

    def refresh(self, view: View) -> None:
        """Measure again if the next heartbeat is due; the view of an earlier time changes nothing.

        Within a heartbeat a ratio moves half of the way to what is measured: one measurement is mostly noise.
        """
        if view.now < self.epoch + self._heartbeat:
            return
        kept = 0.5 ** ((view.now - self.epoch) / self._heartbeat)
        before = self.ratios
        self.ratios = {
            key: ratio + kept * (before.get(key, ratio) - ratio) for key, ratio in _measured(view).items()
        }
        self.highest, self.utilisation = max(self.ratios.values(), default=0.0), _utilisation(view)
        self.epoch = view.now


def is_constrained(spec: Spec) -> bool:
    """Whether the pod names nodes, or labels that they must have.

    Nodes that it does not tolerate, or that are too small for it, are no constraints of its own.
    """
    return bool(spec.node_selector or spec.affinity is not None or spec.node_name)


def _measured(view: View) -> dict[ClassKey, float]:
    """The ratios now.

    Pods that name no node have none: everything else may run only inside their nodes, so that they would
    rank with the most contended.
    """
    queued = {key: count for key, count in view.queued_tasks.items() if is_constrained(key[0])}
    keys = nlargest(CLASSES_MOST, queued, key=lambda key: queued[key])
    classes = [view.classes.current(*key) for key in keys]
    chosen = [
        (key, each)
        for key, each in zip(keys, classes, strict=True)
        if each.feasible_count < np.count_nonzero(view.cluster.present)
    ]
    if not chosen:
        return {}
    nodes = np.array([each.feasible for _, each in chosen])
    tasks = np.array([float(queued[key]) for key, _ in chosen])
    free = np.array([_free_slots(each) for _, each in chosen])
    ratios = contention(nodes, tasks, free)
    return {key: float(ratio) for (key, _), ratio in zip(chosen, ratios, strict=True)}


def _free_slots(task_class: TaskClass) -> float:
    """Tasks of the class that fit now, on all nodes."""
    overflow: Floats = task_class.overflow[task_class.fits_now]
    return float(np.floor(1.0 - overflow).sum())


def _utilisation(view: View) -> float:
    cluster = view.cluster
    present = cluster.present
    have = cluster.allocatable[present].sum(axis=0)
    held = cluster.used[present].sum(axis=0)
    return float(np.divide(held, have, out=np.zeros_like(have), where=have > 0).max(initial=0.0))
