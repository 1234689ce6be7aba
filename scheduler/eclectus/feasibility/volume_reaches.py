"""Which volumes unbound claims can get on which nodes, and where volumes can be provisioned for them.

As kube-scheduler's VolumeBinding: the claims of a pod, the smallest first, each get the smallest volume
that is free and matches; a claim for which a node has none needs a provisioner that serves the node and, if
it says how much storage is free, has enough there. A claim with a selected node is provisioned there, and
one for which a volume is reserved gets that one.

`Cluster.volumes.reach` is kept up to date with it for the unbound claims of pods that wait. What changes
between scheduling cycles is logged as a change of the nodes' shape, because those nodes become feasible or
infeasible. What a bind changes within a cycle is logged as usage first: policies keep what is feasible for
as long as a cycle lasts.

Messages count the nodes that a pod's volumes refuse in kube-scheduler's words and order:
VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone: the first that refuses a node counts it,
but VolumeBinding counts it once for its bound claims and once for its unbound ones.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.memo import Memo
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.storage import Moved, Places, Reach
from eclectus.feasibility.rules import volumes
from eclectus.feasibility.rules.nodes import any_term_holds, term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.scores import Ints, volume_binding
from eclectus.model.objects import Requirement, Spec, Task, Term, UnboundClaim, selects
from eclectus.model.volumes import FreeStorage, StorageClass, Volume

# The free PersistentVolumes of one StorageClass, in groups of equal ones, with the rows that reach each.
#
# A pair is a group and a row that reaches it. Pairs are sorted by size, so the first pair of a row whose
# group matches is the smallest volume that a claim can get there.
#
# How large a volume can be provisioned on each node follows from what a CSI driver publishes of free storage.
# As in kube-scheduler's VolumeBinding a node has room for a volume if one CSIStorageCapacity of the
# StorageClass that selects the node allows it. A driver of local disks publishes one for each node, so most
# select nodes by equal labels: these are found by the values of a node, others are compared with all nodes.

MAX_CLAIMS = 64  # whose matching groups are kept
EMPTY_FEW = 64  # groups without a volume, that are kept in any case


class Candidates:
    """`names` [groups] of volumes; `counts`, how many, and `sizes`, bytes; `rows` and `groups` [pairs].

    A volume that is taken or becomes free again changes its group. Groups may be empty.
    """

    def __init__(self, volumes: Iterable[Volume], rows_of: Callable[[tuple[Term, ...] | None], Rows]) -> None:
        """`rows_of` returns the rows on which at least one of these terms holds."""
        alike = defaultdict[object, list[Volume]](list)
        for volume in volumes:
            alike[_kind(volume)].append(volume)
        ordered = sorted(alike.values(), key=lambda group: group[0].size)
        self._rows_of = rows_of
        self._samples = [group[0] for group in ordered]
        self._numbers = {_kind(sample): number for number, sample in enumerate(self._samples)}
        self.names = [[volume.name for volume in group] for group in ordered]
        self._group_of = {name: number for number, names in enumerate(self.names) for name in names}
        self.counts = np.array([len(group) for group in ordered], dtype=np.int64)
        self.sizes = np.array([min(each.size, EXACT) for each in self._samples], dtype=np.int64)
        self._empty = 0
        rows = [rows_of(volume.affinity) for volume in self._samples]
        self.rows = np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)
        self.groups = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        self._matching: dict[UnboundClaim, Mask] = {}

    def set(self, name: str, volume: Volume | None) -> bool:
        """The volume is free now, as given, or is not. False: the candidates are no longer valid."""
        before = self._group_of.get(name)
        if before is not None:
            self.names[before].remove(name)
            del self._group_of[name]
            self.counts[before] -= 1
            self._empty += not self.names[before]
        if volume is None:
            return self._empty <= EMPTY_FEW + len(self.names) // 2
        number = self._numbers.get(_kind(volume))
        if number is None:
            if self._samples and volume.size < self._samples[-1].size:
                return False  # its pairs would have to go before others
            number = self._add_group(volume)
        self._empty -= not self.names[number]
        self.names[number].append(name)
        self._group_of[name] = number
        self.counts[number] += 1
        return True

    def _add_group(self, volume: Volume) -> int:
        """A group without a volume, of volumes like this one; returns its number."""
        number = self._numbers[_kind(volume)] = len(self.names)
        rows = self._rows_of(volume.affinity)
        self._samples.append(volume)
        self.names.append([])
        self._empty += 1
        self.counts = np.append(self.counts, 0)
        self.sizes = np.append(self.sizes, min(volume.size, EXACT))
        self.rows = np.append(self.rows, rows)
        self.groups = np.append(self.groups, np.full(len(rows), number))
        for claim, groups in self._matching.items():
            self._matching[claim] = np.append(groups, _matches(volume, claim))
        return number

    def matching(self, claim: UnboundClaim) -> Mask:
        """Which groups a claim can get, shape [groups]."""
        found = self._matching.get(claim)
        if found is None:
            if len(self._matching) >= MAX_CLAIMS:
                self._matching.clear()
            matches = (_matches(each, claim) for each in self._samples)
            found = self._matching[claim] = np.fromiter(matches, dtype=bool, count=len(self._samples))
        return found


def fits_claim(volume: Volume, claim: UnboundClaim) -> bool:
    """Whether a volume is large enough, of the mode and the attributes that the claim asks for."""
    return (
        volume.size >= claim.size
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.deleting
    )


def _matches(volume: Volume, claim: UnboundClaim) -> bool:
    """Whether a claim can get a volume that is not reserved for it."""
    if claim.selector is not None and not selects(claim.selector, dict(volume.labels)):
        return False
    return fits_claim(volume, claim) and set(claim.access_modes) <= set(volume.access_modes)


_kind = attrgetter("size", "access_modes", "volume_mode", "attributes_class", "labels", "affinity")
"""Volumes of one kind can replace each other."""

NONE = -1  # no volume, however small
EXACT = 2**53  # bytes; no more of one volume are counted for scores

_Keys = tuple[str, ...]
_Codes = tuple[int, ...]  # of the values of these labels


Amount = Callable[[FreeStorage], int]
LARGEST: Amount = attrgetter("largest")
TOTAL: Amount = attrgetter("total")


def most_free(cluster: Cluster, free: Iterable[FreeStorage], amount: Amount) -> Ints:
    """How much can be provisioned on each node, bytes, shape [capacity]; `NONE` where nothing can.

    `amount`: what one object says of it; of several that select a node the one that says the most counts.
    """
    rows = np.flatnonzero(cluster.present)
    found: Ints = np.full(cluster.capacity, NONE, dtype=np.int64)
    by_labels: dict[_Keys, list[FreeStorage]] = {}
    for each in free:
        if (keys := _equal_labels(each.nodes)) is not None:
            by_labels.setdefault(keys, []).append(each)
        else:
            selected = rows[term_holds(cluster, Term(each.nodes), rows)] if each.nodes else rows
            found[selected] = np.maximum(found[selected], amount(each))
    for keys, alike in by_labels.items():
        by_codes = dict(_by_codes(cluster, keys, alike, amount))
        columns = [cluster.labels.column(key)[rows].tolist() for key in keys]
        most = [by_codes.get(codes, NONE) for codes in zip(*columns, strict=True)]
        found[rows] = np.maximum(found[rows], most)
    return found


def _by_codes(
    cluster: Cluster, keys: _Keys, free: Iterable[FreeStorage], amount: Amount
) -> Iterator[tuple[_Codes, int]]:
    """The most by the codes of values of these labels; values that no node has are left out."""
    known = [cluster.labels.codes(key) for key in keys]
    for each in sorted(free, key=amount):  # the largest remains
        values = {one.key: one.values[0] for one in each.nodes}
        if all(values[key] in codes for key, codes in zip(keys, known, strict=True)):
            yield tuple(codes[values[key]] for key, codes in zip(keys, known, strict=True)), amount(each)


def _equal_labels(nodes: tuple[Requirement, ...]) -> _Keys | None:
    """The labels of a selector that requires one value of each; None for another."""
    keys = tuple(sorted({each.key for each in nodes}))
    is_plain = all(each.op == "In" and len(each.values) == 1 for each in nodes)
    return keys if keys and is_plain and len(keys) == len(nodes) else None


ANY, MORE = -1, np.iinfo(np.int64).max  # free storage that is enough: none need be known; more than there is
MAX_FOLLOWED = 64  # changed volumes; after more it costs less to start over

Used = dict[str, NDArray[np.int64]]
"""StorageClass -> how many volumes of each of its pairs the claims before have got."""


class VolumeMatching:
    """Questions about the volumes that there are now.

    What they share is kept until it is said to have changed: `forget_nodes`, `follow_volumes`.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._storage = cluster.volumes.storage
        self._rows = Memo(self._rows_of)  # of nodes on which at least one of the terms holds; None: all
        self._candidates: Memo[str, Candidates] = Memo(  # by StorageClass
            lambda name: Candidates(self._storage.available(name), self._rows.__getitem__)
        )
        self._most_free: dict[str, dict[Amount, Ints]] = {}  # by StorageClass
        # StorageClass -> the least free storage that is enough, bytes -> where a volume can be made.
        self._provisioned: dict[str, dict[int, Places]] = {}

    def is_of(self, cluster: Cluster) -> bool:
        """Whether it answers for this cluster, which may be a copy of another one."""
        return self._cluster is cluster

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

    def scores(self, claims: Sequence[UnboundClaim]) -> Ints:
        """VolumeBinding's score of the rows on which `where` is true, shape [capacity].

        As in kube-scheduler what would be provisioned counts only where no claim gets a volume.
        """
        shape = (2, self._cluster.capacity)  # what is requested, and what there is
        used = Used()
        chosen, made = (defaultdict[str, Ints](lambda: np.zeros(shape, dtype=np.int64)) for _ in range(2))
        for claim in sorted(claims, key=lambda each: not each.selected_node):
            size, lacks = min(claim.size, EXACT), np.ones(shape[1], dtype=bool)
            for rows, sizes in self._chosen(claim, used):
                chosen[claim.storage_class][0, rows] += size
                chosen[claim.storage_class][1, rows] += sizes
                lacks[rows] = False
            storage_class = self._storage.classes.get(claim.storage_class)
            free = self._most_free_of(storage_class, TOTAL) if storage_class and size else None
            if free is not None:
                made[claim.storage_class][0, lacks] += size
                made[claim.storage_class][1] = free
        has_any = np.any([each[0] > 0 for each in chosen.values()], axis=0) if chosen else False
        by_volumes, by_free = (volume_binding(each.values(), shape[1]) for each in (chosen, made))
        return np.where(has_any, by_volumes, by_free)

    def _chosen(self, claim: UnboundClaim, used: Used) -> Iterator[tuple[Rows, Ints | int]]:
        """The rows on which the claim gets a volume that there is, and the sizes of these."""
        node, volume = self._decided(claim)
        if volume:
            reserved = self._storage.volumes.get(volume)
            if reserved is not None:
                yield self._rows[reserved.affinity], min(reserved.size, EXACT)
        elif not node:
            candidates = self._candidates[claim.storage_class]
            pairs = self._assign(candidates, claim, np.arange(len(candidates.rows)), used)
            yield candidates.rows[pairs], candidates.sizes[candidates.groups[pairs]]

    def forget_nodes(self) -> None:
        """Nodes have come, gone or changed."""
        self._rows.clear()
        self._candidates.clear()
        self._most_free.clear()
        self._provisioned.clear()

    def follow_volumes(self, classes: Iterable[str], volumes: Collection[str]) -> None:
        """Of these StorageClasses free storage has changed, or free volumes, only those of these names."""
        for storage_class in classes:
            self._most_free.pop(storage_class, None)
            self._provisioned.pop(storage_class, None)
            candidates = self._candidates.get(storage_class)
            if candidates is None:
                continue
            now = ((name, self._storage.available_volume(storage_class, name)) for name in sorted(volumes))
            if len(volumes) > MAX_FOLLOWED or not all(candidates.set(*each) for each in now):
                del self._candidates[storage_class]

    def plan(self, claims: Sequence[UnboundClaim], row: int) -> list[str]:
        """The volume of each claim on a row for which `where` is true; empty: one that is provisioned."""
        used, names = Used(), list[str]()
        for claim in claims:
            node, volume = self._decided(claim)
            names.append(volume if node or volume else self._best(claim, row, used))
        return names

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
        candidates = self._candidates[claim.storage_class]
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
        candidates = self._candidates[claim.storage_class]
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

    def _provisionable(self, claim: UnboundClaim) -> Places:
        """Where a volume can be made for the claim; shared."""
        storage_class = self._storage.classes.get(claim.storage_class)
        if storage_class is None or not storage_class.provisions:
            known = self._provisioned.setdefault("", {})
            return known.setdefault(ANY, Places(self._nowhere(), self._nowhere()))
        largest = self._most_free_of(storage_class, LARGEST) if claim.size else None
        enough = ANY if largest is None else int(largest.min(where=largest >= claim.size, initial=MORE))
        known = self._provisioned.setdefault(storage_class.name, {})
        if enough not in known:
            reachable = self._reachable(storage_class.topologies or None)
            has_enough = np.ones_like(reachable) if largest is None else largest >= claim.size
            known[enough] = Places(reachable & has_enough, reachable & ~has_enough)
        return known[enough]

    def _most_free_of(self, storage_class: StorageClass, amount: Amount) -> Ints | None:
        """None where the driver does not say what is free."""
        free = self._storage.free_storage(storage_class)
        if free is None:
            return None
        known = self._most_free.setdefault(storage_class.name, {})
        if amount not in known:
            known[amount] = most_free(self._cluster, free, amount)
        return known[amount]

    def _reachable(self, terms: tuple[Term, ...] | None) -> Mask:
        reachable = self._nowhere()
        reachable[self._rows[terms]] = True
        return reachable

    def _rows_of(self, terms: tuple[Term, ...] | None) -> Rows:
        rows = np.flatnonzero(self._cluster.present)
        return rows if terms is None else rows[any_term_holds(self._cluster, terms, rows)]

    def _nowhere(self) -> Mask:
        return np.zeros(self._cluster.capacity, dtype=bool)


