"""What the rules leave of all nodes, one after the other, in kube-scheduler's order.

A node counts under the first rule that refuses it; where room refuses it, under every resource that is short.
Room that is held or tentatively placed is taken, so a node that others wait for counts as full. fit_error.py
makes kube-scheduler's message of the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.feasibility.rules import node_affinity
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.rules.table import USAGE_RULES
from eclectus.feasibility.static_rules import static_part, static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.topology.domain_rules import Affinity, Spread
from eclectus.feasibility.volume_reaches import VOLUME_RULES, volume_refusals
from eclectus.model.explanation import FilterStep, Refusal
from eclectus.model.objects import NO_VOLUMES, Spec

ROOM_PLUGIN = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
NO_ROWS: Rows = np.zeros(0, dtype=np.intp)
_OF_PODS = {
    rule.plugin for rule in USAGE_RULES if rule.without is not None
}  # what pods there hold refuses nodes
_UNRESOLVABLE = {Spread.absent_reason, Affinity.reason}  # no pod that leaves brings a label or another pod


@dataclass(frozen=True, slots=True)
class Filtered:
    """The rules so far, in order, and the rows that pass all of them, ascending.

    `resolvable`: the rows that were refused for what pods there hold (kube-scheduler's Unschedulable, not
    UnschedulableAndUnresolvable), in any order: without some of these pods they might not be.
    """

    steps: tuple[FilterStep, ...]
    rows: Rows
    resolvable: Rows


class StaticRefusals:
    """Which nodes the static rules refuse, evaluated once for all pods that they cannot tell apart.

    Not volumes, nor the labels that topology spread and pod affinity require: kube-scheduler looks at those
    after room.
    Valid until a node changes in shape: made for the messages of one step.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._of: dict[Spec, Filtered] = {}

    def of(self, spec: Spec) -> Filtered:
        """What the static rules leave. For reading only."""
        part = replace(static_part(spec), topology_keys=(), volumes=NO_VOLUMES)
        found = self._of.get(part)
        if found is None:
            first = _candidates(part, self._cluster)
            found = self._of[part] = _filtered(first, static_rules_of(part), part, self._cluster)
        return found


def funnel(task_class: TaskClass, cluster: Cluster, refusals: StaticRefusals) -> Filtered:
    """All rules of a class that is up to date; the last step leaves the nodes on which it fits now."""
    spec, rules = task_class.spec, task_class.usage_rules
    after_room = [rule for rule in rules if rule.after_room and rule not in VOLUME_RULES]
    found = _filtered(refusals.of(spec), [rule for rule in rules if not rule.after_room], spec, cluster)
    found = _with_room(found, task_class)
    found = _with_volumes(found, spec, cluster)
    found = _allowed_beside_other_pods(found, task_class)
    return _filtered(found, after_room, spec, cluster)


def room_reason(resource: str) -> str:
    """kube-scheduler's words for a node that is short of a resource."""
    return TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"


def topology_plugin(task_class: TaskClass, reason: str) -> str:
    """The plugin of the rule about other pods that refuses nodes for this reason."""
    rules = () if task_class.topology is None else task_class.topology.rules
    return next(rule.plugin for rule in rules if reason.startswith(rule.reason))


def _candidates(spec: Spec, cluster: Cluster) -> Filtered:
    """The rows to filter; nodes that required affinity excludes by name are counted without filtering."""
    names = node_affinity.pinned_names(spec)
    if names is None:
        return Filtered((), np.flatnonzero(cluster.present), NO_ROWS)
    rows = np.array(sorted(cluster.rows[name] for name in names if name in cluster.rows), dtype=np.intp)
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    refused = len(cluster) - len(rows)
    return Filtered((_step(node_affinity.RULE.plugin, len(rows), ((reason, refused),)),), rows, NO_ROWS)


