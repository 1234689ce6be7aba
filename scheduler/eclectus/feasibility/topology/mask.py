"""Where the rules about other pods allow a pod, all together: an array that follows pods and nodes.

Pods with the same rules share it, whatever they request. A pod that comes or leaves costs O(1), and where it
shuts or opens a topology domain, a vector operation over the rows of this domain.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eclectus.cluster.changelog import EntryLog, Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only, scalars
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.domains import (
    Change,
    CountedPods,
    DomainCounts,
    Domains,
    holders,
    pods_of_all_terms,
    pods_of_any_term,
    pods_of_quota,
    spread_pods,
)
from eclectus.model.objects import NodeQuota, PodAffinityTerm, Spec, SpreadConstraint, Task

# Rules that allow a node or not by how many pods its topology domain has.
#
# Each allows the domains whose count is between two bounds, which follow from the counts of all domains. So a
# pod that comes or leaves costs O(1), and a domain that is shut or opened one vector operation over its rows.

Bounds = tuple[int, int]
"""The least and the greatest count that is allowed."""

BoundsOf = Callable[[int | None, int], Bounds]
"""`(row_count, freed)`: what is allowed by the counts of all domains.

Where some pods of one row are thought away, `freed` is their number, and `row_count` what is left in the
domain of the row (None if the domain does not exist, or nothing is thought away).
"""

NO_LEAST, NO_MOST = 0, 2**62


class RuleKind(NamedTuple):
    """kube-scheduler's plugin and its words; and whether nodes without the label are refused too."""

    plugin: str
    reason: str
    shuts_absent: bool
    absent_reason: str = ""  # for nodes without the label, where it is another one


SPREAD = RuleKind(
    "PodTopologySpread",
    "node(s) didn't match pod topology spread constraints",
    shuts_absent=True,
    absent_reason="node(s) didn't match pod topology spread constraints (missing required label)",
)
AFFINITY = RuleKind("InterPodAffinity", "node(s) didn't match pod affinity rules", shuts_absent=True)
OWN_ANTI = RuleKind("InterPodAffinity", "node(s) didn't match pod anti-affinity rules", shuts_absent=False)
EXISTING_ANTI = RuleKind(
    "InterPodAffinity", "node(s) didn't satisfy existing pods anti-affinity rules", shuts_absent=False
)


class DomainRule:
    """One rule, which follows refreshed counts. `shut`: rows that it refuses, shape [capacity]."""

    def __init__(self, cluster: Cluster, counts: DomainCounts, kind: RuleKind, bounds: BoundsOf) -> None:
        self._cluster = cluster
        self.counts = counts
        self.kind = kind
        self._bounds_of = bounds
        self._bounds = bounds(None, 0)
        self._start_over()

    def refresh(self, change: Change | None) -> Sequence[Rows] | None:
        """Follow a change of the counts; the rows that may be shut or open now, None if all may be."""
        if change is None:
            self._start_over()
            return None
        self._widen()
        bounds = self._bounds_of(None, 0)
        if bounds != self._bounds:
            self._bounds = bounds
            now = self._are_shut()
            flipped: list[int] = np.flatnonzero(now != self._domain_shut).tolist()
        else:
            (least, most), counts, shut = bounds, self.counts.counts, self._domain_shut
            flipped = [each for each in change.domains if (least <= counts.item(each) <= most) == shut[each]]
        changed: list[Rows] = []
        if flipped:
            for domain in flipped:
                self._domain_shut[domain] = not self._domain_shut[domain]
            changed.append(self.counts.domains.rows_of(flipped))
        if change.rows:
            changed.append(np.array(change.rows, dtype=np.intp))
        for rows in changed:
            self.shut[rows] = self._shut_or_absent[self.counts.domains.of_row[rows]]
        return changed

    def counts_at(self, row: int, pod: Task) -> int:
        """How much a pod on this row counts there."""
        if self.counts.domain_at[row] == ABSENT:
            return 0
        return self.counts.weight(self._cluster.pods.of_pod(pod))

    def holds_without(self, row: int, freed: int) -> bool:
        """Whether the rule would allow this row without some of its pods, which count as much there."""
        domain = int(self.counts.domains.of_row[row])
        if domain == ABSENT:
            return not self.kind.shuts_absent
        count, row_count = int(self.counts.counts[domain]) - freed, None
        if self.counts.domain_at[row] != ABSENT:
            row_count = count
        least, most = self._bounds_of(row_count, freed)
        return least <= count <= most

    def reason_at(self, row: int) -> str:
        """kube-scheduler's words where the rule refuses this row."""
        is_absent = self.counts.domains.of_row[row] == ABSENT
        return self.kind.absent_reason if self.kind.absent_reason and is_absent else self.kind.reason

    def _are_shut(self) -> Mask:
        least, most = self._bounds
        counts = self.counts.counts[: len(self._domain_shut)]
        return (counts < least) | (counts > most)

    def _start_over(self) -> None:
        self._set_domains(self.counts.domains.count)
        self._bounds = self._bounds_of(None, 0)
        self._domain_shut[:] = self._are_shut()
        self.shut: Mask = self._shut_or_absent[self.counts.domains.of_row]

    def _widen(self) -> None:
        """New domains have come, of which none has pods."""
        known, count = self._domain_shut, self.counts.domains.count
        if len(known) < count:
            self._set_domains(count)
            self._domain_shut[: len(known)] = known
            least, most = self._bounds
            self._domain_shut[len(known) :] = not least <= 0 <= most

    def _set_domains(self, count: int) -> None:
        # The last place is for rows in no domain, whose number is -1.
        self._shut_or_absent: Mask = np.zeros(count + 1, dtype=bool)
        self._shut_or_absent[ABSENT] = self.kind.shuts_absent
        self._domain_shut: Mask = self._shut_or_absent[:count]