MAX_UNUSED = 64  # kept although no pod waits for them: pods of a StatefulSet come one after the other

Unbound = tuple[UnboundClaim, ...]


class Reaches:
    """A number for each different tuple of claims; a number is never given twice."""

    def __init__(self, cluster: Cluster) -> None:
        self.matching = cluster.volumes.matching = VolumeMatching(cluster)
        self._cluster = cluster
        self._numbers: dict[Unbound, int] = {}
        self._pods: dict[int, int] = {}  # number -> pods that wait
        self._unused: dict[int, None] = {}  # numbers for which no pod waits, the eldest first
        self._next = 0
        self._stale: set[int] = set()  # numbers of masks that are to be evaluated again
        self._shape = -1  # cursor of the nodes as they were last seen
        self.evaluated = 0  # masks, in all; each is a computation over all nodes

    def __len__(self) -> int:
        """Masks that are kept."""
        return len(self._cluster.volumes.reach)

    def hold(self, claims: Unbound) -> int:
        """A pod with these claims waits; returns the number under which the cluster keeps its reach."""
        number = self._numbers.get(claims)
        if number is None:
            self._follow()
            number = self._numbers[claims] = self._next
            self._next += 1
            self._cluster.volumes.reach[number] = Reach(claims, self.matching.where(claims))
        elif number in self._unused:
            del self._unused[number]
            self._follow()
            if number in self._stale:  # a pod waits for this again, after a time in which none has
                self._evaluate(number)
                self._make_known(self._cluster.volumes.reach[number])
        self._pods[number] = self._pods.get(number, 0) + 1
        return number

    def release(self, number: int) -> None:
        """One pod fewer waits with these claims."""
        self._pods[number] -= 1
        if self._pods[number]:
            return
        del self._pods[number]
        self._unused[number] = None
        if len(self._unused) > MAX_UNUSED:
            eldest = next(iter(self._unused))
            del self._unused[eldest]
            del self._numbers[self._cluster.volumes.reach.pop(eldest).claims]
            self._stale.discard(eldest)

    def follow_events(self) -> None:
        """After the events of a step: which nodes are feasible now by the volumes that there are."""
        self.follow_bind()  # a bind of the last cycle may have been refused
        for reach in self._cluster.volumes.reach.values():
            self._make_known(reach)

    def follow_bind(self) -> None:
        """After volumes have changed, or one has been chosen within a cycle: where pods fit now.

        What no pod waits for stays as it was until one does: free storage may change many times a second.
        """
        self._follow()
        for number in sorted(self._stale & self._pods.keys()):
            self._evaluate(number)

    def _evaluate(self, number: int) -> None:
        self._stale.discard(number)
        self.evaluated += 1
        reach = self._cluster.volumes.reach[number]
        before, reach.now = reach.now, self.matching.where(reach.claims)
        reach.version += 1
        for row in np.flatnonzero(reach.now.gets != before.gets).tolist():
            self._cluster.usage.record(row)

    def _make_known(self, reach: Reach) -> None:
        if reach.now is reach.known:
            return
        shape = self._cluster.shape
        for row in np.flatnonzero(reach.now.gets != reach.known.gets).tolist():
            shape.record(row)
        reach.known = reach.now
        self._shape = shape.head  # what has just been recorded is no change of a node

    def _follow(self) -> None:
        """Find out which masks are to be evaluated again; the matching knows of all changes from now on."""
        moved, reach = self._cluster.volumes.storage.take_moved(), self._cluster.volumes.reach
        self.matching.follow_volumes(moved.classes, moved.volumes)
        if self._shape != self._cluster.shape.head:
            self._shape = self._cluster.shape.head
            self.matching.forget_nodes()
            self._stale.update(reach)
        elif any(moved):
            self._stale.update(number for number, each in reach.items() if _concerns(moved, each))


