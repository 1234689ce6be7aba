"""Terms of other pods that concern a pod: required anti-affinity, and by another set what pods prefer.

Kubernetes calls this the symmetry of (anti-)affinity. A pod must not be placed in the topology domain of an
existing pod whose required anti-affinity term matches it, and a preferred term that matches it, or one of
required pod affinity, speaks for the domain or against it. Terms are few and shared by all replicas of a
workload, so they are kept once each. A pending pod carries the terms that match it in its spec
(`Spec.matched_terms`, `Spec.matched_preferences`); pods that match none, nearly all, cost nothing.

The terms of pending pods count too: such a pod may be placed in the same scheduling cycle as one that it
keeps away. Where the pods with a term are is asked of alike_pods.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eclectus.cluster.anti_affinity.index import TermIndex
from eclectus.model.objects import Pairs, PodAffinityTerm, Spec

REQUIRED_AFFINITY_WEIGHT = 1  # kube-scheduler's hardPodAffinityWeight


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


def held_weights(spec: Spec) -> dict[PodAffinityTerm, int]:
    """By which terms a pod on a node attracts pods that match them, with what weight; below 0: keeps away.

    Preferred terms with their weight, and those of required pod affinity, as in InterPodAffinity's score.
    """
    weights = dict.fromkeys(spec.affinity_terms, REQUIRED_AFFINITY_WEIGHT)
    for each in spec.preferred_terms:
        weights[each.term] = weights.get(each.term, 0) + each.weight
    return weights
