"""Topology domains: the nodes that have an equal value of one label, numbered; and which pods count in them.

For topology spread the pods of those nodes count that have all topology keys of the pod's constraints and,
by a constraint's nodeAffinityPolicy and nodeTaintsPolicy, match the pod's node selector and node affinity
and have only taints that it tolerates. For kube-scheduler's default constraints the key of the constraint
itself suffices.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.alike_pods import AlikePodGroups, AlikePods
from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT, Codes
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import nodes
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.static_rules import OF_OTHER_PODS, ShapeValues
from eclectus.model.objects import PodAffinityTerm, Spec, SpreadConstraint, WeightedTerm, selects

SEVERAL = -1  # rows, or none


class Domains:
    """The domain of every row, by one topology key. Rules share it, and each may refresh it.

    `of_row`: the number of the row's domain, `ABSENT` where there is no node or it lacks the label, shape
    [capacity]. `count`: numbers so far, some perhaps of domains without nodes. They keep their meaning while
    `generation` stays the same. `value`: nodes with this one are the only domain; None: each value is one.
    """

    def __init__(self, cluster: Cluster, key: str, value: str | None = None) -> None:
        self._cluster = cluster
        self.key = key
        self._value = value
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
            value, only, known = self._cluster.labels.value(self.key, row), self._value, self._numbers
            if value is None or (only is not None and value != only):
                self.of_row[row] = ABSENT
            else:
                self.of_row[row] = known.setdefault(value, len(known))

    def _start_over(self) -> None:
        labels, value = self._cluster.labels, self._value
        self._cursor, self.generation = self._cluster.shape.head, self.generation + 1
        self.of_row: Codes = labels.column(self.key).copy()
        self._numbers, self._only_row = dict(labels.codes(self.key)), []
        if value is not None:
            code = self._numbers.get(value)
            self.of_row[:] = ABSENT if code is None else np.where(self.of_row == code, 0, ABSENT)
            self._numbers = {value: 0}


def topology_part(spec: Spec) -> Spec:
    """A spec that is equal for pods that the rules about other pods cannot tell apart."""
    part = Spec(**{name: getattr(spec, name) for name in OF_OTHER_PODS})
    if any(each.honors_affinity for each in spec.spread):
        part = replace(part, node_selector=spec.node_selector, affinity=spec.affinity)
    if any(each.honors_taints for each in spec.spread):
        part = replace(part, tolerations=spec.tolerations)
    return part


def preferences_part(spec: Spec) -> Spec:
    """A spec that is equal for pods to which pods elsewhere make the same nodes preferable.

    Its `spread` are the constraints with ScheduleAnyway, for `eligible_nodes`.
    """
    part = topology_part(replace(spec, **{**OF_OTHER_PODS, "spread": spec.preferred_spread}))
    preferred, matched = spec.preferred_terms, spec.matched_preferences
    return replace(part, preferred_terms=preferred, matched_preferences=matched)


def eligible_nodes(spec: Spec, constraint: SpreadConstraint) -> tuple[Spec, tuple[Rule, ...]]:
    """The rules that decide whether the pods of a node count, and what these rules read of the spec."""
    part, rules = Spec(), list[Rule]()
    if constraint.needs_all_keys:
        keys = tuple(dict.fromkeys(each.topology_key for each in spec.spread))
        part, rules = Spec(topology_keys=keys), [nodes.TOPOLOGY_KEYS]
    if constraint.honors_affinity:
        part = replace(part, node_selector=spec.node_selector, affinity=spec.affinity)
        rules.append(nodes.NODE_AFFINITY)
    if constraint.honors_taints:
        part = replace(part, tolerations=spec.tolerations)
        rules.append(nodes.TAINT_TOLERATION)
    return part, tuple(rules)


class CountedPods(NamedTuple):
    """How much a pod of a group counts, 0 if it does not; and groups with all that count, each once."""

    weight: Callable[[AlikePods], int]
    groups: Callable[[], Iterable[AlikePods]]


def spread_pods(pods: AlikePodGroups, constraint: SpreadConstraint) -> CountedPods:
    """The pods of a spread constraint: those that are there and stay. An empty selector counts none."""
    selector, namespace = constraint.selector or (), constraint.namespace

    def weight(group: AlikePods) -> int:
        is_counted = bool(selector) and not group.is_terminating and not group.is_nominated
        return int(is_counted and group.namespace == namespace and selects(selector, group.labels))

    return CountedPods(weight, lambda: pods.matching((namespace,), selector) if selector else ())


def pods_of_all_terms(pods: AlikePodGroups, terms: Sequence[PodAffinityTerm]) -> CountedPods:
    """The pods of pod affinity: those that all of its terms match, terminating ones included.

    A pod that is only nominated does not count: it may never come.
    """

    def weight(group: AlikePods) -> int:
        return int(not group.is_nominated and all(_matches(term, group) for term in terms))

    return CountedPods(weight, lambda: pods.matching(terms[0].namespaces, terms[0].selector))


def pods_of_any_term(pods: AlikePodGroups, terms: Sequence[PodAffinityTerm]) -> CountedPods:
    """The pods of anti-affinity: those that one of its terms matches, nominated ones included."""
    return CountedPods(
        lambda group: int(any(_matches(term, group) for term in terms)),
        lambda: _once(pods.matching(term.namespaces, term.selector) for term in terms),
    )


def holders(pods: AlikePodGroups, terms: Sequence[PodAffinityTerm]) -> CountedPods:
    """The pods that have one of these anti-affinity terms themselves, nominated ones included."""
    held = frozenset(terms)
    return CountedPods(
        lambda group: int(not held.isdisjoint(group.terms)),
        lambda: _once(pods.with_term.get(term, ()) for term in terms),
    )


def pods_of_quota(pods: AlikePodGroups, pool: str, resource: str) -> CountedPods:
    """The pods of a pool, each as much as it holds of a resource; nominated and terminating ones included."""
    quota = (pool, resource)
    return CountedPods(lambda group: group.of_quota.get(quota, 0), lambda: pods.of_quota.get(quota, ()))


def attracting_pods(
    pods: AlikePodGroups, own: Sequence[WeightedTerm], terms: Collection[PodAffinityTerm]
) -> CountedPods:
    """The pods that make a topology domain better for a pod or, with a weight below 0, worse; bound ones.

    By the weights of `own`, preferred terms of the pod, that match them, and of `terms` that they have.
    """
    matched = frozenset(terms)

    def weight(group: AlikePods) -> int:
        if group.is_nominated:
            return 0
        theirs = sum(weight for term, weight in group.weights.items() if term in matched)
        return theirs + sum(each.weight for each in own if _matches(each.term, group))

    def groups() -> Iterator[AlikePods]:
        of_own = (pods.matching(each.term.namespaces, each.term.selector) for each in own)
        return _once(chain(of_own, (pods.with_preference.get(term, ()) for term in matched)))

    return CountedPods(weight, groups)


def _matches(term: PodAffinityTerm, group: AlikePods) -> bool:
    return term.covers(group.namespace) and selects(term.selector, group.labels)


def _once(groups: Iterable[Iterable[AlikePods]]) -> Iterator[AlikePods]:
    return iter(dict.fromkeys(chain.from_iterable(groups)))


# Counts of pods by topology domain, from the log of pods that come and leave: no decision reads all pods.

WEIGHTS_REMEMBERED = 256  # groups of pods whose weight need not be computed again


class Change(NamedTuple):
    """What a refresh has found: domains whose count has changed, and rows whose node has."""

    domains: Iterable[int]
    rows: list[int]


_NOTHING = Change((), [])


class DomainCounts:
    """How many of the pods that count are in each domain, of nodes that are eligible.

    `counts`: by the number of a domain, shape [domains or more]. A domain exists if it has an eligible node:
    `existing` says how many do, `least` is the least count of one (0 without any), `total` the sum of all.
    `domain_at`: by row the domain in which its pods count; `ABSENT` if they count nowhere.
    A pod that counts costs O(1) when it comes or leaves, whatever there are of pods, nodes and domains; of
    those that do not count, all of a group cost that together.
    """

    def __init__(
        self, cluster: Cluster, domains: Domains, pods: CountedPods, eligible: ShapeValues[np.bool_] | None
    ) -> None:
        """`eligible`: the nodes whose pods count; None for all that have the label."""
        self._cluster = cluster
        self.domains = domains
        self._pods = pods
        self._eligible = eligible
        self._weights: dict[int, int] = {}  # by the serial of a group
        self._pods_cursor = self._shape_cursor = self._generation = -1
        self._with_count: dict[int, int] = {}  # count -> how many existing domains have it
        self.least = self.total = self.existing = 0
        self._start_over()

    def weight(self, group: AlikePods) -> int:
        """How much a pod of this group counts."""
        found = self._weights.get(group.serial)
        if found is None:
            if len(self._weights) >= WEIGHTS_REMEMBERED:
                self._weights.clear()
            self._cluster.pods.compared += 1
            found = self._weights[group.serial] = self._pods.weight(group)
        return found

    def refresh(self) -> Change | None:
        """Count what has changed since the last time; None if all was counted again."""
        cluster = self._cluster
        pods, shape = cluster.pods.changes, cluster.shape
        if self._pods_cursor == pods.head and self._shape_cursor == shape.head:
            return _NOTHING
        self.domains.refresh()
        changed, reshaped = cluster.pods.changes_since(self._pods_cursor), shape.since(self._shape_cursor)
        if changed is None or reshaped is None or self._generation != self.domains.generation:
            self._start_over()
            return None
        self._pods_cursor, self._shape_cursor = pods.head, shape.head
        touched: dict[int, None] = {}
        for group, on_rows in changed.items():
            if weight := self.weight(group):
                for row, times in on_rows:
                    self._add(row, weight * times, touched)
        if reshaped:
            more = self.domains.count - len(self.counts)  # there may be more domains than places for them
            if more > 0:
                more = max(more, len(self.counts))
                self._set_arrays(np.pad(self.counts, (0, more)), np.pad(self._nodes, (0, more)))
            for row in reshaped:
                self._move(row, touched)
        return Change(touched, reshaped)

    def _add(self, row: int, amount: int, touched: dict[int, None]) -> None:
        on_row = self._on_row.get(row, 0) + amount
        if on_row:
            self._on_row[row] = on_row
        else:
            del self._on_row[row]
        domain = self.domain_at[row]
        if domain != ABSENT:
            self._set_count(domain, self._count_at[domain] + amount)
            touched[domain] = None

    def _move(self, row: int, touched: dict[int, None]) -> None:
        """The row's node may be in another domain now, or in none."""
        is_eligible = self._eligible is None or bool(self._eligible.refresh()[row])
        before, after = self.domain_at[row], int(self.domains.of_row[row]) if is_eligible else ABSENT
        if before == after:
            return
        on_row = self._on_row.get(row, 0)
        if before != ABSENT:
            self._set_count(before, self._count_at[before] - on_row)
            self._set_nodes(before, self._nodes_at[before] - 1)
            touched[before] = None
        if after != ABSENT:
            self._set_nodes(after, self._nodes_at[after] + 1)
            self._set_count(after, self._count_at[after] + on_row)
            touched[after] = None
        self.domain_at[row] = after

    def _set_count(self, domain: int, count: int) -> None:
        before = self._count_at[domain]
        self._count_at[domain] = count
        self.total += count - before
        if self._nodes_at[domain] and count != before:
            self._enter(count)
            self._leave(before)

    def _set_nodes(self, domain: int, nodes: int) -> None:
        before, self._nodes_at[domain] = self._nodes_at[domain], nodes
        if bool(before) != bool(nodes):
            self.existing += 1 if nodes else -1
            (self._enter if nodes else self._leave)(self._count_at[domain])

    def _enter(self, count: int) -> None:
        self._with_count[count] = self._with_count.get(count, 0) + 1
        if count < self.least or len(self._with_count) == 1:
            self.least = count

    def _leave(self, count: int) -> None:
        self._with_count[count] -= 1
        if not self._with_count[count]:
            del self._with_count[count]
            if count == self.least:  # after it comes the next greater one, mostly greater by 1
                above = count + 1
                self.least = above if above in self._with_count else min(self._with_count, default=0)

    def _start_over(self) -> None:
        cluster, domains = self._cluster, self.domains
        domains.refresh()
        self._pods_cursor, self._shape_cursor = cluster.pods.changes.head, cluster.shape.head
        self._generation = domains.generation
        domain: Codes = domains.of_row.copy()
        if self._eligible is not None:
            domain[~self._eligible.refresh()] = ABSENT
        self.domain_at = domain.data
        self._on_row = self._count_rows()
        counted = domain != ABSENT
        nodes = np.bincount(domain[counted], minlength=domains.count)
        rows = np.fromiter(self._on_row.keys(), np.intp, len(self._on_row))
        pods = np.fromiter(self._on_row.values(), np.int64, len(self._on_row))
        there = counted[rows]
        weights = pods[there].astype(np.float64)  # whole numbers, far below those that a float holds exactly
        counts = np.bincount(domain[rows[there]], weights, minlength=domains.count).astype(np.int64)
        self._set_arrays(counts, nodes)
        self.total = int(counts.sum())
        self.existing = int(np.count_nonzero(nodes))
        self._with_count = dict(Counter(counts[nodes > 0].tolist()))
        self.least = min(self._with_count, default=0)

    def _count_rows(self) -> dict[int, int]:
        """What counts on each row, where anything does."""
        found: dict[int, int] = {}
        for group in self._pods.groups():
            if weight := self.weight(group):
                for row, pods in group.pods.items():
                    found[row] = found.get(row, 0) + weight * pods
        return found

    def _set_arrays(self, counts: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
        self.counts, self._nodes = counts, nodes
        self._count_at, self._nodes_at = counts.data, nodes.data
