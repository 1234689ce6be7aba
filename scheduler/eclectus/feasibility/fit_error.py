"""Why a class fits on no node now, in kube-scheduler's words: autoscalers parse them, people search for them.

Byte-compatible with the FitError of kube-scheduler 1.36:

    0/<nodes> nodes are available: <count> <reason>, <count> <reason>…

A node counts under the first rule that refuses it, in the order of `rules/table.py`; where room refuses it,
it counts under every resource that is short. The parts are sorted as strings ("10 x" before "2 y"). Room that
is held or tentatively placed is taken, so a node that others wait for counts as full.

The outcome of preemption ("preemption: 0/4 nodes …"), which kube-scheduler appends, is added by
engine/explain/explanations.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.feasibility.room import Room
from eclectus.feasibility.rules import node_affinity, unsupported
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec

NO_NODES = "no nodes available to schedule pods"
TOO_MANY_PODS = "Too many pods"
MAX_REASONS = 64  # a pod may name thousands of resources, and the message must fit into its status


def fit_error(task_class: TaskClass, cluster: Cluster) -> str:
    """The message for a pod of this class that fits on no node; names no reason if it does fit on one."""
    if not len(cluster):
        return NO_NODES
    return f"0/{len(cluster)} nodes are available:{_reasons(task_class, cluster)}"


def _reasons(task_class: TaskClass, cluster: Cluster) -> str:
    spec = task_class.spec
    refusal = _pre_filter(spec)
    if refusal:
        return f" {refusal}."
    counts: Counter[str] = Counter()
    rows = _candidate_rows(spec, cluster, counts)
    before_room = [rule for rule in task_class.rules if not rule.after_room]
    after_room = [rule for rule in task_class.rules if rule.after_room]
    rows = _filtered(before_room, spec, cluster, rows, counts)
    rows = _with_room(spec, cluster, rows, counts)
    _filtered(after_room, spec, cluster, rows, counts)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    if len(parts) > MAX_REASONS:
        parts[MAX_REASONS:] = [f"{len(parts) - MAX_REASONS} more reasons"]
    return f" {', '.join(parts)}." if parts else ""


def _pre_filter(spec: Spec) -> str:
    """What refuses the pod on all nodes at once, as kube-scheduler's PreFilter; empty if nothing does."""
    if spec.unsupported:
        return unsupported.message(spec)
    if node_affinity.pinned_names(spec) == frozenset():
        return "pod affinity terms conflict"
    return ""


def _candidate_rows(spec: Spec, cluster: Cluster, counts: Counter[str]) -> Rows:
    """The rows to filter; nodes that required affinity excludes by name are counted without filtering."""
    names = node_affinity.pinned_names(spec)
    if names is None:
        return np.flatnonzero(cluster.present)
    rows = np.array(sorted(cluster.rows[name] for name in names if name in cluster.rows), dtype=np.intp)
    counts["node(s) didn't satisfy plugin(s) [NodeAffinity]"] = len(cluster) - len(rows)
    return rows


def _filtered(rules: Iterable[Rule], spec: Spec, cluster: Cluster, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows on which every rule holds; the others are counted under the first rule that refuses them."""
    for rule in rules:
        if len(rows):
            holds = rule.holds(cluster, spec, rows)
            counts[rule.reason] += len(rows) - int(holds.sum())
            rows = rows[holds]
    return rows


def _with_room(spec: Spec, cluster: Cluster, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows with room; the others are counted under every resource they are short of."""
    fits = np.ones(len(rows), dtype=bool)
    for resource, is_short in Room(cluster, spec.requests).shortages(rows):
        reason = TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"
        counts[reason] += int(np.count_nonzero(is_short))
        fits &= ~is_short
    return rows[fits]
