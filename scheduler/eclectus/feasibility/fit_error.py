"""Why a class fits on no node now, in kube-scheduler's words: autoscalers parse them, people search for them.

Byte-compatible with the FitError of kube-scheduler 1.37:

    0/<nodes> nodes are available: <count> <reason>, <count> <reason>…

The parts are sorted as strings ("10 x" before "2 y"). The outcome of preemption ("preemption: 0/4 nodes …"),
which kube-scheduler appends, is added by engine/reports.py; for it this file says what refuses a node even
without the pods that could be evicted there.

FitError counts every node under the first rule that refuses it, so it does not tell which condition to
change. For pods that no node could ever run, however empty, Eclectus adds which of their conditions no node
meets together:

    No node, however empty, satisfies all of: kubernetes.io/arch=arm64, disktype=ssd; without disktype=ssd
    3 nodes would; nearest: node-7 (all but disktype=ssd).

Conditions that every node meets are left out. The words are the pod's own, beside the name of one node:
labels and taints of nodes may name other tenants.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS, Parts
from eclectus.feasibility.rules import nodes, volumes
from eclectus.feasibility.rules.rule import Mask, Predicate, Rule
from eclectus.feasibility.rules.table import USAGE_RULES
from eclectus.feasibility.static_rules import static_part, static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.topology.mask import AFFINITY, SPREAD, MaskWithout
from eclectus.feasibility.volume_reaches import VOLUME_RULES, volume_reasons_without, volume_refusals
from eclectus.model.explanation import FilterStep, Refusal
from eclectus.model.objects import NO_VOLUMES, Spec, Task, outranks

# Whether a task fits on a node without some of its pods: a question, which changes nothing.


class RoomWithout:
    """One node as it would be without the pods removed so far, for one more task of a class.

    What waiting tasks will hold there does not count: they have no room yet. The class must be up to date.
    """

    __slots__ = ("_pod_rules", "_removed", "excess", "row", "task_class")

    def __init__(self, task_class: TaskClass, row: int) -> None:
        cluster = task_class.cluster
        used = cluster.used[row]
        allocatable = cluster.allocatable[row]
        self.task_class = task_class
        self.row = row
        # Column of each demanded resource -> by how much the node is too full for the task.
        self.excess = {
            column: float(used[column] + demand - allocatable[column])
            for column, demand in cluster.parts(task_class.spec.requests)
        }
        self._removed: dict[str, Task] = {}
        self._pod_rules: MaskWithout | None = None  # once it was asked for

    def remove(self, pod: Task) -> None:
        """Without this pod, which is on the node and not removed yet."""
        self._removed[pod.uid] = pod
        self._add(pod, -1)
        if self._pod_rules is not None:
            self._pod_rules.remove(pod)

    def restore(self, pod: Task) -> None:
        """With this pod again."""
        del self._removed[pod.uid]
        self._add(pod, 1)
        if self._pod_rules is not None:
            self._pod_rules.restore(pod)

    @property
    def removed(self) -> Collection[Task]:
        """The pods that the node is without."""
        return self._removed.values()

    @property
    def fits(self) -> bool:
        """Whether a task of the class fits now. False where no node that has no pods could run it."""
        task_class, row, removed = self.task_class, self.row, self.removed
        if not task_class.scalars.feasible[row] or any(each > 0 for each in self.excess.values()):
            return False
        if task_class.topology is not None:
            if self._pod_rules is None:
                self._pod_rules = task_class.topology.without(row, removed)
            if self._pod_rules.refusal:
                return False
        cluster, spec = task_class.cluster, task_class.spec
        return all(rule.holds_without(cluster, spec, row, removed) for rule in task_class.usage_rules)

    def _add(self, pod: Task, sign: int) -> None:
        for column, amount in self.task_class.cluster.held_parts(pod):
            if column in self.excess:
                self.excess[column] += sign * amount


def without_outranked(
    task_class: TaskClass, row: int, pods: Iterable[tuple[Task, float]], task: Task
) -> RoomWithout | None:
    """The node without those of its pods that the task outranks; None if it outranks none.

    `pods`: all that are there, each with a time that does not matter, as `PlacedPods.on_row` gives them.
    """
    lower = [pod for pod, _ in pods if outranks(task, pod)]
    if not lower:
        return None
    room = RoomWithout(task_class, row)
    for pod in lower:
        room.remove(pod)
    return room


# What the rules leave of all nodes, one after the other, in kube-scheduler's order.
#
# A node counts under the first rule that refuses it; where room refuses it, under every resource that is
# short. Room that is held or tentatively placed is taken, so a node that others wait for counts as full.

ROOM_PLUGIN = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
NO_ROWS: Rows = np.zeros(0, dtype=np.intp)
_OF_PODS = {rule.plugin for rule in USAGE_RULES if rule.without is not None}  # refuse for what pods hold
_UNRESOLVABLE = {SPREAD.absent_reason, AFFINITY.reason}  # no pod that leaves brings a label or another pod


class Filtered(Struct, frozen=True):
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


def _candidates(spec: Spec, cluster: Cluster) -> Filtered:
    """The rows to filter; nodes that required affinity excludes by name are counted without filtering."""
    names = nodes.pinned_names(spec)
    if names is None:
        return Filtered((), np.flatnonzero(cluster.present), NO_ROWS)
    rows = np.array(sorted(cluster.rows[name] for name in names if name in cluster.rows), dtype=np.intp)
    reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
    refused = len(cluster) - len(rows)
    return Filtered((_step(nodes.NODE_AFFINITY.plugin, len(rows), ((reason, refused),)),), rows, NO_ROWS)


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
    for plugin, reason, refused in task_class.topology.refusals(rows):
        newly = rows[refused & left]
        left &= ~refused
        if reason not in _UNRESOLVABLE:
            resolvable.append(newly)
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


PINS_CONFLICT = "pod affinity terms conflict"
NO_NODES = "no nodes available to schedule pods"
MAX_REASONS = 64  # a pod may name thousands of resources, and the message must fit into its status


class FitError(NamedTuple):
    """A message, and the rows of the nodes on which pods that leave might make the pod fit."""

    message: str
    resolvable: Rows


def fit_error(task_class: TaskClass, cluster: Cluster, refusals: StaticRefusals | None = None) -> FitError:
    """For a pod of this class that fits on no node; the message names no reason if it does fit on one.

    The class must be up to date. `refusals`: those of the other messages of this step.
    """
    if not len(cluster):
        return FitError(NO_NODES, NO_ROWS)
    # What refuses the pod on all nodes at once, as kube-scheduler's PreFilter.
    spec = task_class.spec
    if is_blocked_by_claims(spec):
        return FitError(_message(cluster, volumes.BLOCKED.reason), NO_ROWS)
    if spec.unsupported:
        return FitError(_message(cluster, nodes.unsupported_message(spec)), NO_ROWS)
    if _names_conflict(spec):
        return FitError(_message(cluster, PINS_CONFLICT), NO_ROWS)
    found = funnel(task_class, cluster, StaticRefusals(cluster) if refusals is None else refusals)
    counts = Counter[str]()
    for refusal in (refusal for step in found.steps for refusal in step.refusals):
        counts[refusal.reason] += refusal.count
    return FitError(_message(cluster, counted(counts)), found.resolvable)


def _message(cluster: Cluster, reasons: str) -> str:
    return f"0/{len(cluster)} nodes are available:" + (f" {reasons}." if reasons else "")


def counted(counts: Mapping[str, int]) -> str:
    """Numbers of nodes by reason, as kube-scheduler writes them; of many reasons the first."""
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    if len(parts) > MAX_REASONS:
        parts[MAX_REASONS:] = [f"{len(parts) - MAX_REASONS} more reasons"]
    return ", ".join(parts)


def is_blocked_by_claims(spec: Spec) -> bool:
    """Whether the pod's claims are what the message is about, of all that refuses it on all nodes at once."""
    return spec.volumes.is_blocked and not spec.unsupported and not _names_conflict(spec)


