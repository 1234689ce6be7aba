"""TaintToleration: a node's taints keep away the pods that do not tolerate them.

Nodes share few distinct sets of taints, so each set is evaluated once, not once per node. The operators Lt
and Gt are those of KEP-5471: the taint's value is less or greater than the toleration's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.integers import parse_integer
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Taint, Toleration

Taints = tuple[Taint, ...]


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether any of the tolerations tolerates the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def by_taint_set(cluster: Cluster, rows: AnyRows, value: Callable[[Taints], float]) -> NDArray[np.float64]:
    """`value` of each row's taints, shape [len(rows)], computed once for each distinct set."""
    sets = cluster.taint_set[rows]
    values = np.zeros(len(cluster.taint_sets))
    for index in np.flatnonzero(np.bincount(sets)).tolist():
        values[index] = value(cluster.taint_sets[index])
    return values[sets]


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.op:
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
        case "Lt" | "Gt":
            return _compares(toleration, taint)


def _compares(toleration: Toleration, taint: Taint) -> bool:
    bound, value = _decimal(toleration.value), _decimal(taint.value)
    if bound is None or value is None:
        return False
    return value < bound if toleration.op == "Lt" else value > bound


def _decimal(text: str) -> int | None:
    number = parse_integer(text)
    return number if text == str(number) else None  # stricter than for labels: no plus sign, no leading zeros


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    def all_tolerated(taints: Taints) -> bool:
        return all(
            taint.effect == "PreferNoSchedule" or tolerated(taint, spec.tolerations) for taint in taints
        )

    return by_taint_set(cluster, rows, all_tolerated) > 0


RULE = Rule(
    plugin="TaintToleration",
    reason="node(s) had untolerated taint(s)",
    applies=lambda _spec: True,
    holds=_holds,
)
