"""Why a class fits nowhere now, in kube-scheduler's words: autoscalers parse them, people search for them.

Byte-compatible with the FitError of kube-scheduler 1.36:

    0/<nodes> nodes are available: <count> <reason>, <count> <reason>…

A node counts under the first rule that refuses it, in the order of rules.py; where room refuses it,
under every resource that is short. The parts are sorted as strings ("10 x" before "2 y"). Room is what
neither holds nor is meant for anybody, so a node promised to others counts as full.

Departs in one point: kube-scheduler appends what preemption had to say ("preemption: 0/4 nodes …").
There is no preemption here yet, so that part is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.feasibility.rules import node_affinity, unsupported
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec

NO_NODES = "no nodes available to schedule pods"
TOO_MANY_PODS = "Too many pods"


def fit_error(task_class: TaskClass, cluster: Cluster) -> str:
    """The message of a pod of this class that found no node; meaningless while a node is open to it."""
    if not len(cluster):
        return NO_NODES
    return f"0/{len(cluster)} nodes are available:{_reasons(task_class, cluster)}"


def _reasons(task_class: TaskClass, cluster: Cluster) -> str:
    spec = task_class.spec
    before = _refused_unseen(spec)
    if before:
        return f" {before}."
    counts: Counter[str] = Counter()
    rows = _narrowed(spec, cluster, counts)
    early = [rule for rule in task_class.rules if not rule.after_room]
    late = [rule for rule in task_class.rules if rule.after_room]
    rows = _sieved(early, spec, cluster, rows, counts)
    rows = _with_room(spec, cluster, rows, counts)
    _sieved(late, spec, cluster, rows, counts)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    return f" {', '.join(parts)}." if parts else ""


def _refused_unseen(spec: Spec) -> str:
    """What refuses the pod before any node is looked at; kube-scheduler's PreFilter."""
    if spec.unsupported:
        return unsupported.message(spec)
    if node_affinity.pinned_names(spec) == frozenset():
        return "pod affinity terms conflict"
    return ""


def _narrowed(spec: Spec, cluster: Cluster, counts: Counter[str]) -> Rows:
    """The rows to look at; nodes that required affinity rules out by name are counted unseen."""
    names = node_affinity.pinned_names(spec)
    if names is None:
        return np.flatnonzero(cluster.present)
    rows = np.array(sorted(cluster.rows[name] for name in names if name in cluster.rows), dtype=np.intp)
    counts["node(s) didn't satisfy plugin(s) [NodeAffinity]"] = len(cluster) - len(rows)
    return rows


def _sieved(rules: Iterable[Rule], spec: Spec, cluster: Cluster, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows that every rule leaves; the others are counted under the first that refuses them."""
    for rule in rules:
        if len(rows):
            holds = rule.holds(cluster, spec, rows)
            counts[rule.reason] += len(rows) - int(holds.sum())
            rows = rows[holds]
    return rows


def _with_room(spec: Spec, cluster: Cluster, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows with room; the others are counted under every resource they are short of."""
    demand = cluster.task_vector(spec.requests)
    fits = np.ones(len(rows), dtype=bool)
    for name, column in cluster.columns.items():
        if demand[column]:
            taken = cluster.used[rows, column] + cluster.tentative[rows, column]
            short = taken + demand[column] > cluster.allocatable[rows, column]
            counts[TOO_MANY_PODS if name == PODS else f"Insufficient {name}"] += int(short.sum())
            fits &= ~short
    return rows[fits]
