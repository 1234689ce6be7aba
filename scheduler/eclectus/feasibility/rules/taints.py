"""TaintToleration: a node's taints keep away the pods that do not tolerate them.

Nodes share few distinct sets of taints, so each set is evaluated once, not once per node. But autoscalers
write times into taints, and a pod may have thousands of tolerations, so these are looked up instead of being
compared one by one. The operators Lt and Gt are those of KEP-5471: the taint's value is less or greater than
the toleration's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.labels import parse_integer
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Taint, Toleration

Taints = tuple[Taint, ...]
Where = tuple[str, str]
"""(key, effect) of a toleration; empty for any."""


class Tolerations:
    """What the tolerations of a pod tolerate."""

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._any_value: set[Where] = set()
        self._values: set[tuple[Where, str]] = set()
        self._below: dict[Where, int] = {}  # of all bounds of Lt the greatest
        self._above: dict[Where, int] = {}  # of all bounds of Gt the least
        for each in tolerations:
            self._add(each)

    def _add(self, toleration: Toleration) -> None:
        where = (toleration.key, toleration.effect)
        if toleration.op == "Exists":
            self._any_value.add(where)
        elif toleration.op == "Equal":
            self._values.add((where, toleration.value))
        elif (bound := _decimal(toleration.value)) is not None:
            if toleration.op == "Lt":
                self._below[where] = max(bound, self._below.get(where, bound))
            else:
                self._above[where] = min(bound, self._above.get(where, bound))

    def tolerate(self, taint: Taint) -> bool:
        """Whether one of them tolerates the taint."""
        each = [(key, effect) for key in (taint.key, "") for effect in (taint.effect, "")]
        if any(where in self._any_value or (where, taint.value) in self._values for where in each):
            return True
        value = _decimal(taint.value) if self._below or self._above else None
        return value is not None and any(
            value < self._below.get(where, value) or value > self._above.get(where, value) for where in each
        )


def by_taint_set(cluster: Cluster, rows: AnyRows, value: Callable[[Taints], float]) -> NDArray[np.float64]:
    """`value` of each row's taints, shape [len(rows)], computed once for each distinct set."""
    sets = cluster.taint_set[rows]
    values = np.zeros(len(cluster.taint_sets))
    for index in np.flatnonzero(np.bincount(sets)).tolist():
        values[index] = value(cluster.taint_sets[index])
    return values[sets]


def _decimal(text: str) -> int | None:
    number = parse_integer(text)
    return number if text == str(number) else None  # stricter than for labels: no plus sign, no leading zeros


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    tolerations = Tolerations(spec.tolerations)

    def all_tolerated(taints: Taints) -> bool:
        return all(taint.effect == "PreferNoSchedule" or tolerations.tolerate(taint) for taint in taints)

    return by_taint_set(cluster, rows, all_tolerated) > 0


RULE = Rule(
    plugin="TaintToleration",
    reason="node(s) had untolerated taint(s)",
    applies=lambda _spec: True,
    holds=_holds,
    condition="tolerated taints",
)
