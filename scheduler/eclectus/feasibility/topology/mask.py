"""Where the rules about other pods allow a pod, all together: an array that follows pods and nodes.

Pods with the same rules share it, whatever they request. A pod that comes or leaves costs O(1), and where it
shuts or opens a topology domain, a vector operation over the rows of this domain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from eclectus.cluster.changelog import EntryLog, Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only, scalars
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.domain_counts import DomainCounts
from eclectus.feasibility.topology.domain_rules import (
    EXISTING,
    OWN,
    Affinity,
    AntiAffinity,
    DomainRule,
    Spread,
)
from eclectus.feasibility.topology.domains import Domains, Holders, PodsOfAllTerms, PodsOfAnyTerm, SpreadPods
from eclectus.model.objects import PodAffinityTerm, Spec, SpreadConstraint, Task

MAX_FLIPS = 256  # entries of rows; who is further behind starts over

DomainsOf = Callable[[str], Domains]
EligibleFor = Callable[[SpreadConstraint], ShapeValues[np.bool_]]


class TopologyMask:
    """The rules about other pods for one kind of pod; up to date after `refresh`.

    `allowed`: rows that every rule allows, shape [capacity], read-only; replaced with the cluster's arrays.
    `flips`: arrays of rows, each row once in an array, that `allowed` has perhaps changed on.
    `version`: grows with every pod that counts and every changed node.
    """

    def __init__(self, cluster: Cluster, spec: Spec, domains: DomainsOf, eligible: EligibleFor) -> None:
        """`domains`: by topology key. `eligible`: the nodes whose pods count for a constraint."""
        self._cluster, self._spec, self._domains, self._eligible = cluster, spec, domains, eligible
        self.flips = EntryLog[Rows](MAX_FLIPS)
        self.version = 0
        self._pods_cursor = self._shape_cursor = -1
        self._start_over()

    @property
    def rules(self) -> Sequence[DomainRule]:
        """In kube-scheduler's order; keys that no node carries are left out where they exclude nothing."""
        return self._rules

    def allows(self, row: int) -> bool:
        """Whether all rules allow this row now; needs no `refresh`."""
        self.refresh()
        return bool(self._allowed_at[row])

    def allows_without(self, row: int, removed: Collection[Task]) -> bool:
        """Whether all rules would allow this row without these of its pods."""
        return not self.refusal_without(row, removed)

    def refusal_without(self, row: int, removed: Collection[Task]) -> str:
        """kube-scheduler's words of the first rule that would refuse it then; empty if none would."""
        self.refresh()
        return next((rule.reason_at(row) for rule in self._rules if not rule.holds_without(row, removed)), "")

    def refusals(self, rows: Rows) -> Iterator[tuple[str, Mask]]:
        """For each reason, in kube-scheduler's order: which of the rows it refuses, shape [len(rows)]."""
        self.refresh()
        for rule in self._rules:
            refused = rule.shut[rows]
            if isinstance(rule, Spread):
                is_absent = rule.counts.domains.of_row[rows] == ABSENT
                yield rule.absent_reason, is_absent
                refused = refused & ~is_absent
            yield rule.reason, refused

    # -- following the cluster -----------------------------------------------------------------

    def refresh(self) -> None:
        """Follow the pods and nodes that have changed since the last time."""
        pods, shape = self._cluster.pods.changes, self._cluster.shape
        if self._pods_cursor == pods.head and self._shape_cursor == shape.head:
            return
        if self._shape_cursor != shape.head:
            has_grown = len(self._allowed) != self._cluster.capacity
            if has_grown or self._matched_keys() != self._keys:
                self._start_over()
                return
        self._pods_cursor, self._shape_cursor = pods.head, shape.head
        changes = [rule.counts.refresh() for rule in self._rules]
        if any(change is None or change.domains or change.rows for change in changes):
            self.version += 1
            self._follow([rule.refresh(each) for rule, each in zip(self._rules, changes, strict=True)])

    def _follow(self, changed: Sequence[Sequence[Rows] | None]) -> None:
        if any(each is None for each in changed):
            self._combine()
            return
        for rows in (rows for each in changed for rows in each or ()):
            shut = self._rules[0].shut[rows]
            for rule in self._rules[1:]:
                shut = shut | rule.shut[rows]
            self._allowed[rows] = ~shut
            self.flips.record(rows)

    def _start_over(self) -> None:
        self._pods_cursor, self._shape_cursor = self._cluster.pods.changes.head, self._cluster.shape.head
        self._keys = self._matched_keys()
        self._rules = tuple(self._make_rules())
        self.version += 1
        self._combine()

    def _combine(self) -> None:
        shut: Mask = np.zeros(self._cluster.capacity, dtype=bool)
        for rule in self._rules:
            shut |= rule.shut
        self._allowed: Mask = ~shut
        self.allowed: Mask = read_only(self._allowed)
        self._allowed_at = scalars(self._allowed)
        self.flips.record_all()

    # -- rules ---------------------------------------------------------------------------------

    def _matched_keys(self) -> tuple[str, ...]:
        """The topology keys of matched terms that nodes carry: the terms may have thousands of others."""
        carries = self._cluster.labels.carries
        keys = dict.fromkeys(term.topology_key for term in self._spec.matched_terms)
        return tuple(key for key in keys if carries(key))

    def _make_rules(self) -> Iterator[DomainRule]:
        cluster, spec, pods = self._cluster, self._spec, self._cluster.pods
        for constraint in spec.spread:
            counts = self._counts(constraint.topology_key, SpreadPods(pods, constraint), constraint)
            yield Spread(cluster, counts, constraint)
        keys = dict.fromkeys(term.topology_key for term in spec.affinity_terms)
        of_all_keys = [self._counts(key, PodsOfAllTerms(pods, spec.affinity_terms)) for key in keys]
        for counts in of_all_keys:
            yield Affinity(cluster, counts, of_all_keys, spec.matches_itself)
        for key, own in _by_key(spec.own_anti_affinity).items():
            yield AntiAffinity(cluster, self._counts(key, PodsOfAnyTerm(pods, own)), OWN)
        matched = _by_key(spec.matched_terms)
        for key in self._keys:
            yield AntiAffinity(cluster, self._counts(key, Holders(pods, matched[key])), EXISTING)

    def _counts(
        self,
        key: str,
        pods: SpreadPods | PodsOfAllTerms | PodsOfAnyTerm | Holders,
        constraint: SpreadConstraint | None = None,
    ) -> DomainCounts:
        eligible = None if constraint is None else self._eligible(constraint)
        return DomainCounts(self._cluster, self._domains(key), pods, eligible)


def _by_key(terms: Sequence[PodAffinityTerm]) -> dict[str, list[PodAffinityTerm]]:
    found: dict[str, list[PodAffinityTerm]] = {}
    for term in terms:
        found.setdefault(term.topology_key, []).append(term)
    return found
