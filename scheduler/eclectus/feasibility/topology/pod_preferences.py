"""What pods elsewhere say for or against each node: preferred pod affinity and soft topology spread.

As numbers of topology domains that follow pods and nodes; which rows are in a domain is no matter here
(node_groups.py). Pods with the same preferences share them, whatever they request. A pod that comes or leaves
costs O(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from eclectus.cluster.changelog import EntryLog
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.scores import weight_of
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.domain_counts import DomainCounts
from eclectus.feasibility.topology.domains import AttractingPods, Domains, SpreadPods
from eclectus.model.objects import Spec, SpreadConstraint

MAX_TOUCHED = 256  # domains whose count has changed; who is further behind starts over
HOSTNAME = "kubernetes.io/hostname"


class Touched(NamedTuple):
    """A domain in which pods have come or left: its number among those of `counted[column]`."""

    column: int
    domain: int


class PodPreferences:
    """The preferences of one kind of pod about other pods; up to date after `refresh`.

    `attracting`: for each topology key of terms, InterPodAffinity's sum by domain; `spread`: for each
    constraint with ScheduleAnyway, the pods that it counts by domain; `counted`: both. `touched`: domains
    where a sum has changed. `version` grows with every such change, and when a node is in another domain.
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
        self.touched = EntryLog[Touched](MAX_TOUCHED)
        self.version = 0
        self._pods_cursor = self._shape_cursor = -1
        self._keys: tuple[str, ...] = ()  # of terms, that nodes carry
        self.attracting: list[DomainCounts] = []
        self.spread: list[DomainCounts] = []
        self.counted: tuple[DomainCounts, ...] = ()
        self._start_over()

    @property
    def attracts(self) -> bool:
        """Whether there are terms about pods, of either side, with a topology key that nodes have."""
        return bool(self.attracting)

    @property
    def spreads(self) -> bool:
        """Whether there are constraints with ScheduleAnyway."""
        return bool(self.spread)

    @property
    def constraints(self) -> Sequence[SpreadConstraint]:
        """Those with ScheduleAnyway, in the order of `spread`."""
        return self._spec.spread

    def weights(self) -> tuple[float, ...]:
        """The weight of the counts of each constraint, by the domains whose pods count."""
        return tuple(weight_of(counts.existing) for counts in self.spread)

    # -- following the cluster -----------------------------------------------------------------

    def refresh(self) -> None:
        """Follow the pods and nodes that have changed since the last time."""
        pods, shape = self._cluster.pods.changes, self._cluster.shape
        if self._pods_cursor == pods.head and self._shape_cursor == shape.head:
            return
        if self._shape_cursor != shape.head and self._carried_keys() != self._keys:
            self._start_over()
            return
        self._pods_cursor, self._shape_cursor = pods.head, shape.head
        changes = [counts.refresh() for counts in self.counted]
        if any(change is None for change in changes):
            self.version += 1
            self.touched.record_all()
            return
        for column, change in enumerate(changes):
            if change is not None and (change.domains or change.rows):
                self.version += 1
                for domain in change.domains:
                    self.touched.record(Touched(column, domain))

    def _start_over(self) -> None:
        cluster, spec = self._cluster, self._spec
        self._pods_cursor, self._shape_cursor = cluster.pods.changes.head, cluster.shape.head
        self._keys = self._carried_keys()
        self.attracting = [
            DomainCounts(cluster, self._domains(key), self._attracting_pods(key), None) for key in self._keys
        ]
        self.spread = [self._spread_counts(each) for each in spec.spread]
        self.counted = (*self.attracting, *self.spread)
        self.version += 1
        self.touched.record_all()

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
