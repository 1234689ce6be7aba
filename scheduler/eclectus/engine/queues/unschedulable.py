"""Unschedulable classes: which of them may have got room by what has changed in the cluster.

Evaluating every unschedulable class after every change would cost classes times changes. Here each changed
row is compared with all classes at once: whether a class is feasible there (one bit for each class and
row), and whether the node has left what the class demands (one array operation). Only classes that pass are
evaluated exactly. The others have got no room, because a class gets room only on a row that has changed,
or, with a rule about other pods, where such a pod has come or left (PodRuleFollowers). kube-scheduler's
counterpart: unschedulablePods, and the QueueingHints of its plugins.

A pod that has come or left may open a topology domain on whose nodes nothing else has changed. An index of
the selectors of all classes with such rules finds those that count the pod, so that others cost nothing. A
changed node may be a new domain, or the end of one, and concerns them all.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.alike_pods import TermIndex
from eclectus.cluster.changelog import Rows
from eclectus.cluster.memo import unfile
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.static_rules import evaluation, static_part
from eclectus.feasibility.task_class import ClassCache, TaskClass
from eclectus.model.objects import ClassKey, PodAffinityTerm, Spec

MIN_SLOTS = 16
ROWS_AT_ONCE = 1024  # bounds the memory of an evaluation of all rows


class UnschedulableClasses:
    """Classes of which no task can be placed until the cluster changes; each has a slot in the arrays.

    `_demand` [slots, columns]: what a task of the class demands, -inf of a resource that it does not request,
    inf of all if it requests one that no node offers.
    `_feasible` [rows / 8, slots]: a bit for each row, whether the class is feasible there.
    `_never` [slots]: whether the class was feasible on no node, however empty, when it was added.
    """

    def __init__(self, classes: ClassCache) -> None:
        self._classes = classes
        self._cluster = classes.cluster
        self._slots: dict[ClassKey, int] = {}
        self._keys: dict[int, ClassKey] = {}
        # By slot: the spec without the fields that no static rule reads, and what evaluates it on rows.
        self._static: dict[int, tuple[Spec, Callable[[Rows], Mask]]] = {}
        self._refused: set[ClassKey] = set()  # with room on a node: a policy has refused them all the same
        self._followers = PodRuleFollowers(self._cluster)
        self._free: list[int] = []
        self._demand: NDArray[np.float64] = np.empty((0, 0))
        self._feasible: NDArray[np.uint8] = np.empty((0, 0), dtype=np.uint8)
        self._never: NDArray[np.bool_] = np.empty(0, dtype=bool)
        self._grow(MIN_SLOTS)

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, key: ClassKey) -> None:
        """Tasks of the class cannot be placed now."""
        if not self._slots:
            self._move_cursors()  # earlier changes concern no class
        task_class, slot = self._classes.current(*key), self._slots.get(key)
        if slot is None:
            if not self._free:
                self._grow(2 * len(self._demand))
            slot = self._slots[key] = self._free.pop()
            self._keys[slot] = key
            part = static_part(key[0])
            self._static[slot] = part, evaluation(self._cluster, part)
            self._followers.add(key)
            self._never[slot] = not task_class.feasible_count
        elif not task_class.fits_now_count and key not in self._refused:
            return  # another queue of the class is unschedulable already
        self._write(slot, task_class)

    def discard(self, key: ClassKey) -> None:
        """The class is not unschedulable any more; no error if it was not."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        del self._keys[slot], self._static[slot]
        self._never[slot] = False
        self._refused.discard(key)
        self._followers.discard(key)
        self._feasible[:, slot] = 0
        self._free.append(slot)

    def feasible_among(self, key: ClassKey, rows: Rows) -> Rows:
        """Those of the rows on which the class is feasible; all of them if it is not unschedulable."""
        slot = self._slots.get(key)
        return rows if slot is None else rows[(self._feasible[rows >> 3, slot] & (1 << (rows & 7))) != 0]

    def with_room(self) -> list[ClassKey]:
        """The classes that fit on a node now, and those of which another thing is to be said than before.

        These were feasible nowhere and are feasible on a node now, or the other way round. They stay
        unschedulable until they are discarded.
        """
        if not self._slots:
            return []
        cluster = self._cluster
        reshaped: Sequence[int] | None = cluster.shape.since(self._shape_cursor)
        used = cluster.usage.since(self._usage_cursor)
        beside = self._followers.affected()
        self._move_cursors()
        self._match_cluster()
        every_row = range(cluster.capacity)
        reshaped = every_row if reshaped is None else reshaped
        left = np.zeros(len(self._demand), dtype=bool)  # slots that are feasible on fewer nodes now
        for begin in range(0, len(reshaped), ROWS_AT_ONCE):
            left |= self._update_feasible(np.array(reshaped[begin : begin + ROWS_AT_ONCE], dtype=np.intp))
        rows = every_row if used is None else sorted({*reshaped, *used})
        nowhere = (slot for slot in np.flatnonzero(left & ~self._never) if not self._feasible[:, slot].any())
        found = dict.fromkeys((*self._may_have_room(rows), *beside, *(self._keys[int(at)] for at in nowhere)))
        return [key for key in found if self._has_room(key)]

    def _may_have_room(self, rows: Iterable[int]) -> list[ClassKey]:
        cluster, found = self._cluster, dict.fromkeys(self._refused)
        for row in rows:
            slots = np.flatnonzero(self._feasible[row >> 3] & (1 << (row & 7)))
            if not len(slots):
                continue
            taken = cluster.used[row] + cluster.tentative[row]
            fits = (taken + self._demand[slots] <= cluster.allocatable[row]).all(axis=1)
            for slot in slots[fits | self._never[slots]].tolist():
                found[self._keys[slot]] = None
        return list(found)

    def _has_room(self, key: ClassKey) -> bool:
        task_class = self._classes.current(*key)
        if key in self._refused and not task_class.fits_now_count:
            self._write(self._slots[key], task_class)
        is_never = self._never.item(self._slots[key])
        return bool(task_class.fits_now_count) or is_never != (not task_class.feasible_count)

    def _match_cluster(self) -> None:
        """The cluster may have got rows or columns."""
        rows, columns = 8 * len(self._feasible), self._demand.shape[1]
        if rows < self._cluster.capacity or columns < len(self._cluster.columns):
            self._grow(len(self._demand))
            for slot, (spec, _) in self._keys.items():
                self._write_demand(slot, spec)

    def _grow(self, slots: int) -> None:
        """Make the arrays as large as the cluster's; a new row is feasible for no class until it changes."""
        demand = np.full((slots, len(self._cluster.columns)), -np.inf)
        feasible = np.zeros((-(-self._cluster.capacity // 8), slots), dtype=np.uint8)
        had = len(self._demand)
        demand[:had, : self._demand.shape[1]] = self._demand
        feasible[: len(self._feasible), :had] = self._feasible
        self._demand, self._feasible = demand, feasible
        self._never = np.pad(self._never, (0, slots - had))
        self._free.extend(reversed(range(had, slots)))

    def _write(self, slot: int, task_class: TaskClass) -> None:
        key: ClassKey = (task_class.spec, task_class.workload)
        if task_class.fits_now_count:
            self._refused.add(key)
        else:
            self._refused.discard(key)
        self._match_cluster()
        self._write_demand(slot, task_class.spec)
        self._feasible[:, slot] = np.packbits(task_class.feasible, bitorder="little")

    def _write_demand(self, slot: int, spec: Spec) -> None:
        demand = self._demand[slot]
        demand[:] = -np.inf
        for column, amount in self._cluster.parts(spec.requests):
            demand[column] = amount
        if self._cluster.not_offered(spec.requests):
            demand[:] = np.inf

    def _update_feasible(self, rows: Rows) -> NDArray[np.bool_]:
        """Nodes on these rows have come, gone or changed; slots that are feasible on one of them no more."""
        left = np.zeros(len(self._demand), dtype=np.uint8)
        holds = np.zeros((len(self._demand), len(rows)), dtype=bool)
        evaluated: dict[Spec, Mask] = {}
        for slot, (part, rules_hold) in self._static.items():
            found = evaluated.get(part)
            if found is None:
                found = evaluated[part] = rules_hold(rows)
            holds[slot] = found
        for at, row in enumerate(rows.tolist()):
            is_feasible = holds[:, at] & (self._demand <= self._cluster.allocatable[row]).all(axis=1)
            bit = np.uint8(1 << (row & 7))
            byte = self._feasible[row >> 3]
            left |= np.where(is_feasible, 0, byte & bit)
            self._feasible[row >> 3] = np.where(is_feasible, byte | bit, byte & ~bit)
        return left.astype(bool)

    def _move_cursors(self) -> None:
        self._followers.skip_changes()
        self._shape_cursor, self._usage_cursor = self._cluster.shape.head, self._cluster.usage.head


Keys = dict[ClassKey, None]  # as an ordered set


class PodRuleFollowers:
    """Classes, and which pods their rules are about."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._classes: Keys = {}
        self._index = TermIndex()
        self._counting: dict[PodAffinityTerm, Keys] = {}  # by a term that matches the pods that count
        self._kept_away: dict[PodAffinityTerm, Keys] = {}  # by a term that the pods that count have
        self._pods_cursor = self._shape_cursor = 0

    def add(self, key: ClassKey) -> None:
        """The class is unschedulable; no effect if it has no such rules."""
        if not key[0].has_pod_rules:
            return
        self._classes[key] = None
        for term in _counted(key[0]):
            if term not in self._counting:
                self._index.add(term)
            self._counting.setdefault(term, {})[key] = None
        for term in key[0].matched_terms:
            self._kept_away.setdefault(term, {})[key] = None

    def discard(self, key: ClassKey) -> None:
        """The class is not unschedulable any more; no error if it was not added."""
        if key not in self._classes:
            return
        del self._classes[key]
        for term in dict.fromkeys(_counted(key[0])):
            unfile(self._counting, term, key)
            if term not in self._counting:
                self._index.discard(term)
        for term in dict.fromkeys(key[0].matched_terms):
            unfile(self._kept_away, term, key)

    def affected(self) -> Collection[ClassKey]:
        """The classes for which a domain may have been opened since the last `skip_changes`."""
        cluster = self._cluster
        if not self._classes:
            return ()
        changes = cluster.pods.changes.entries_since(self._pods_cursor)
        if changes is None or cluster.shape.head != self._shape_cursor:
            return self._classes
        found: Keys = {}
        for group in dict.fromkeys(group for group, _, _ in changes):
            for term in self._index.matching(group.namespace, tuple(group.labels.items())):
                found.update(self._counting[term])
            for term in group.terms:
                found.update(self._kept_away.get(term, {}))
        return found

    def skip_changes(self) -> None:
        """What has changed up to now is known."""
        self._pods_cursor = self._cluster.pods.changes.head
        self._shape_cursor = self._cluster.shape.head


def _counted(spec: Spec) -> Iterator[PodAffinityTerm]:
    """Terms of which one matches every pod that a rule of the class counts."""
    yield from spec.affinity_terms
    yield from spec.own_anti_affinity
    for each in spec.spread:
        if each.selector:
            yield PodAffinityTerm(each.topology_key, each.selector, (each.namespace,))