def spread_bounds(counts: DomainCounts, constraint: SpreadConstraint) -> BoundsOf:
    """Topology spread: the pods of no domain exceed the least of all domains by more than `max_skew`."""

    def bounds(row_count: int | None, _freed: int) -> Bounds:
        least = counts.least if row_count is None else min(counts.least, row_count)
        if counts.existing < constraint.min_domains:
            least = 0
        return NO_LEAST, least + constraint.max_skew - constraint.counts_itself

    return bounds


def affinity_bounds(all_keys: Sequence[DomainCounts], matches_itself: bool) -> BoundsOf:
    """Required pod affinity, one topology key: the domain has a pod that all terms match.

    The first pod of those that would match themselves is allowed everywhere; otherwise none could ever begin.
    """

    def bounds(_row_count: int | None, freed: int) -> Bounds:
        total = sum(counts.total for counts in all_keys) - freed * len(all_keys)
        return 0 if matches_itself and not total else 1, NO_MOST

    return bounds


def anti_affinity_bounds(_row_count: int | None, _freed: int) -> Bounds:
    """Required anti-affinity, of the pod itself or of pods that are there, one topology key: none counts."""
    return NO_LEAST, 0


def quota_bounds(quota: NodeQuota, most: int) -> BoundsOf:
    """What a pool holds on nodes of one kind, with what the pod adds, is at most so much."""

    def bounds(_row_count: int | None, _freed: int) -> Bounds:
        return NO_LEAST, most - quota.amount

    return bounds


def quota_kind(quota: NodeQuota) -> RuleKind:
    """In words of our own: kube-scheduler knows no such rule."""
    reason = (
        f"node(s) with {quota.key}={quota.value} where pool {quota.pool} is at its limit of {quota.resource}"
    )
    return RuleKind("PoolQuota", reason, shuts_absent=False)


MAX_FLIPS = 256  # entries of rows; a reader that is further behind starts over

DomainsOf = Callable[[str, str | None], Domains]
"""By topology key; and by a value, where its nodes alone are one."""
EligibleFor = Callable[[SpreadConstraint], ShapeValues[np.bool_]]


