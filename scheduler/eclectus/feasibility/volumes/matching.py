"""Which volumes unbound claims can get on which nodes, and where volumes can be provisioned for them.

As kube-scheduler's VolumeBinding: the claims of a pod, the smallest first, each get the smallest volume that
is free and matches; a claim for which a node has none needs a provisioner that serves the node and, if it
says how much storage is free, has enough there. A claim with a selected node is provisioned there, and one
for which a volume is reserved gets that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.volumes.reach import Places
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.volumes.candidates import Candidates
from eclectus.feasibility.volumes.largest import LargestVolumes
from eclectus.model.objects import Term, UnboundClaim

ANY, MORE = -1, np.iinfo(np.int64).max  # free storage that is enough: none need be known; more than there is
MAX_FOLLOWED = 64  # changed volumes; after more it costs less to start over

Used = dict[str, NDArray[np.int64]]
"""StorageClass -> how many volumes of each of its pairs the claims before have got."""


class VolumeMatching:
    """Questions about the volumes that there are now.

    What they share is kept until it is said to have changed: `forget_nodes`, `follow_volumes`.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._storage = cluster, cluster.volumes.storage
        self._rows: dict[tuple[Term, ...] | None, Rows] = {}
        self._candidates: dict[str, Candidates] = {}
        self._largest = LargestVolumes(cluster)
        # StorageClass -> the least free storage that is enough, bytes -> where a volume can be made.
        self._provisioned: dict[str, dict[int, Places]] = {}

    def where(self, claims: Sequence[UnboundClaim]) -> Places:
        """The rows on which all of these claims of one pod, at least one, can get volumes.

        As in kube-scheduler claims with a selected node are the first. The arrays must not be written to:
        claims of a StorageClass without free volumes share them if the same free storage is enough for them.
        """
        first, *others = sorted(claims, key=lambda each: not each.selected_node)
        used = Used()
        found = self._places_for(first, used)
        for claim in others:
            places = self._places_for(claim, used)
            if places is not found:
                found = Places(found.gets & places.gets, found.is_short | found.gets & places.is_short)
        return found

    def forget_nodes(self) -> None:
        """Nodes have come, gone or changed."""
        self._rows.clear()
        self._candidates.clear()
        self._largest.forget_nodes()
        self._provisioned.clear()

    def follow_volumes(self, classes: Iterable[str], volumes: Collection[str]) -> None:
        """Of these StorageClasses free storage has changed, or free volumes, only those of these names."""
        for storage_class in classes:
            self._largest.forget(storage_class)
            self._provisioned.pop(storage_class, None)
            candidates = self._candidates.get(storage_class)
            if candidates is None:
                continue
            now = ((name, self._storage.available_volume(storage_class, name)) for name in sorted(volumes))
            if len(volumes) > MAX_FOLLOWED or not all(candidates.set(*each) for each in now):
                del self._candidates[storage_class]

    def plan(self, claims: Sequence[UnboundClaim], row: int) -> list[str]:
        """For each of the claims the volume that it gets on a row for which `where` is true.

        Empty: one that is provisioned.
        """
        used, names = Used(), list[str]()
        for claim in claims:
            node, volume = self._decided(claim)
            names.append(volume if node or volume else self._best(claim, row, used))
        return names

    # -- one claim -----------------------------------------------------------------------------------

    def _places_for(self, claim: UnboundClaim, used: Used) -> Places:
        node, volume = self._decided(claim)
        if volume:
            reserved = self._storage.volumes.get(volume)
            reachable = self._nowhere() if reserved is None else self._reachable(reserved.affinity)
            return Places(reachable, self._nowhere())
        provisioned = self._provisionable(claim)
        if node:
            only = self._nowhere()
            row = self._cluster.rows.get(node)
            if row is not None:
                only[row] = True
            return Places(only & provisioned.gets, only & provisioned.is_short)
        candidates = self._of_class(claim.storage_class)
        if not len(candidates.rows):
            return provisioned
        gets, is_short = provisioned.gets.copy(), provisioned.is_short.copy()
        pairs = self._assign(candidates, claim, np.arange(len(candidates.rows)), used)
        rows = candidates.rows[pairs]
        gets[rows], is_short[rows] = True, False
        return Places(gets, is_short)

    def _decided(self, claim: UnboundClaim) -> tuple[str, str]:
        """The node and the volume of a claim, empty where they are open; other pods may have decided them."""
        decision = self._storage.decisions.get(claim.shared) if claim.shared else None
        if decision is not None:
            return ("", decision.volume) if decision.volume else (decision.node, "")
        return claim.selected_node, claim.volume

    def _best(self, claim: UnboundClaim, row: int, used: Used) -> str:
        candidates = self._of_class(claim.storage_class)
        pairs = self._assign(candidates, claim, np.flatnonzero(candidates.rows == row), used)
        if not len(pairs):
            return ""
        group = int(candidates.groups[pairs[0]])
        before = int(used[claim.storage_class][pairs[0]]) - 1
        return candidates.names[group][before]

    def _assign(self, candidates: Candidates, claim: UnboundClaim, pairs: Rows, used: Used) -> Rows:
        """Of these pairs the first on each row with a volume that the claim can get; it gets it."""
        taken = used.setdefault(claim.storage_class, np.zeros(len(candidates.rows), dtype=np.int64))
        groups = candidates.groups[pairs]
        is_free = candidates.matching(claim)[groups] & (candidates.counts[groups] > taken[pairs])
        free = pairs[is_free]
        # Written from the last to the first, so that the first pair of a row stays.
        first = np.full(self._cluster.capacity, -1, dtype=np.intp)
        first[candidates.rows[free[::-1]]] = free[::-1]
        chosen = first[first >= 0]
        taken[chosen] += 1
        return chosen

    # -- nodes ---------------------------------------------------------------------------------------

    def _provisionable(self, claim: UnboundClaim) -> Places:
        """Where a volume can be made for the claim; shared."""
        storage_class = self._storage.classes.get(claim.storage_class)
        if storage_class is None or not storage_class.provisions:
            known = self._provisioned.setdefault("", {})
            return known.setdefault(ANY, Places(self._nowhere(), self._nowhere()))
        largest = self._largest.of(storage_class) if claim.size else None
        enough = ANY if largest is None else int(largest.min(where=largest >= claim.size, initial=MORE))
        known = self._provisioned.setdefault(storage_class.name, {})
        if enough not in known:
            reachable = self._reachable(storage_class.topologies or None)
            has_enough = np.ones_like(reachable) if largest is None else largest >= claim.size
            known[enough] = Places(reachable & has_enough, reachable & ~has_enough)
        return known[enough]

    def _reachable(self, terms: tuple[Term, ...] | None) -> Mask:
        reachable = self._nowhere()
        reachable[self._rows_of(terms)] = True
        return reachable

    def _rows_of(self, terms: tuple[Term, ...] | None) -> Rows:
        """The rows of nodes on which at least one term holds; None is every node."""
        found = self._rows.get(terms)
        if found is None:
            rows = np.flatnonzero(self._cluster.present)
            if terms is not None:
                holds = [term_holds(self._cluster, term, rows) for term in terms]
                rows = rows[np.logical_or.reduce(holds)] if holds else rows[:0]
            found = self._rows[terms] = rows
        return found

    def _nowhere(self) -> Mask:
        return np.zeros(self._cluster.capacity, dtype=bool)

    # -- following the cluster -----------------------------------------------------------------------

    def _of_class(self, storage_class: str) -> Candidates:
        found = self._candidates.get(storage_class)
        if found is None:
            volumes = self._storage.available(storage_class)
            found = self._candidates[storage_class] = Candidates(volumes, self._rows_of)
        return found