def _names_conflict(spec: Spec) -> bool:
    return nodes.pinned_names(spec) == frozenset()


def left_over(
    task_class: TaskClass, row: int, pods: Iterable[tuple[Task, float]], task: Task, none: str
) -> tuple[str, ...]:
    """What would refuse the task even without the pods on the row that it outranks.

    `none` where there are no such pods, and where nothing would refuse it: for a moment, before pods are
    evicted there. `pods` as for `without_outranked`.
    """
    room = without_outranked(task_class, row, pods, task)
    return (() if room is None else reasons_without(room)) or (none,)


def reasons_without(room: RoomWithout) -> tuple[str, ...]:
    """kube-scheduler's words of the first rule that refuses the node without the pods removed.

    Where room refuses it, every resource that is short. For nodes that no rule before room refuses but for
    what pods there hold; empty where the pod would fit.
    """
    task_class, row, removed = room.task_class, room.row, room.removed
    cluster, spec, usage = task_class.cluster, task_class.spec, task_class.usage_rules
    before = [rule for rule in usage if not rule.after_room and rule not in VOLUME_RULES]
    after = [rule for rule in usage if rule.after_room and rule not in VOLUME_RULES]
    topology = task_class.topology
    for rule in before:
        if not rule.holds_without(cluster, spec, row, removed):
            return (rule.reason,)
    names = tuple(cluster.columns)
    short = [names[column] for column, excess in room.excess.items() if excess > 0]
    if short := [*short, *(name for name, _ in cluster.not_offered(spec.requests))]:
        return tuple(map(room_reason, short))
    if refused := volume_reasons_without(spec, cluster, row, removed):
        return refused
    if topology is not None and (reason := topology.refusal_without(row, removed)):
        return (reason,)
    return next(((rule.reason,) for rule in after if not rule.holds_without(cluster, spec, row, removed)), ())


