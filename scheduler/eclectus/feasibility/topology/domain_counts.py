"""Counts of pods by topology domain, from the log of pods that come and leave: no decision reads all pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.alike_pods import AlikePods
from eclectus.cluster.labels import ABSENT, Codes
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.domains import Domains

WEIGHTS_REMEMBERED = 256  # groups of pods whose weight need not be computed again


class CountedPods(Protocol):
    """Which pods count."""

    def weight(self, group: AlikePods) -> int:
        """How much a pod of this group counts; 0 if it does not."""

    def groups(self) -> Iterable[AlikePods]:
        """Groups on nodes, each once, among which are all that count."""


class Change(NamedTuple):
    """What a refresh has found: domains whose count has changed, and rows whose node has."""

    domains: Iterable[int]
    rows: list[int]


_NOTHING = Change((), [])


class DomainCounts:
    """How many of the pods that count are in each domain, of nodes that are eligible.

    `counts`: by the number of a domain, shape [domains or more]. A domain exists if it has an eligible node:
    `existing` says how many do, `least` is the least count of one (0 without any), `total` the sum of all.
    A pod that comes or leaves costs O(1), whatever there are of pods, nodes and domains.
    """

    def __init__(
        self, cluster: Cluster, domains: Domains, pods: CountedPods, eligible: ShapeValues[np.bool_] | None
    ) -> None:
        """`eligible`: the nodes whose pods count; None for all that have the label."""
        self._cluster, self.domains, self._pods, self._eligible = cluster, domains, pods, eligible
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
            found = self._weights[group.serial] = self._pods.weight(group)
        return found

    def domain_at(self, row: int) -> int:
        """The domain in which pods of this row count; `ABSENT` if they count nowhere."""
        return self._domain_at[row]

    # -- following the cluster -----------------------------------------------------------------

    def refresh(self) -> Change | None:
        """Count what has changed since the last time; None if all was counted again."""
        cluster = self._cluster
        pods, shape = cluster.pods.changes, cluster.shape
        if self._pods_cursor == pods.head and self._shape_cursor == shape.head:
            return _NOTHING
        self.domains.refresh()
        entries, reshaped = pods.entries_since(self._pods_cursor), shape.since(self._shape_cursor)
        if entries is None or reshaped is None or self._generation != self.domains.generation:
            self._start_over()
            return None
        self._pods_cursor, self._shape_cursor = pods.head, shape.head
        touched: dict[int, None] = {}
        for group, row, times in entries:
            if weight := self.weight(group):
                self._add(row, weight * times, touched)
        if reshaped:
            self._widen()
            for row in reshaped:
                self._move(row, touched)
        return Change(touched, reshaped)

    def _add(self, row: int, amount: int, touched: dict[int, None]) -> None:
        """So much more is counted on a row."""
        on_row = self._on_row.get(row, 0) + amount
        if on_row:
            self._on_row[row] = on_row
        else:
            del self._on_row[row]
        domain = self._domain_at[row]
        if domain != ABSENT:
            self._set_count(domain, self._count_at[domain] + amount)
            touched[domain] = None

    def _move(self, row: int, touched: dict[int, None]) -> None:
        """The row's node may be in another domain now, or in none."""
        before, after = self._domain_at[row], self._domain_now(row)
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
        self._domain_at[row] = after

    def _domain_now(self, row: int) -> int:
        is_eligible = self._eligible is None or bool(self._eligible.refresh()[row])
        return int(self.domains.of_row[row]) if is_eligible else ABSENT

    # -- the least count -----------------------------------------------------------------------

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
        """One more existing domain has this count."""
        self._with_count[count] = self._with_count.get(count, 0) + 1
        if count < self.least or len(self._with_count) == 1:
            self.least = count

    def _leave(self, count: int) -> None:
        """One less has it. After the least count comes the next greater one, mostly greater by 1."""
        self._with_count[count] -= 1
        if not self._with_count[count]:
            del self._with_count[count]
            if count == self.least:
                above = count + 1
                self.least = above if above in self._with_count else min(self._with_count, default=0)

    # -- all at once ---------------------------------------------------------------------------

    def _start_over(self) -> None:
        cluster, domains = self._cluster, self.domains
        domains.refresh()
        self._pods_cursor, self._shape_cursor = cluster.pods.changes.head, cluster.shape.head
        self._generation = domains.generation
        domain: Codes = domains.of_row.copy()
        if self._eligible is not None:
            domain[~self._eligible.refresh()] = ABSENT
        self._domain_at = domain.data
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

    def _widen(self) -> None:
        """There may be more domains than places for them."""
        more = self.domains.count - len(self.counts)
        if more > 0:
            more = max(more, len(self.counts))
            self._set_arrays(np.pad(self.counts, (0, more)), np.pad(self._nodes, (0, more)))

    def _set_arrays(self, counts: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
        self.counts, self._nodes = counts, nodes
        self._count_at, self._nodes_at = counts.data, nodes.data
