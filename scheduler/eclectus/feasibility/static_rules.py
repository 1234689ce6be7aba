"""What the static rules say of nodes, and which part of a spec they read.

A static rule depends on the shape of a node alone: allocatable, labels, taints, cordon.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.many_terms import FEW_TERMS, ManyTerms
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.rules.table import STATIC_RULES
from eclectus.model.objects import NO_VOLUME_USE, Spec

Item = TypeVar("Item", bound=np.generic)


class ShapeValues(Generic[Item]):
    """An array over nodes that follows the change log `shape`. Classes share it, and each may refresh it.

    `evaluate(rows)`: the values of these rows, shape [len(rows)]; all rows at once are a slice. Where there
    has been no node the value is 0.
    """

    def __init__(
        self, cluster: Cluster, item: type[Item], evaluate: Callable[[AnyRows], NDArray[Item]]
    ) -> None:
        self._cluster = cluster
        self._evaluate: Callable[[AnyRows], NDArray[Item]] = evaluate
        self._cursor = -1
        self._values: NDArray[Item] = np.zeros(0, dtype=item)
        self._view = self._values
        self.refresh()

    def refresh(self) -> NDArray[Item]:
        """The values, up to date, shape [capacity], read-only; replaced when the cluster's arrays are."""
        shape = self._cluster.shape
        if self._cursor != shape.head:
            changed = shape.since(self._cursor)
            self._cursor = shape.head
            if changed is None:
                self._start_over()
            else:
                rows = np.array(changed, dtype=np.intp)
                self._values[rows] = self._evaluate(rows)
        return self._view

    def _start_over(self) -> None:
        capacity, rows = self._cluster.capacity, slice(len(self._cluster.names))
        if len(self._values) != capacity:
            self._values = np.zeros(capacity, dtype=self._values.dtype)
            self._view = read_only(self._values)
        self._values[rows] = self._evaluate(rows)


# Fields that no rule reads, and what they are where only rules are asked. All others are kept, so that a rule
# may read a new field of a spec without a change here.
NOT_READ_BY_RULES = {
    "score_requests": (0, 0),
    "preferences": (),
    "long_running": False,
    "probe": False,
    "preferred_terms": (),
    "preferred_spread": (),
    "matched_preferences": (),
    "images": (),
}
# Of rules about other pods, static rules read `topology_keys` alone.
_OF_OTHER_PODS = {
    "matched_terms": (),
    "spread": (),
    "affinity_terms": (),
    "matches_itself": False,
    "own_anti_affinity": (),
}
NOT_READ_BY_STATIC_RULES = {
    **NOT_READ_BY_RULES,
    **_OF_OTHER_PODS,
    "requests": (),
    "host_ports": (),
    "volume_use": NO_VOLUME_USE,
}


def static_part(spec: Spec) -> Spec:
    """A spec that is equal for pods that the static rules cannot tell apart."""
    return replace(spec, **NOT_READ_BY_STATIC_RULES)


def static_rules_of(spec: Spec) -> tuple[Rule, ...]:
    """The static rules that apply to pods with this spec."""
    return tuple(rule for rule in STATIC_RULES if rule.applies(spec))


def evaluation(
    cluster: Cluster, spec: Spec, rules: Collection[Rule] = STATIC_RULES
) -> Callable[[Rows], Mask]:
    """A function of rows: whether there is a node on each for which all these rules hold, shape [len(rows)].

    Made once for a spec: required node affinity of very many terms is prepared for evaluating few rows.
    """

    def applying(part: Spec) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules if rule.applies(part))

    if spec.affinity is None or len(spec.affinity) <= FEW_TERMS:
        return partial(_rules_hold, applying(spec), cluster, spec)
    rest, many = replace(spec, affinity=None), ManyTerms(cluster, spec.affinity)
    others = partial(_rules_hold, applying(rest), cluster, rest)
    return lambda rows: others(rows) & many.any_holds(rows)


def _rules_hold(rules: Iterable[Rule], cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    """Whether there is a node on each of the rows for which all these rules hold, shape [len(rows)]."""
    holds = cluster.present[rows]
    for rule in rules:
        holds &= rule.holds(cluster, spec, rows)
    return holds
