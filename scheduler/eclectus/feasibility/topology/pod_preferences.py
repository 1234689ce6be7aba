"""What pods elsewhere say for or against each node: preferred pod affinity and soft topology spread.

As numbers over nodes that follow pods and nodes. Pods with the same preferences share them, whatever they
request. A pod that comes or leaves costs O(1), and a vector operation over the rows of its topology domain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eclectus.cluster.changelog import EntryLog, Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.scores.pod_topology_spread import Constraint, weight_of
from eclectus.feasibility.scores.whole import Ints
from eclectus.feasibility.shape_values import ShapeValues
from eclectus.feasibility.topology.counted import AttractingPods, SpreadPods
from eclectus.feasibility.topology.domain_counts import Change, DomainCounts
from eclectus.feasibility.topology.domains import Domains
from eclectus.model.objects import Spec, SpreadConstraint

MAX_FLIPS = 256  # entries of rows; who is further behind starts over
HOSTNAME = "kubernetes.io/hostname"


class DomainSums:
    """What is counted in the domain of each row; `refresh` follows the counts.

    `values`: shape [capacity], 0 for rows in no domain.
    """

    def __init__(self, cluster: Cluster, counts: DomainCounts) -> None:
        self.counts = counts
        self.values: Ints = np.zeros(cluster.capacity, dtype=np.int64)
        self._write(slice(cluster.capacity))

    def refresh(self) -> list[Rows] | None:
        """Follow what has changed; arrays of rows whose value may be another one, None if all may be."""
        change: Change | None = self.counts.refresh()
        if change is None:
            self._write(slice(len(self.values)))
            return None
        changed: list[Rows] = []
        if touched := list(change.domains):
            changed.append(self.counts.domains.rows_of(touched))
        if change.rows:
            changed.append(np.array(change.rows, dtype=np.intp))
        for rows in changed:
            self._write(rows)
        return changed

    def _write(self, rows: Rows | slice) -> None:
        domain, counts = self.counts.domains.of_row[rows], self.counts.counts
        self.values[rows] = np.where(domain == ABSENT, 0, counts[domain]) if len(counts) else 0


class PodPreferences:
    """The preferences of one kind of pod about other pods; up to date after `refresh`.

    `attraction`: InterPodAffinity's sum for each row, shape [capacity], read-only; replaced with the
    cluster's arrays. `flips`: arrays of rows whose numbers have perhaps changed, each row once in an array.
    `version` grows with every such change.
    """

    def __init__(
        self,
        cluster: Cluster,
        spec: Spec,
        domains: Callable[[str], Domains],
        eligible: Callable[[SpreadConstraint], ShapeValues[np.bool_]],
    ) -> None:
        """`spec`: made by `preferences_part`. `domains`: by topology key; `eligible`: see `TopologyMask`."""
        self._cluster, self._spec, self._domains, self._eligible = cluster, spec, domains, eligible
        self.flips = EntryLog[Rows](MAX_FLIPS)
        self.version = 0
        self._pods_cursor = self._shape_cursor = -1
        self._keys: tuple[str, ...] = ()  # of terms, that nodes carry
        self._attracting: list[DomainSums] = []  # by key
        self._spread: list[DomainSums] = []  # by constraint
        self._start_over()

    @property
    def attracts(self) -> bool:
        """Whether there are terms about pods, of either side, with a topology key that nodes have."""
        return bool(self._attracting)

    @property
    def spreads(self) -> bool:
        """Whether there are constraints with ScheduleAnyway."""
        return bool(self._spread)

    def has_keys(self, rows: Rows | slice) -> Mask:
        """Which of the rows have the topology keys of all constraints with ScheduleAnyway that need them."""
        holds: Mask = self._cluster.present[rows].copy()
        for sums, each in zip(self._spread, self._spec.spread, strict=True):
            if each.needs_all_keys:
                holds &= sums.counts.domains.of_row[rows] != ABSENT
        return holds

    def weights(self, rows: Rows | None = None) -> tuple[float, ...]:
        """The weight of the counts of each constraint, by its domains that have any of these rows.

        Without rows, by the domains whose pods count. For the key kubernetes.io/hostname the domains are
        nodes. The rows must have all keys that are needed; those without another one are a domain of it.
        """
        return tuple(weight_of(self._domain_count(sums, rows)) for sums in self._spread)

    def constraints(self, rows: Rows | slice, weights: Sequence[float]) -> Iterator[Constraint]:
        """Each constraint with ScheduleAnyway, with what it counts for each of the rows."""
        for sums, each, weight in zip(self._spread, self._spec.spread, weights, strict=True):
            max_skew: Ints | int = each.max_skew
            if not each.needs_all_keys:
                max_skew = np.where(sums.counts.domains.of_row[rows] == ABSENT, 1, max_skew)
            yield sums.values[rows], max_skew, weight

    def _domain_count(self, sums: DomainSums, rows: Rows | None) -> int:
        counts = sums.counts
        if rows is None:
            return counts.existing
        if counts.domains.key == HOSTNAME:
            return len(rows)
        return int(np.count_nonzero(np.bincount(counts.domains.of_row[rows] - ABSENT)))

    # -- following the cluster -----------------------------------------------------------------

    def refresh(self) -> None:
        """Follow the pods and nodes that have changed since the last time."""
        pods, shape = self._cluster.pods.changes, self._cluster.shape
        if self._pods_cursor == pods.head and self._shape_cursor == shape.head:
            return
        if self._shape_cursor != shape.head:
            has_grown = len(self.attraction) != self._cluster.capacity
            if has_grown or self._carried_keys() != self._keys:
                self._start_over()
                return
        self._pods_cursor, self._shape_cursor = pods.head, shape.head
        attracting = [sums.refresh() for sums in self._attracting]
        changes = [*attracting, *(sums.refresh() for sums in self._spread)]
        if any(each is None for each in attracting):
            self._add_up(slice(self._cluster.capacity))
        changed = [rows for each in changes for rows in each or ()]
        for rows in (rows for each in attracting for rows in each or ()):
            self._add_up(rows)
        if any(each is None for each in changes):
            self.version += 1
            self.flips.record_all()
        elif changed:
            self.version += 1
            for rows in changed:
                self.flips.record(rows)

    def _start_over(self) -> None:
        cluster, spec = self._cluster, self._spec
        self._pods_cursor, self._shape_cursor = cluster.pods.changes.head, cluster.shape.head
        self._keys = self._carried_keys()
        self._attracting = [
            DomainSums(cluster, DomainCounts(cluster, self._domains(key), self._attracting_pods(key), None))
            for key in self._keys
        ]
        self._spread = [DomainSums(cluster, self._spread_counts(each)) for each in spec.spread]
        self._attraction: Ints = np.zeros(cluster.capacity, dtype=np.int64)
        self.attraction: Ints = read_only(self._attraction)
        self._add_up(slice(cluster.capacity))
        self.version += 1
        self.flips.record_all()

    def _add_up(self, rows: Rows | slice) -> None:
        self._attraction[rows] = 0
        for sums in self._attracting:
            self._attraction[rows] += sums.values[rows]

    # -- what counts ---------------------------------------------------------------------------

    def _carried_keys(self) -> tuple[str, ...]:
        """The topology keys of all terms that nodes carry: terms of others may have thousands of keys."""
        own = (each.term.topology_key for each in self._spec.preferred_terms)
        others = (term.topology_key for term in self._spec.matched_preferences)
        carries = self._cluster.labels.carries
        return tuple(key for key in dict.fromkeys((*own, *others)) if carries(key))

    def _attracting_pods(self, key: str) -> AttractingPods:
        spec = self._spec
        own = [each for each in spec.preferred_terms if each.term.topology_key == key]
        matched = [term for term in spec.matched_preferences if term.topology_key == key]
        return AttractingPods(self._cluster.pods, own, matched)

    def _spread_counts(self, constraint: SpreadConstraint) -> DomainCounts:
        pods, domains = SpreadPods(self._cluster.pods, constraint), self._domains(constraint.topology_key)
        return DomainCounts(self._cluster, domains, pods, self._eligible(constraint))
