"""Which pods the rules about other pods count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from eclectus.cluster.alike_pods import AlikePodGroups, AlikePods
from eclectus.model.objects import PodAffinityTerm, SpreadConstraint, WeightedTerm
from eclectus.model.selectors import selects


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