def _concerns(moved: Moved, reach: Reach) -> bool:
    return any(
        claim.storage_class in moved.classes or claim.volume in moved.volumes or claim.shared in moved.claims
        for claim in reach.claims
    )


def storage_scores(cluster: Cluster, spec: Spec) -> Ints:
    """VolumeBinding's score of each row, for a pod with unbound claims."""
    matching = cluster.volumes.matching
    if not isinstance(matching, VolumeMatching) or not matching.is_of(cluster):  # this is a copy
        matching = VolumeMatching(cluster)
    return matching.scores(spec.volumes.unbound)


def storage_version(cluster: Cluster, spec: Spec) -> int:
    """Another number when these scores may be others; 0 for a pod that has none."""
    reach = cluster.volumes.reach.get(spec.volumes.reach)
    return 0 if reach is None else 1 + reach.version


_PLUGINS: Sequence[tuple[Rule, ...]] = (
    (volumes.VOLUME_RESTRICTIONS,),
    (volumes.DRIVERS,),
    (volumes.VOLUME_LIMITS,),
    (volumes.BOUND, volumes.UNBOUND_NOW, volumes.STORAGE_NOW),
    (volumes.VOLUME_ZONE,),
)
VOLUME_RULES = tuple(rule for rules in _PLUGINS for rule in rules)


