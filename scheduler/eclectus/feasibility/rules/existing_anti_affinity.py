"""InterPodAffinity, one part of it: required anti-affinity of pods on nodes keeps matching pods away.

The pod's own required inter-pod affinity is not implemented: a pod that has any is refused (unsupported.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import AntiAffinityTerm, Spec, Task


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for key, taken in _taken_rows(cluster, spec.matched_terms).items():
        codes, column = cluster.labels.codes(key), cluster.labels.column(key)
        if not codes:  # no node is in such a domain
            continue
        is_taken = np.zeros(len(codes) + 1, dtype=bool)
        is_taken[column[list(taken)]] = True
        is_taken[ABSENT] = False  # the last place: no domain
        holds &= ~is_taken[column[rows]]
    return holds


def _taken_rows(cluster: Cluster, terms: Iterable[AntiAffinityTerm]) -> Mapping[str, Collection[int]]:
    """By topology key: the rows of pods with one of the terms. One pod may have thousands of them."""
    taken: dict[str, set[int]] = {}
    for term in terms:
        taken.setdefault(term.topology_key, set()).update(cluster.anti_affinity.pods(term))
    return taken


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    freed = Counter(term for pod in removed for term in pod.anti_affinity_terms)
    for term in spec.matched_terms:
        column, pods = cluster.labels.column(term.topology_key), cluster.anti_affinity.pods(term)
        domain = column[row]
        if domain == ABSENT:
            continue
        in_domain = sum(count for each, count in pods.items() if column[each] == domain)
        if in_domain > freed[term]:
            return False
    return True


RULE = Rule(
    plugin="InterPodAffinity",
    reason="node(s) didn't satisfy existing pods anti-affinity rules",
    applies=lambda spec: bool(spec.matched_terms),
    holds=_holds,
    after_room=True,
    without=_holds_without,
)
