"""The nodes that lack least for a pod, and what would have to change on each of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.engine.explain.other_pods import NAMED_MOST, InTheWay, in_the_way, named
from eclectus.engine.state import State
from eclectus.feasibility.funnel import ROOM_PLUGIN, shortages_of_row, topology_plugin
from eclectus.feasibility.many_terms import FEW_TERMS
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.static_rules import static_rules_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.explanation import Lack, NearMiss
from eclectus.model.objects import Spec, Task

NODES_MOST = 3
LACKS_MOST = 8  # named of one node: a pod may request thousands of resources
WORDS_MOST = 120  # characters of one condition


def near_misses(state: State, task: Task, task_class: TaskClass) -> tuple[NearMiss, ...]:
    """The nearest nodes, the first one first; none where a node has room, or where no node would ever do.

    The class must be up to date. Costs nodes times conditions, as FitError does. Of a pod with very many
    affinity terms only nodes that could run it are considered.
    """
    spec = task_class.spec
    if task_class.fits_now_count or spec.unsupported:
        return ()
    rows = np.flatnonzero(task_class.feasible if _has_many_terms(spec) else state.cluster.present)
    if not len(rows):
        return ()
    conditions = list(_conditions(task_class, rows))
    overflow = task_class.overflow[rows]
    lacking = np.sum([lacks for _, lacks in conditions], axis=0) + (overflow > 0)
    nearest = np.lexsort((overflow, lacking))[:NODES_MOST]
    return tuple(
        _miss(state, task, task_class, int(rows[at]), [lack for lack, lacks in conditions if lacks[at]])
        for at in nearest.tolist()
    )


def _has_many_terms(spec: Spec) -> bool:
    return len(spec.affinity or ()) > FEW_TERMS


def _conditions(task_class: TaskClass, rows: Rows) -> Iterator[tuple[Lack, Mask]]:
    """All that the pod asks of a node beside room, and which of the rows lack it, shape [len(rows)]."""
    cluster, spec = task_class.cluster, task_class.spec
    # With many terms the rows are those on which these hold.
    for rule in () if _has_many_terms(spec) else static_rules_of(spec):
        for words, holds in rule.predicates(spec):
            yield Lack(rule.plugin, _cut(words), permanent=True), ~holds(cluster, rows)
    for rule in task_class.usage_rules:
        yield Lack(rule.plugin, rule.reason), ~rule.holds(cluster, spec, rows)
    if task_class.topology is not None:
        for reason, refused in task_class.topology.refusals(rows):
            yield Lack(topology_plugin(task_class, reason), reason), refused


def _miss(state: State, task: Task, task_class: TaskClass, row: int, lacks: list[Lack]) -> NearMiss:
    lacks += _shortages(task_class, row)
    found = in_the_way(state, task, task_class, row) or InTheWay()
    return NearMiss(
        node=state.cluster.names[row],
        lacks=tuple(lacks[:LACKS_MOST]),
        fits_without=named(state, found.pods),
        not_listed=max(len(found.pods) - NAMED_MOST, 0),
        planned=found.is_planned,
    )


def _shortages(task_class: TaskClass, row: int) -> Iterator[Lack]:
    """The resources of which the node has too little left."""
    cluster, spec = task_class.cluster, task_class.spec
    requests = dict(spec.requests)
    for resource, missing in shortages_of_row(spec, cluster, row):
        column = cluster.columns.get(resource)
        offered = 0.0 if column is None else cluster.allocatable[row, column]
        is_permanent = bool(offered < max(requests.get(resource, 0), 1))
        yield Lack(ROOM_PLUGIN, resource, missing, permanent=is_permanent)


def _cut(text: str) -> str:
    return text if len(text) <= WORDS_MOST else f"{text[: WORDS_MOST - 1]}…"
