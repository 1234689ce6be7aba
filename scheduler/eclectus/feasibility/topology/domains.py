"""Topology domains: the nodes that have an equal value of one label, numbered; and which pods count in them.

For topology spread the pods of those nodes count that have all topology keys of the pod's constraints and,
by a constraint's nodeAffinityPolicy and nodeTaintsPolicy, match the pod's node selector and node affinity
and have only taints that it tolerates. For kube-scheduler's default constraints the key of the constraint
itself suffices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from eclectus.cluster.alike_pods import AlikePodGroups, AlikePods
from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT, Codes
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import node_affinity, taints, topology_keys
from eclectus.feasibility.rules.rule import Rule
from eclectus.model.objects import PodAffinityTerm, Spec, SpreadConstraint, WeightedTerm
from eclectus.model.selectors import selects

SEVERAL = -1  # rows, or none


class Domains:
    """The domain of every row, by one topology key. Rules share it, and each may refresh it.

    `of_row`: the number of the row's domain, `ABSENT` where there is no node or it lacks the label, shape
    [capacity]. `count`: numbers so far, some perhaps of domains without nodes. They keep their meaning while
    `generation` stays the same.
    """

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._cluster, self.key = cluster, key
        self._cursor = -1
        self.generation = 0
        self._only_row: list[int] = []  # of each domain: the row that is alone in it, or `SEVERAL`
        self._start_over()

    @property
    def count(self) -> int:
        """Numbers of domains in use, from 0."""
        return len(self._numbers)

    def rows_of(self, numbers: list[int]) -> Rows:
        """The rows of these domains, ascending."""
        if len(numbers) == 1:
            only = self._only_rows()[numbers[0]]
            return np.flatnonzero(self.of_row == numbers[0]) if only == SEVERAL else np.array([only])
        is_wanted = np.zeros(self.count + 1, dtype=bool)  # the last place: no domain
        is_wanted[numbers] = True
        return np.flatnonzero(is_wanted[self.of_row])

    def _only_rows(self) -> list[int]:
        """Kept while nodes stay the same: most keys are nodes, and each pod that counts asks for its own."""
        if not self._only_row:
            rows = np.flatnonzero(self.of_row != ABSENT)
            domains = self.of_row[rows]
            only = np.full(self.count, SEVERAL, dtype=np.intp)
            only[domains] = rows
            only[np.bincount(domains, minlength=self.count) != 1] = SEVERAL
            self._only_row = only.tolist()
        return self._only_row

    def refresh(self) -> None:
        """Look at the nodes that have changed since the last time."""
        shape = self._cluster.shape
        if self._cursor == shape.head:
            return
        changed = shape.since(self._cursor)
        # Numbers are never given back one by one, so values that come and go would need ever more.
        if changed is None or self.count > 2 * self._cluster.capacity:
            self._start_over()
            return
        self._cursor, self._only_row = shape.head, []
        for row in changed:
            value = self._cluster.labels.value(self.key, row)
            known = self._numbers
            self.of_row[row] = ABSENT if value is None else known.setdefault(value, len(known))

    def _start_over(self) -> None:
        labels = self._cluster.labels
        self._cursor, self.generation = self._cluster.shape.head, self.generation + 1
        self.of_row: Codes = labels.column(self.key).copy()
        self._numbers, self._only_row = dict(labels.codes(self.key)), []


def topology_part(spec: Spec) -> Spec:
    """A spec that is equal for pods that the rules about other pods cannot tell apart."""
    part = Spec(
        matched_terms=spec.matched_terms,
        spread=spec.spread,
        affinity_terms=spec.affinity_terms,
        matches_itself=spec.matches_itself,
        own_anti_affinity=spec.own_anti_affinity,
    )
    if any(each.honors_affinity for each in spec.spread):
        part = replace(part, node_selector=spec.node_selector, affinity=spec.affinity)
    if any(each.honors_taints for each in spec.spread):
        part = replace(part, tolerations=spec.tolerations)
    return part


def preferences_part(spec: Spec) -> Spec:
    """A spec that is equal for pods to which pods elsewhere make the same nodes preferable.

    Its `spread` are the constraints with ScheduleAnyway, for `eligible_nodes`.
    """
    read = Spec(
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
        spread=spec.preferred_spread,
    )
    return replace(
        topology_part(read),
        preferred_terms=spec.preferred_terms,
        matched_preferences=spec.matched_preferences,
    )


def eligible_nodes(spec: Spec, constraint: SpreadConstraint) -> tuple[Spec, tuple[Rule, ...]]:
    """The rules that decide whether the pods of a node count, and what these rules read of the spec."""
    part, rules = Spec(), list[Rule]()
    if constraint.needs_all_keys:
        keys = tuple(dict.fromkeys(each.topology_key for each in spec.spread))
        part, rules = Spec(topology_keys=keys), [topology_keys.RULE]
    if constraint.honors_affinity:
        part = replace(part, node_selector=spec.node_selector, affinity=spec.affinity)
        rules.append(node_affinity.RULE)
    if constraint.honors_taints:
        part = replace(part, tolerations=spec.tolerations)
        rules.append(taints.RULE)
    return part, tuple(rules)


class SpreadPods:
    """The pods of a spread constraint: those that are there and stay. An empty selector counts none."""

    def __init__(self, pods: AlikePodGroups, constraint: SpreadConstraint) -> None:
        self._pods, self._constraint = pods, constraint

    def weight(self, group: AlikePods) -> int:
        """1 for a pod that counts."""
        constraint = self._constraint
        return int(
            bool(constraint.selector)
            and not group.is_terminating
            and not group.is_nominated
            and group.namespace == constraint.namespace
            and selects(constraint.selector or (), group.labels)
        )

    def groups(self) -> Iterable[AlikePods]:
        """The groups that the selector selects."""
        constraint = self._constraint
        return (
            self._pods.matching((constraint.namespace,), constraint.selector) if constraint.selector else ()
        )


class PodsOfAllTerms:
    """The pods of pod affinity: those that all of its terms match, terminating ones included.

    A pod that is only nominated does not count: it may never come.
    """

    def __init__(self, pods: AlikePodGroups, terms: Sequence[PodAffinityTerm]) -> None:
        self._pods, self._terms = pods, terms

    def weight(self, group: AlikePods) -> int:
        """1 for a pod that counts."""
        return int(not group.is_nominated and all(term_matches(term, group) for term in self._terms))

    def groups(self) -> Iterable[AlikePods]:
        """The groups that the first term matches."""
        return self._pods.matching(self._terms[0].namespaces, self._terms[0].selector)


class PodsOfAnyTerm:
    """The pods of anti-affinity: those that one of its terms matches, nominated ones included."""

    def __init__(self, pods: AlikePodGroups, terms: Sequence[PodAffinityTerm]) -> None:
        self._pods, self._terms = pods, terms

    def weight(self, group: AlikePods) -> int:
        """1 for a pod that counts."""
        return int(any(term_matches(term, group) for term in self._terms))

    def groups(self) -> Iterable[AlikePods]:
        """The groups that one of the terms matches."""
        each = (self._pods.matching(term.namespaces, term.selector) for term in self._terms)
        return _once(group for groups in each for group in groups)


class Holders:
    """The pods that have one of these anti-affinity terms themselves, nominated ones included."""

    def __init__(self, pods: AlikePodGroups, terms: Sequence[PodAffinityTerm]) -> None:
        self._pods, self._terms, self._set = pods, terms, frozenset(terms)

    def weight(self, group: AlikePods) -> int:
        """1 for a pod that counts."""
        return int(not self._set.isdisjoint(group.terms))

    def groups(self) -> Iterable[AlikePods]:
        """The groups with one of the terms."""
        return _once(group for term in self._terms for group in self._pods.with_term(term))


class AttractingPods:
    """The pods that make a topology domain better for a pod or, with a weight below 0, worse; bound ones.

    `own`: preferred terms of the pod. `matched`: terms of others that match it.
    """

    def __init__(
        self, pods: AlikePodGroups, own: Sequence[WeightedTerm], matched: Collection[PodAffinityTerm]
    ) -> None:
        self._pods, self._own, self._matched = pods, own, frozenset(matched)

    def weight(self, group: AlikePods) -> int:
        """The sum of the weights of the terms by which a pod counts."""
        if group.is_nominated:
            return 0
        theirs = sum(weight for term, weight in group.weights.items() if term in self._matched)
        return theirs + sum(each.weight for each in self._own if term_matches(each.term, group))

    def groups(self) -> Iterable[AlikePods]:
        """The groups that one of the pod's terms matches, and those with a term that matches the pod."""
        own = (self._pods.matching(each.term.namespaces, each.term.selector) for each in self._own)
        theirs = (self._pods.with_preference(term) for term in self._matched)
        return _once(group for groups in (*own, *theirs) for group in groups)


def term_matches(term: PodAffinityTerm, group: AlikePods) -> bool:
    """Whether a term matches the pods of a group."""
    return term.covers(group.namespace) and selects(term.selector, group.labels)


def _once(groups: Iterable[AlikePods]) -> Iterator[AlikePods]:
    return iter(dict.fromkeys(groups))
