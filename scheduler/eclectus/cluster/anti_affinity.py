"""Required anti-affinity of pods already on nodes: which pods it keeps away, and from which rows.

Kubernetes calls this the symmetry of anti-affinity: a pod must not be placed in the topology domain of an
existing pod whose anti-affinity term matches it. Terms are few and shared by all replicas of a workload, so
they are kept once each. A pending pod carries the terms that match it in its spec (`Spec.matched_terms`);
pods that match none, nearly all, cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eclectus.cluster.selectors import selects
from eclectus.model.objects import AntiAffinityTerm, Pairs


class AntiAffinityTerms:
    """Every distinct anti-affinity term of the pods on nodes, and the rows of these pods."""

    def __init__(self) -> None:
        self._rows: dict[AntiAffinityTerm, dict[int, int]] = {}  # term -> row -> pods
        # namespace (None: all namespaces) -> the terms that apply to its pods; a dict as an ordered set
        self._terms_by_namespace: dict[str | None, dict[AntiAffinityTerm, None]] = {}
        # Written here only.
        self.generation = 0  # grows when a term appears: pending pods must be matched again
        self.version = 0  # grows when a term appears or vanishes

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[AntiAffinityTerm]:
        return iter(self._rows)

    def pods(self, term: AntiAffinityTerm) -> Mapping[int, int]:
        """Row -> how many pods there have this term."""
        return self._rows.get(term, {})

    def hold(self, term: AntiAffinityTerm, row: int) -> None:
        """A pod with this term has come to the row."""
        if term not in self._rows:
            self._rows[term] = {}
            self.generation += 1
            self.version += 1
            for namespace in term.namespaces or (None,):
                self._terms_by_namespace.setdefault(namespace, {})[term] = None
        pods = self._rows[term]
        pods[row] = pods.get(row, 0) + 1

    def release(self, term: AntiAffinityTerm, row: int) -> None:
        """A pod with this term has left the row."""
        pods = self._rows[term]
        pods[row] -= 1
        if not pods[row]:
            del pods[row]
        if not pods:
            del self._rows[term]
            self.version += 1
            self._forget(term)

    def matching(self, namespace: str, labels: Pairs) -> tuple[AntiAffinityTerm, ...]:
        """The terms that keep away a pod with this namespace and these labels, in a fixed order."""
        if not self._terms_by_namespace:
            return ()
        terms = {
            **self._terms_by_namespace.get(namespace, {}),
            **self._terms_by_namespace.get(None, {}),
        }
        pod_labels = dict(labels)
        return in_order(term for term in terms if selects(term.selector, pod_labels))

    def _forget(self, term: AntiAffinityTerm) -> None:
        for namespace in term.namespaces or (None,):
            del self._terms_by_namespace[namespace][term]
            if not self._terms_by_namespace[namespace]:
                del self._terms_by_namespace[namespace]


def in_order(terms: Iterable[AntiAffinityTerm]) -> tuple[AntiAffinityTerm, ...]:
    """The terms in the order in which a spec has them."""
    return tuple(sorted(terms, key=repr))
