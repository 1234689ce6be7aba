"""Required anti-affinity of pods already on nodes: which pods it keeps away, and from which rows.

Kubernetes calls this the symmetry of anti-affinity: a pod must not be placed in the topology domain of an
existing pod whose anti-affinity term matches it. Terms are few and shared by all replicas of a workload, so
they are kept once each. A pending pod carries the terms that match it in its spec (`Spec.matched_terms`);
pods that match none, nearly all, cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.anti_affinity.index import TermIndex
from eclectus.cluster.changelog import Rows
from eclectus.model.objects import AntiAffinityTerm, Pairs, Task


class MatchedTerms:
    """The pods on nodes that keep one kind of pod away.

    `by_key`: by topology key the rows, and for each the number of pairs of a pod there and one of its terms.
    """

    def __init__(
        self, terms: tuple[AntiAffinityTerm, ...], rows: Mapping[AntiAffinityTerm, Mapping[int, int]]
    ):
        self.terms, self._set = terms, frozenset(terms)
        pairs: dict[str, Counter[int]] = {}
        for term in terms:
            pairs.setdefault(term.topology_key, Counter()).update(rows.get(term, {}))
        self.by_key: dict[str, tuple[Rows, NDArray[np.int64]]] = {
            key: (np.fromiter(found.keys(), np.intp), np.fromiter(found.values(), np.int64))
            for key, found in pairs.items()
        }

    def pairs_of(self, pods: Iterable[Task]) -> Counter[str]:
        """The pairs of these pods, by topology key."""
        return Counter(
            term.topology_key for pod in pods for term in pod.anti_affinity_terms if term in self._set
        )


class AntiAffinityTerms:
    """Every distinct anti-affinity term of the pods on nodes, and the rows of these pods."""

    def __init__(self) -> None:
        self._rows: dict[AntiAffinityTerm, dict[int, int]] = {}  # term -> row -> pods
        self._index = TermIndex()
        self._order: dict[AntiAffinityTerm, str] = {}  # by which terms are sorted: one pod may have thousands
        self._changed: dict[AntiAffinityTerm, None] = {}  # since `take_changed`, as an ordered set
        self._changes = 0  # pods with a term that have come or left
        self._last_matched: tuple[int, MatchedTerms | None] = (0, None)  # `_changes`, and what was found then
        # Written here only.
        self.generation = 0  # grows when a term appears: pending pods must be matched again
        self.version = 0  # grows when a term appears or vanishes

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, term: AntiAffinityTerm) -> bool:
        return term in self._rows

    def hold(self, term: AntiAffinityTerm, row: int) -> None:
        """A pod with this term has come to the row."""
        if term not in self._rows:
            self._rows[term], self._order[term] = {}, repr(term)
            self._index.add(term)
            self._changed[term] = None
            self.generation += 1
            self.version += 1
        pods = self._rows[term]
        pods[row] = pods.get(row, 0) + 1
        self._changes += 1

    def release(self, term: AntiAffinityTerm, row: int) -> None:
        """A pod with this term has left the row."""
        pods = self._rows[term]
        pods[row] -= 1
        self._changes += 1
        if not pods[row]:
            del pods[row]
        if not pods:
            del self._rows[term], self._order[term]
            self._index.discard(term)
            self._changed[term] = None
            self.version += 1

    def matched(self, terms: tuple[AntiAffinityTerm, ...]) -> MatchedTerms:
        """Where the pods with these terms are; the last answer is kept until such a pod comes or leaves."""
        changes, found = self._last_matched
        if found is None or changes != self._changes or found.terms is not terms:
            found = MatchedTerms(terms, self._rows)
            self._last_matched = self._changes, found
        return found

    def take_changed(self) -> Collection[AntiAffinityTerm]:
        """The terms that have appeared or vanished since the last call; some of them perhaps both."""
        changed, self._changed = self._changed, {}
        return changed

    def matching(self, namespace: str, labels: Pairs) -> tuple[AntiAffinityTerm, ...]:
        """The terms that keep away a pod with this namespace and these labels, in a fixed order."""
        return self.in_order(self._index.matching(namespace, labels)) if self._rows else ()

    def in_order(self, terms: Iterable[AntiAffinityTerm]) -> tuple[AntiAffinityTerm, ...]:
        """Terms of pods on nodes, in the order in which a spec has them."""
        return tuple(sorted(terms, key=self._order.__getitem__))
