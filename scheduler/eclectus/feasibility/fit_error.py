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
from msgspec.structs import replace

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.feasibility.rules import node_affinity, unsupported, volume_binding
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.static_rules import static_part, static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.volumes.refusals import VOLUME_RULES, with_volumes
from eclectus.model.objects import NO_VOLUMES, Spec

NO_NODES = "no nodes available to schedule pods"
TOO_MANY_PODS = "Too many pods"
MAX_REASONS = 64  # a pod may name thousands of resources, and the message must fit into its status


class StaticRefusals:
    """Which nodes the static rules refuse, evaluated once for all pods that they cannot tell apart.

    Not volumes, nor the labels that topology spread and pod affinity require: kube-scheduler looks at those
    after room.
    Valid until a node changes in shape: made for the messages of one step.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of: dict[Spec, tuple[Counter[str], Rows]] = {}

    def of(self, spec: Spec) -> tuple[Counter[str], Rows]:
        """How many nodes are refused by reason, and the rows of the others. For reading only."""
        part = replace(static_part(spec), topology_keys=(), volumes=NO_VOLUMES)
        found = self._of.get(part)
        if found is None:
            counts = Counter[str]()
            rows = _candidate_rows(part, self._cluster, counts)
            rows = _filtered(static_rules_of(part), part, self._cluster, rows, counts)
            found = self._of[part] = counts, rows
        return found


def fit_error(task_class: TaskClass, cluster: Cluster, refusals: StaticRefusals | None = None) -> str:
    """The message for a pod of this class that fits on no node; names no reason if it does fit on one.

    The class must be up to date. `refusals`: those of the other messages of this step.
    """
    if not len(cluster):
        return NO_NODES
    refusals = StaticRefusals(cluster) if refusals is None else refusals
    return f"0/{len(cluster)} nodes are available:{_reasons(task_class, cluster, refusals)}"


def _reasons(task_class: TaskClass, cluster: Cluster, refusals: StaticRefusals) -> str:
    spec = task_class.spec
    refusal = _pre_filter(spec)
    if refusal:
        return f" {refusal}."
    static, rows = refusals.of(spec)
    counts = static.copy()
    before_room = [rule for rule in task_class.usage_rules if not rule.after_room]
    after_room = [rule for rule in task_class.usage_rules if rule.after_room and rule not in VOLUME_RULES]
    rows = _filtered(before_room, spec, cluster, rows, counts)
    rows = _with_room(task_class, rows, counts)
    rows = with_volumes(spec, cluster, rows, counts)
    rows = _allowed_beside_other_pods(task_class, rows, counts)
    _filtered(after_room, spec, cluster, rows, counts)
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    if len(parts) > MAX_REASONS:
        parts[MAX_REASONS:] = [f"{len(parts) - MAX_REASONS} more reasons"]
    return f" {', '.join(parts)}." if parts else ""


def _pre_filter(spec: Spec) -> str:
    """What refuses the pod on all nodes at once, as kube-scheduler's PreFilter; empty if nothing does."""
    if spec.unsupported:
        return unsupported.message(spec)
    if spec.volumes.is_blocked:
        return volume_binding.BLOCKED.reason
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


def _allowed_beside_other_pods(task_class: TaskClass, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows that the rules about other pods allow; the others count under the first that refuses them."""
    if task_class.topology is None or not len(rows):
        return rows
    left = np.ones(len(rows), dtype=bool)
    for reason, refused in task_class.topology.refusals(rows):
        counts[reason] += int(np.count_nonzero(refused & left))
        left &= ~refused
    return rows[left]


def _with_room(task_class: TaskClass, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows with room; the others are counted under every resource they are short of."""
    fits = np.ones(len(rows), dtype=bool)
    for resource, is_short in task_class.shortages(rows):
        reason = TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"
        counts[reason] += int(np.count_nonzero(is_short))
        fits &= ~is_short
    return rows[fits]