def _filtered(before: Filtered, rules: Iterable[Rule], spec: Spec, cluster: Cluster) -> Filtered:
    steps, rows, resolvable = list(before.steps), before.rows, [before.resolvable]
    for rule in rules:
        refused = NO_ROWS
        if len(rows):
            holds = rule.holds(cluster, spec, rows)
            rows, refused = rows[holds], rows[~holds]
        if rule.plugin in _OF_PODS:
            resolvable.append(refused)
        steps.append(_step(rule.plugin, len(rows), ((rule.reason, len(refused)),)))
    return Filtered(tuple(steps), rows, np.concatenate(resolvable))


def _with_room(before: Filtered, task_class: TaskClass) -> Filtered:
    rows = before.rows
    fits, short = np.ones(len(rows), dtype=bool), list[tuple[str, int]]()
    for resource, is_short in task_class.shortages(rows):
        short.append((room_reason(resource), int(np.count_nonzero(is_short))))
        fits &= ~is_short
    refused, rows = rows[~fits], rows[fits]
    resolvable = refused[task_class.empty_capacity[refused] >= 1]
    steps = (*before.steps, _step(ROOM_PLUGIN, len(rows), short))
    return Filtered(steps, rows, np.concatenate([before.resolvable, resolvable]))


def _with_volumes(before: Filtered, spec: Spec, cluster: Cluster) -> Filtered:
    steps, rows, resolvable = list(before.steps), before.rows, [before.resolvable]
    for plugin, refused, left in volume_refusals(spec, cluster, before.rows):
        if plugin in _OF_PODS:
            resolvable.append(np.setdiff1d(rows, left, assume_unique=True))
        rows = left
        steps.append(_step(plugin, len(rows), refused))
    return Filtered(tuple(steps), rows, np.concatenate(resolvable))


def _allowed_beside_other_pods(before: Filtered, task_class: TaskClass) -> Filtered:
    if task_class.topology is None:
        return before
    steps, rows, resolvable = list(before.steps), before.rows, [before.resolvable]
    left = np.ones(len(rows), dtype=bool)
    for reason, refused in task_class.topology.refusals(rows):
        newly = rows[refused & left]
        left &= ~refused
        if reason not in _UNRESOLVABLE:
            resolvable.append(newly)
        plugin = topology_plugin(task_class, reason)
        steps.append(_step(plugin, int(np.count_nonzero(left)), ((reason, len(newly)),)))
    return Filtered(tuple(steps), rows[left], np.concatenate(resolvable))


def _step(plugin: str, left: int, refused: Iterable[tuple[str, int]]) -> FilterStep:
    return FilterStep(plugin, left, tuple(Refusal(reason, count) for reason, count in refused if count))


def refusals_of_row(spec: Spec, cluster: Cluster, row: int) -> tuple[str, ...]:
    """Why one node cannot run a pod now, as far as the node itself says: the first rule that refuses it.

    Where room refuses it, every resource that is short. Rules about other pods are not asked.
    """
    alone = np.array([row], dtype=np.intp)
    usage = [rule for rule in USAGE_RULES if rule.applies(spec)]
    before_room = (*static_rules_of(spec), *(rule for rule in usage if not rule.after_room))
    refused = _first(before_room, spec, cluster, alone)
    if refused:
        return refused
    short = tuple(room_reason(resource) for resource, _ in shortages_of_row(spec, cluster, row))
    return short or _first((rule for rule in usage if rule.after_room), spec, cluster, alone)


def shortages_of_row(spec: Spec, cluster: Cluster, row: int) -> list[tuple[str, int]]:
    """Each resource of which a node has too little left for a pod, and how much is missing."""
    names, requests = tuple(cluster.columns), cluster.parts(spec.requests)
    excess = cluster.used[row] + cluster.tentative[row] - cluster.allocatable[row]
    found = [(names[column], int(excess[column] + amount)) for column, amount in requests]
    return [each for each in found if each[1] > 0] + list(cluster.not_offered(spec.requests))


def _first(rules: Iterable[Rule], spec: Spec, cluster: Cluster, rows: Rows) -> tuple[str, ...]:
    return next(((rule.reason,) for rule in rules if not rule.holds(cluster, spec, rows)[0]), ())
