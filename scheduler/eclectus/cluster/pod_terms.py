"""Terms of other pods that concern a pod: required anti-affinity, and by another set what pods prefer.

Kubernetes calls this the symmetry of (anti-)affinity. A pod must not be placed in the topology domain of an
existing pod whose required anti-affinity term matches it, and a preferred term that matches it, or one of
required pod affinity, speaks for the domain or against it. Terms are few and shared by all replicas of a
workload, so they are kept once each. A pending pod carries the terms that match it in its spec
(`Spec.matched_terms`, `Spec.matched_preferences`); pods that match none, nearly all, cost nothing.

The terms of pending pods count too: such a pod may be placed in the same scheduling cycle as one that it
keeps away. Where the pods with a term are is asked of alike_pods.py.

A pod with ten thousand terms must not cost every pod that arrives ten thousand comparisons. So each term is
filed under the namespaces and one label of the pods that it can match, or under the key alone for `Exists`,
and an arriving pod is compared only with the terms filed under its own labels. Selectors that ask for no
label (`NotIn`, `DoesNotExist`, none at all) match nearly every pod, and are compared with each. Equal
selectors are compared once. A term that names many namespaces is filed once, for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from eclectus.cluster.memo import unfile
from eclectus.model.objects import Pairs, PodAffinityTerm, Requirement, Selector, selects

FEW_NAMESPACES = 16  # a term that names more is filed for all

Place = tuple[str | None, str, str | None]
"""Namespace (None: every one), key of a label (empty: any labels), value (None: any)."""


class TermIndex:
    """A set of terms; `matching` is what it is for."""

    def __init__(self) -> None:
        # place -> selector -> the terms with it; dicts as ordered sets
        self._filed: dict[Place, dict[Selector, dict[PodAffinityTerm, None]]] = {}
        self._places: dict[PodAffinityTerm, tuple[Place, ...]] = {}

    def add(self, term: PodAffinityTerm) -> None:
        """A term that is not in the set."""
        self._places[term] = places = self._narrowest(term)
        for place in places:
            self._filed.setdefault(place, {}).setdefault(term.selector, {})[term] = None

    def discard(self, term: PodAffinityTerm) -> None:
        """Remove a term that is in the set."""
        for place in self._places.pop(term):
            selectors = self._filed[place]
            unfile(selectors, term.selector, term)
            if not selectors:
                del self._filed[place]

    def matching(self, namespace: str, labels: Pairs) -> Iterator[PodAffinityTerm]:
        """The terms that match a pod with this namespace and these labels, each once."""
        pod_labels = dict(labels)
        known: dict[Selector, bool] = {}  # a term filed for a namespace and one for all may ask the same
        for place in _places_of(namespace, labels):
            for selector, terms in self._filed.get(place, {}).items():
                if selector not in known:
                    known[selector] = selects(selector, pod_labels)
                if known[selector]:
                    yield from (each for each in terms if place[0] is not None or each.covers(namespace))

    def _narrowest(self, term: PodAffinityTerm) -> tuple[Place, ...]:
        """Where to file a term: where the fewest selectors are, among its requirements that allow it."""
        choices = [places for each in term.selector if (places := _places_for(term, each)) is not None]
        if not choices:
            return tuple((namespace, "", None) for namespace in _namespaces(term))
        return min(choices, key=lambda places: sum(len(self._filed.get(place, {})) for place in places))


def _places_of(namespace: str, labels: Pairs) -> Iterator[Place]:
    for each in (namespace, None):
        yield each, "", None
        for key, value in labels:
            yield each, key, value
            yield each, key, None


def _places_for(term: PodAffinityTerm, requirement: Requirement) -> tuple[Place, ...] | None:
    """Where a pod must look that meets the requirement; None if a pod meets it without the label."""
    if requirement.op not in ("In", "Exists"):
        return None
    values: tuple[str | None, ...] = (None,)
    if requirement.op == "In":
        values = tuple(dict.fromkeys(requirement.values))
    return tuple((each, requirement.key, value) for each in _namespaces(term) for value in values)


def _namespaces(term: PodAffinityTerm) -> tuple[str | None, ...]:
    if term.namespaces is None or len(term.namespaces) > FEW_NAMESPACES:
        return (None,)
    return tuple(dict.fromkeys(term.namespaces))


class HeldTerms:
    """Every distinct term of one kind that a pod on a node or a pending pod has."""

    def __init__(self) -> None:
        self._holders: dict[PodAffinityTerm, int] = {}  # groups of pods on nodes, and pending pods
        self._index = TermIndex()
        self._order: dict[PodAffinityTerm, str] = {}  # by which terms are sorted: one pod may have thousands
        self._changed: dict[PodAffinityTerm, None] = {}  # since `take_changed`, as an ordered set
        # Written here only.
        self.generation = 0  # grows when a term appears: pending pods must be matched again
        self.version = 0  # grows when a term appears or vanishes

    def __len__(self) -> int:
        return len(self._holders)

    def __contains__(self, term: PodAffinityTerm) -> bool:
        return term in self._holders

    def hold(self, term: PodAffinityTerm) -> None:
        """There is one more with this term."""
        if term not in self._holders:
            self._holders[term], self._order[term] = 0, repr(term)
            self._index.add(term)
            self._changed[term] = None
            self.generation += 1
            self.version += 1
        self._holders[term] += 1

    def release(self, term: PodAffinityTerm) -> None:
        """There is one less with this term."""
        self._holders[term] -= 1
        if not self._holders[term]:
            del self._holders[term], self._order[term]
            self._index.discard(term)
            self._changed[term] = None
            self.version += 1

    def take_changed(self) -> Collection[PodAffinityTerm]:
        """The terms that have appeared or vanished since the last call; some of them perhaps both."""
        changed, self._changed = self._changed, {}
        return changed

    def matching(self, namespace: str, labels: Pairs) -> tuple[PodAffinityTerm, ...]:
        """The terms that match a pod with this namespace and these labels, in a fixed order."""
        return self.in_order(self._index.matching(namespace, labels)) if self._holders else ()

    def in_order(self, terms: Iterable[PodAffinityTerm]) -> tuple[PodAffinityTerm, ...]:
        """Terms that there are, in the order in which a spec has them."""
        return tuple(sorted(terms, key=self._order.__getitem__))
