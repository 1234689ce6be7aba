"""Why a class fits on no node now, in kube-scheduler's words: autoscalers parse them, people search for them.

Byte-compatible with the FitError of kube-scheduler 1.36:

    0/<nodes> nodes are available: <count> <reason>, <count> <reason>…

The counts are those of funnel.py. The parts are sorted as strings ("10 x" before "2 y").

The outcome of preemption ("preemption: 0/4 nodes …"), which kube-scheduler appends, is added by
engine/reports.py.

For it this file says what refuses a node even without the pods that could be evicted there.

FitError counts every node under the first rule that refuses it, so it does not tell which condition to
change. For pods that no node could ever run, however empty, Eclectus adds which of their conditions no node
meets together:

    No node, however empty, satisfies all of: kubernetes.io/arch=arm64, disktype=ssd; without disktype=ssd
    3 nodes would; nearest: node-7 (all but disktype=ssd).

Conditions that every node meets are left out. The words are the pod's own, beside the name of one node:
labels and taints of nodes may name other tenants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import Parts
from eclectus.feasibility.funnel import NO_ROWS, StaticRefusals, funnel, room_reason
from eclectus.feasibility.room_without import RoomWithout, without_outranked
from eclectus.feasibility.rules import node_affinity, unsupported, volume_binding
from eclectus.feasibility.rules.rule import Mask, Predicate
from eclectus.feasibility.static_rules import static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.volume_reaches import VOLUME_RULES, volume_reasons_without
from eclectus.model.explanation import FilterStep
from eclectus.model.objects import Spec, Task

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
    if reasons := _pre_filter(task_class.spec):
        return FitError(_message(cluster, reasons), NO_ROWS)
    found = funnel(task_class, cluster, StaticRefusals(cluster) if refusals is None else refusals)
    return FitError(_message(cluster, _reasons(found.steps)), found.resolvable)


def _message(cluster: Cluster, reasons: str) -> str:
    return f"0/{len(cluster)} nodes are available:" + (f" {reasons}." if reasons else "")


def _reasons(steps: Iterable[FilterStep]) -> str:
    counts = Counter[str]()
    for step in steps:
        for refusal in step.refusals:
            counts[refusal.reason] += refusal.count
    return counted(counts)


def counted(counts: Mapping[str, int]) -> str:
    """Numbers of nodes by reason, as kube-scheduler writes them; of many reasons the first."""
    parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
    if len(parts) > MAX_REASONS:
        parts[MAX_REASONS:] = [f"{len(parts) - MAX_REASONS} more reasons"]
    return ", ".join(parts)


def _pre_filter(spec: Spec) -> str:
    """What refuses the pod on all nodes at once, as kube-scheduler's PreFilter; empty if nothing does."""
    if is_blocked_by_claims(spec):
        return volume_binding.BLOCKED.reason
    if spec.unsupported:
        return unsupported.message(spec)
    return PINS_CONFLICT if _names_conflict(spec) else ""


def is_blocked_by_claims(spec: Spec) -> bool:
    """Whether the pod's claims are what the message is about, of all that refuses it on all nodes at once."""
    return spec.volumes.is_blocked and not spec.unsupported and not _names_conflict(spec)


def _names_conflict(spec: Spec) -> bool:
    return node_affinity.pinned_names(spec) == frozenset()


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
    if short := _short(room):
        return short
    if refused := volume_reasons_without(spec, cluster, row, removed):
        return refused
    if topology is not None and (reason := topology.refusal_without(row, removed)):
        return (reason,)
    return next(((rule.reason,) for rule in after if not rule.holds_without(cluster, spec, row, removed)), ())


def _short(room: RoomWithout) -> tuple[str, ...]:
    cluster = room.task_class.cluster
    names = tuple(cluster.columns)
    lacking = [name for name, _ in cluster.not_offered(room.task_class.spec.requests)]
    return tuple(room_reason(name) for name in [*(names[column] for column in room.short_columns), *lacking])


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
    words = [_cut(conditions[at][0]) for at in matter.tolist()]
    return _sentence(words, refused[matter], [cluster.names[row] for row in rows.tolist()])


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


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…"


def _sentence(words: Sequence[str], refused: Mask, names: Sequence[str]) -> str:
    """`refused`: which condition which node does not meet, shape [len(words), len(names)]."""
    if len(words) == 1:
        return f" No node, however empty, satisfies: {words[0]}."
    refusals = refused.sum(axis=0)
    alone = refused[:, refusals == 1].sum(axis=1)  # nodes that only this condition keeps away
    most = [at for at in np.argsort(-alone, kind="stable").tolist() if alone[at]][:MAX_WITHOUT]
    without = "".join(f"; without {words[at]} {_nodes(int(alone[at]))} would" for at in most)
    nearest = int(np.argmin(refusals))
    lacks = ", ".join(words[at] for at in np.flatnonzero(refused[:, nearest]).tolist())
    return (
        f" No node, however empty, satisfies all of: {', '.join(words)}{without}; "
        f"nearest: {names[nearest]} (all but {lacks})."
    )


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
