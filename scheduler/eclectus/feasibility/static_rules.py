"""What the static rules say of nodes, and which part of a spec they read.

A static rule depends on the shape of a node alone: allocatable, labels, taints, cordon.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.labels import parse_integer
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.rules.nodes import NAME_FIELD, term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.rules.table import STATIC_RULES
from eclectus.maths.numbers import Floats
from eclectus.model.objects import NO_VOLUME_USE, Requirement, Spec, Term

# Node selector terms of a pod that states thousands of them, evaluated for a few nodes at a time.
#
# The columns of labels (rules/nodes.py) cost a vector operation for each requirement, however few
# nodes have changed: a tenth of a second for 20,000 terms and one node. Here requirements are filed by the
# label that decides about them, so a node costs a lookup for each of its own labels, and one pass over an
# array.

FEW_TERMS = 32  # up to so many, the columns cost little for a single row too
FEW_ROWS = 64  # for more, columns are faster: one term of many takes less than a microsecond for each node

_Ids = NDArray[np.intp]


class _Filed:
    """Numbers of requirements by what of a node decides about them.

    `holds_without`: whether each holds where nothing below applies, shape [requirements].
    """

    def __init__(self) -> None:
        self.holds_without: list[bool] = []
        self.by_value = defaultdict[tuple[str, str], list[int]](list)  # by label, or field, and value
        self.by_key = defaultdict[str, list[int]](list)
        self.greater = defaultdict[str, list[tuple[int, int]]](list)  # number and bound
        self.less = defaultdict[str, list[tuple[int, int]]](list)

    def add(self, holds_without: bool) -> int:
        """One more requirement; its number."""
        self.holds_without.append(holds_without)
        return len(self.holds_without) - 1

    def add_expression(self, requirement: Requirement) -> None:
        """A requirement on a label."""
        number = self.add(requirement.op in ("NotIn", "DoesNotExist"))
        match requirement.op:
            case "In" | "NotIn":
                for value in dict.fromkeys(requirement.values):
                    self.by_value[requirement.key, value].append(number)
            case "Exists" | "DoesNotExist":
                self.by_key[requirement.key].append(number)
            case "Gt" | "Lt":
                bound = parse_integer(requirement.values[0]) if len(requirement.values) == 1 else None
                if bound is not None:
                    filed = self.greater if requirement.op == "Gt" else self.less
                    filed[requirement.key].append((number, bound))

    def add_field(self, requirement: Requirement) -> None:
        """A requirement on a field; one that is not allowed holds on no node."""
        is_valid = requirement.key == NAME_FIELD and len(requirement.values) == 1
        number = self.add(is_valid and requirement.op == "NotIn")
        if is_valid and requirement.op in ("In", "NotIn"):
            # No label has an empty key, so names of nodes are filed under one.
            self.by_value["", requirement.values[0]].append(number)


class ManyTerms:
    """Terms, as `term_holds` evaluates them."""

    def __init__(self, cluster: Cluster, terms: Sequence[Term]) -> None:
        self._cluster = cluster
        self._terms = terms
        filed = _Filed()
        term_of = list[int]()
        for at, term in enumerate(terms):
            if not term.expressions and not term.fields:
                filed.add(holds_without=False)
            for requirement in term.expressions:
                filed.add_expression(requirement)
            for requirement in term.fields:
                filed.add_field(requirement)
            term_of += [at] * (len(filed.holds_without) - len(term_of))
        self._term_of = np.array(term_of, dtype=np.intp)
        self._holds_without = np.array(filed.holds_without, dtype=bool)
        self._by_value = {label: _ids(numbers) for label, numbers in filed.by_value.items()}
        self._by_key = {key: _ids(numbers) for key, numbers in filed.by_key.items()}
        self._greater = {key: np.array(pairs, dtype=np.int64) for key, pairs in filed.greater.items()}
        self._less = {key: np.array(pairs, dtype=np.int64) for key, pairs in filed.less.items()}

    def any_holds(self, rows: Rows) -> Mask:
        """Whether one of the terms holds on each of the rows, shape [len(rows)]."""
        if len(rows) <= FEW_ROWS:
            return np.array([self._holds(row).any() for row in rows.tolist()], dtype=bool)
        found = np.zeros(len(rows), dtype=bool)
        for term in self._terms:
            found |= term_holds(self._cluster, term, rows)
        return found

    def weigh(self, weights: Floats, rows: Rows) -> Floats:
        """The sum of the weights of the terms that hold on each of the rows, shape [len(rows)]."""
        if len(rows) <= FEW_ROWS:
            return np.array([weights[self._holds(row)].sum() for row in rows.tolist()], dtype=float)
        found = np.zeros(len(rows))
        for weight, term in zip(weights.tolist(), self._terms, strict=True):
            found += np.multiply(term_holds(self._cluster, term, rows), weight)
        return found

    def _holds(self, row: int) -> Mask:
        """Whether each term holds on a row, shape [terms]."""
        holds = self._holds_without.copy()
        self._decide(holds, self._by_value.get(("", self._cluster.names[row])))
        for key, value in self._cluster.labels.of_row(row):
            self._decide(holds, self._by_value.get((key, value)))
            self._decide(holds, self._by_key.get(key))
            if key in self._greater or key in self._less:
                self._compare(holds, key, parse_integer(value))
        found = np.ones(len(self._terms), dtype=bool)
        found[self._term_of[~holds]] = False
        return found

    def _decide(self, holds: Mask, numbers: _Ids | None) -> None:
        """These requirements are decided otherwise than without the label."""
        if numbers is not None:
            holds[numbers] = ~self._holds_without[numbers]

    def _compare(self, holds: Mask, key: str, value: int | None) -> None:
        if value is None:
            return
        if (greater := self._greater.get(key)) is not None:
            holds[greater[:, 0]] = value > greater[:, 1]
        if (less := self._less.get(key)) is not None:
            holds[less[:, 0]] = value < less[:, 1]


def _ids(numbers: list[int]) -> _Ids:
    return np.array(numbers, dtype=np.intp)


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
            if changed is None and len(self._values) != self._cluster.capacity:
                self._values = np.zeros(self._cluster.capacity, dtype=self._values.dtype)
                self._view = read_only(self._values)
            every = slice(len(self._cluster.names))
            rows = every if changed is None else np.array(changed, dtype=np.intp)
            self._values[rows] = self._evaluate(rows)
        return self._view


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
OF_OTHER_PODS = {
    "matched_terms": (),
    "spread": (),
    "affinity_terms": (),
    "matches_itself": False,
    "own_anti_affinity": (),
    "quotas": (),
}
NOT_READ_BY_STATIC_RULES = {
    **NOT_READ_BY_RULES,
    **OF_OTHER_PODS,
    "requests": (),
    "host_ports": (),
    "volume_use": NO_VOLUME_USE,
}


def static_part(spec: Spec) -> Spec:
    """A spec that is equal for pods that the static rules cannot tell apart."""
    return replace(spec, **NOT_READ_BY_STATIC_RULES)


def static_rules_of(spec: Spec, rules: Collection[Rule] = STATIC_RULES) -> tuple[Rule, ...]:
    """Those of the static rules that apply to pods with this spec."""
    return tuple(rule for rule in rules if rule.applies(spec))


def evaluation(
    cluster: Cluster, spec: Spec, rules: Collection[Rule] = STATIC_RULES
) -> Callable[[Rows], Mask]:
    """A function of rows: whether there is a node on each for which all these rules hold, shape [len(rows)].

    Made once for a spec: required node affinity of very many terms is prepared for evaluating few rows.
    """
    if spec.affinity is None or len(spec.affinity) <= FEW_TERMS:
        return partial(_rules_hold, static_rules_of(spec, rules), cluster, spec)
    rest, many = replace(spec, affinity=None), ManyTerms(cluster, spec.affinity)
    others = partial(_rules_hold, static_rules_of(rest, rules), cluster, rest)
    return lambda rows: others(rows) & many.any_holds(rows)


def _rules_hold(rules: Iterable[Rule], cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    """Whether there is a node on each of the rows for which all these rules hold, shape [len(rows)]."""
    holds = cluster.present[rows]
    for rule in rules:
        holds &= rule.holds(cluster, spec, rows)
    return holds