class TopologyMask:
    """The rules about other pods for one kind of pod; up to date after `refresh`.

    `allowed`: rows that every rule allows, shape [capacity], read-only; replaced with the cluster's arrays.
    `flips`: arrays of rows, each row once in an array, that `allowed` has perhaps changed on.
    `version`: grows with every pod that counts and every changed node.
    """

    def __init__(self, cluster: Cluster, spec: Spec, domains: DomainsOf, eligible: EligibleFor) -> None:
        """`domains`: by topology key. `eligible`: the nodes whose pods count for a constraint."""
        self._cluster = cluster
        self._spec = spec
        self._domains = domains
        self._eligible = eligible
        self.flips = EntryLog[Rows](MAX_FLIPS)
        self.version = 0
        self._pods_cursor = self._shape_cursor = -1
        self._start_over()

    def allows(self, row: int) -> bool:
        """Whether all rules allow this row now; needs no `refresh`."""
        self.refresh()
        return bool(self._allowed_at[row])

    def refusal_without(self, row: int, removed: Iterable[Task]) -> str:
        """kube-scheduler's words of the first rule to refuse it without these of its pods; empty if none."""
        return self.without(row, removed).refusal

    def without(self, row: int, removed: Iterable[Task]) -> "MaskWithout":
        """What the rules say of the row without these of its pods."""
        self.refresh()
        return MaskWithout(self._rules, row, removed)

    def refusals(self, rows: Rows) -> Iterator[tuple[str, str, Mask]]:
        """Plugin, reason, and which of the rows it refuses, shape [len(rows)]; in kube-scheduler's order."""
        self.refresh()
        for rule in self._rules:
            refused = rule.shut[rows]
            if rule.kind.absent_reason:
                is_absent = rule.counts.domains.of_row[rows] == ABSENT
                yield rule.kind.plugin, rule.kind.absent_reason, is_absent
                refused = refused & ~is_absent
            yield rule.kind.plugin, rule.kind.reason, refused

    @property
    def has_quotas(self) -> bool:
        """Whether limits of pools are among the rules."""
        return bool(self._quotas)

    def within_quotas(self, rows: Rows) -> Mask:
        """Which of the rows no limit of a pool refuses, shape [len(rows)]."""
        self.refresh()
        left = np.ones(len(rows), dtype=bool)
        for rule, _ in self._quotas:
            left &= ~rule.shut[rows]
        return left

    def quotas_at_limit(self, rows: Rows) -> list[tuple[NodeQuota, int]]:
        """The quotas that refuse some of the rows, and what is held of each; none unless they refuse all."""
        if self.within_quotas(rows).any():
            return []
        return [(quota, rule.counts.total) for rule, quota in self._quotas if rule.shut[rows].any()]

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
        stated = ((each, each.most) for each in self._spec.quotas if each.most is not None)
        self._quotas = [(self._quota_rule(each, most), each) for each, most in stated]
        self._rules = (*self._make_rules(), *(rule for rule, _ in self._quotas))
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

    def _matched_keys(self) -> tuple[str, ...]:
        """The topology keys of matched terms that nodes carry: the terms may have thousands of others."""
        carries = self._cluster.labels.carries
        keys = dict.fromkeys(term.topology_key for term in self._spec.matched_terms)
        return tuple(key for key in keys if carries(key))

    def _make_rules(self) -> Iterator[DomainRule]:
        cluster, spec, pods = self._cluster, self._spec, self._cluster.pods
        for constraint in spec.spread:
            counts = self._counts(constraint.topology_key, spread_pods(pods, constraint), constraint)
            yield DomainRule(cluster, counts, SPREAD, spread_bounds(counts, constraint))
        keys = dict.fromkeys(term.topology_key for term in spec.affinity_terms)
        all_keys = [self._counts(key, pods_of_all_terms(pods, spec.affinity_terms)) for key in keys]
        bounds = affinity_bounds(all_keys, spec.matches_itself)
        yield from (DomainRule(cluster, counts, AFFINITY, bounds) for counts in all_keys)
        for key, own in _by_key(spec.own_anti_affinity).items():
            counts = self._counts(key, pods_of_any_term(pods, own))
            yield DomainRule(cluster, counts, OWN_ANTI, anti_affinity_bounds)
        matched = _by_key(spec.matched_terms)
        for key in self._keys:
            counts = self._counts(key, holders(pods, matched[key]))
            yield DomainRule(cluster, counts, EXISTING_ANTI, anti_affinity_bounds)

    def _quota_rule(self, quota: NodeQuota, most: int) -> DomainRule:
        pods = pods_of_quota(self._cluster.pods, quota.pool, quota.resource)
        counts = DomainCounts(self._cluster, self._domains(quota.key, quota.value), pods, None)
        return DomainRule(self._cluster, counts, quota_kind(quota), quota_bounds(quota, most))

    def _counts(
        self, key: str, pods: CountedPods, constraint: SpreadConstraint | None = None
    ) -> DomainCounts:
        eligible = None if constraint is None else self._eligible(constraint)
        return DomainCounts(self._cluster, self._domains(key, None), pods, eligible)


class MaskWithout:
    """What the rules would say of one row without some of its pods; until pods or nodes change.

    A search for victims puts back one pod after the other, and each costs the rules and not the pods before.
    """

    def __init__(self, rules: Sequence[DomainRule], row: int, removed: Iterable[Task]) -> None:
        self._rules = rules
        self._row = row
        self._freed = [0] * len(rules)
        for pod in removed:
            self.remove(pod)

    def remove(self, pod: Task) -> None:
        """Without this pod as well, which is on the row."""
        self._free(pod, 1)

    def restore(self, pod: Task) -> None:
        """With this pod again."""
        self._free(pod, -1)

    @property
    def refusal(self) -> str:
        """kube-scheduler's words of the first rule that refuses the row; empty if none does."""
        each = zip(self._rules, self._freed, strict=True)
        return next(
            (rule.reason_at(self._row) for rule, freed in each if not rule.holds_without(self._row, freed)),
            "",
        )

    def _free(self, pod: Task, times: int) -> None:
        for at, rule in enumerate(self._rules):
            self._freed[at] += times * rule.counts_at(self._row, pod)


def _by_key(terms: Sequence[PodAffinityTerm]) -> dict[str, list[PodAffinityTerm]]:
    found: dict[str, list[PodAffinityTerm]] = {}
    for term in terms:
        found.setdefault(term.topology_key, []).append(term)
    return found