def _asked(spec: Spec) -> Iterator[list[Rule]]:
    """By plugin the rules that apply; what several drivers ask for, a rule for each, one after the other."""
    for rules in _PLUGINS:
        if volumes.DRIVERS in rules:
            yield from ([volumes.of_driver(driver)] for driver in spec.volumes.drivers)
        elif asked := [rule for rule in rules if rule.applies(spec)]:
            yield asked


def volume_refusals(
    spec: Spec, cluster: Cluster, rows: Rows
) -> Iterator[tuple[str, list[tuple[str, int]], Rows]]:
    """By plugin that reads something of the pod: its name, reasons with counts of nodes, the rows left."""
    for asked in _asked(spec):
        passing, refused = np.ones(len(rows), dtype=bool), list[tuple[str, int]]()
        for rule in asked if len(rows) else ():
            holds = rule.holds(cluster, spec, rows)
            refused.append((rule.reason, len(rows) - int(np.count_nonzero(holds))))
            passing &= holds
        rows = rows[passing]
        yield asked[0].plugin, refused, rows


def volume_reasons_without(
    spec: Spec, cluster: Cluster, row: int, removed: Collection[Task]
) -> tuple[str, ...]:
    """Those of the first plugin that refuses a row without these of its pods; empty if none does."""
    for asked in _asked(spec):
        refused = tuple(rule.reason for rule in asked if not rule.holds_without(cluster, spec, row, removed))
        if refused:
            return refused
    return ()
