"""Why no node could ever run a pod, however empty: which of its conditions no node meets together.

fit_error.py counts every node under the first rule that refuses it, as kube-scheduler does, so it does not
tell which condition to change. For pods that wait for no room this adds:

    No node, however empty, satisfies all of: kubernetes.io/arch=arm64, disktype=ssd; without disktype=ssd
    3 nodes would; nearest: node-7 (all but disktype=ssd).

Conditions that every node meets are left out. The words are the pod's own, beside the name of one node:
labels and taints of nodes may name other tenants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import Parts
from eclectus.feasibility.rules.rule import Mask, Predicate
from eclectus.feasibility.static_rules import static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec

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