MAX_RESOURCES = 12  # named one by one; a pod may request thousands
MAX_WITHOUT = 3  # conditions of which the message says how many nodes would do without
MAX_LENGTH = 120  # of one condition, characters
_BINARY = (("Gi", 1 << 30), ("Mi", 1 << 20))


def never_feasible(task_class: TaskClass, cluster: Cluster) -> str:
    """A sentence to follow fit_error's; empty if a node could run the class when it is empty.

    Empty too for pods that ask for an unsupported feature, or whose claims are missing or not bound: the
    message names these. Costs nodes times conditions, of which some dozens are named one by one at most.
    """
    spec = task_class.spec
    if task_class.feasible_count or spec.unsupported or spec.volumes.is_blocked or not len(cluster):
        return ""
    rows = np.flatnonzero(cluster.present)
    conditions = list(predicates(task_class.spec, cluster))
    refused: Mask = np.array([~holds(cluster, rows) for _, holds in conditions])
    matter = np.flatnonzero(refused.sum(axis=1))
    whole = (conditions[at][0] for at in matter.tolist())
    words = [text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…" for text in whole]
    return _sentence(words, refused[matter], lambda at: cluster.names[rows[at]])


def predicates(spec: Spec, cluster: Cluster) -> Iterator[Predicate]:
    """All conditions of the pod on an empty node: it is feasible where all of them hold."""
    for rule in static_rules_of(spec):
        yield from rule.predicates(spec)
    parts, names = cluster.parts(spec.requests), tuple(cluster.columns)
    lacking = cluster.not_offered(spec.requests)
    if len(parts) + len(lacking) > MAX_RESOURCES:
        yield "its requests", partial(_offers, parts, not lacking)
        return
    for column, amount in parts:
        yield _request(names[column], amount), partial(_offers, ((column, amount),), True)
    for name, amount in lacking:
        yield _request(name, amount), partial(_offers, (), False)


def _offers(parts: Parts, has_columns: bool, cluster: Cluster, rows: Rows) -> Mask:
    """Where the empty node has so much of each of these columns; nowhere if a resource has no column."""
    holds = np.full(len(rows), has_columns)
    for column, amount in parts:
        holds &= cluster.allocatable[rows, column] >= amount
    return holds


def _request(resource: str, amount: float) -> str:
    if resource == "cpu":
        return f"cpu {amount / 1000:g}"
    for suffix, unit in _BINARY:
        if amount >= unit and amount % unit == 0:
            return f"{resource} {amount / unit:g}{suffix}"
    return f"{resource} {amount:.0f}"


def _sentence(words: Sequence[str], refused: Mask, name_of: Callable[[int], str]) -> str:
    """`refused`: which condition which node does not meet, shape [len(words), nodes]."""
    if len(words) == 1:
        return f" No node, however empty, satisfies: {words[0]}."
    refusals = refused.sum(axis=0)
    alone = refused[:, refusals == 1].sum(axis=1)  # nodes that only this condition keeps away
    most = [at for at in np.argsort(-alone, kind="stable").tolist() if alone[at]][:MAX_WITHOUT]
    nodes_of = {at: f"{alone[at]} {'node' if alone[at] == 1 else 'nodes'}" for at in most}
    without = "".join(f"; without {words[at]} {would} would" for at, would in nodes_of.items())
    nearest = int(np.argmin(refusals))
    lacks = ", ".join(words[at] for at in np.flatnonzero(refused[:, nearest]).tolist())
    return (
        f" No node, however empty, satisfies all of: {', '.join(words)}{without}; "
        f"nearest: {name_of(nearest)} (all but {lacks})."
    )
