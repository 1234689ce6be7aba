"""The free PersistentVolumes of one StorageClass, in groups of equal ones, with the rows that reach each.

A pair is a group and a row that reaches it. Pairs are sorted by size, so the first pair of a row whose
group matches is the smallest volume that a claim can get there.

How large a volume can be provisioned on each node follows from what a CSI driver publishes of free storage.
As in kube-scheduler's VolumeBinding a node has room for a volume if one CSIStorageCapacity of the
StorageClass that selects the node allows it. A driver of local disks publishes one for each node, so most
select nodes by equal labels: these are found by the values of a node, others are compared with all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.scores import Ints
from eclectus.model.objects import Requirement, Term, UnboundClaim
from eclectus.model.selectors import selects
from eclectus.model.volumes import FreeStorage, StorageClass, Volume

Kind = tuple[object, ...]
MAX_CLAIMS = 64  # whose matching groups are kept
EMPTY_FEW = 64  # groups without a volume, that are kept in any case


class Candidates:
    """`names` [groups] of volumes; `counts` [groups], how many; `rows` and `groups` [pairs].

    A volume that is taken or becomes free again changes its group. Groups may be empty.
    """

    def __init__(self, volumes: Iterable[Volume], rows_of: Callable[[tuple[Term, ...] | None], Rows]) -> None:
        """`rows_of` returns the rows on which at least one of these terms holds."""
        alike: dict[Kind, list[Volume]] = {}
        for volume in volumes:
            alike.setdefault(_kind(volume), []).append(volume)
        ordered = sorted(alike.values(), key=lambda group: group[0].size)
        self._rows_of = rows_of
        self._samples = [group[0] for group in ordered]
        self._numbers = {_kind(sample): number for number, sample in enumerate(self._samples)}
        self.names = [[volume.name for volume in group] for group in ordered]
        self._group_of = {name: number for number, names in enumerate(self.names) for name in names}
        self.counts = np.array([len(group) for group in ordered], dtype=np.int64)
        self._empty = 0
        rows = [rows_of(volume.affinity) for volume in self._samples]
        self.rows = np.concatenate(rows) if rows else np.zeros(0, dtype=np.intp)
        self.groups = np.repeat(np.arange(len(rows)), [len(each) for each in rows])
        self._matching: dict[UnboundClaim, Mask] = {}

    def set(self, name: str, volume: Volume | None) -> bool:
        """The volume of this name is free now, as given, or is not.

        False: this is not followed, and the candidates are no longer valid.
        """
        before = self._group_of.get(name)
        if before is not None:
            self._remove(name, before)
        if volume is None:
            return self._empty <= EMPTY_FEW + len(self.names) // 2
        number = self._numbers.get(_kind(volume))
        if number is None:
            if self._samples and volume.size < self._samples[-1].size:
                return False  # its pairs would have to go before others
            number = self._add_group(volume)
        self._add(name, number)
        return True

    def _add(self, name: str, number: int) -> None:
        self._empty -= not self.names[number]
        self.names[number].append(name)
        self._group_of[name] = number
        self.counts[number] += 1

    def _remove(self, name: str, number: int) -> None:
        self.names[number].remove(name)
        del self._group_of[name]
        self.counts[number] -= 1
        self._empty += not self.names[number]

    def _add_group(self, volume: Volume) -> int:
        """A group without a volume, of volumes like this one; returns its number."""
        number = self._numbers[_kind(volume)] = len(self.names)
        rows = self._rows_of(volume.affinity)
        self._samples.append(volume)
        self.names.append([])
        self._empty += 1
        self.counts = np.append(self.counts, 0)
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
    return fits_claim(volume, claim) and _is_selected(volume, claim)


def _is_selected(volume: Volume, claim: UnboundClaim) -> bool:
    """What is asked of a volume that is not reserved for the claim, besides."""
    if claim.selector is not None and not selects(claim.selector, dict(volume.labels)):
        return False
    return set(claim.access_modes) <= set(volume.access_modes)


def _kind(volume: Volume) -> Kind:
    """Volumes of one kind can replace each other."""
    return (
        volume.size,
        volume.access_modes,
        volume.volume_mode,
        volume.attributes_class,
        volume.labels,
        volume.affinity,
    )


NONE = -1  # no volume, however small

_Keys = tuple[str, ...]
_Codes = tuple[int, ...]  # of the values of these labels


class LargestVolumes:
    """Bytes by StorageClass, kept until they are said to have changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, Ints] = {}

    def of(self, storage_class: StorageClass) -> Ints | None:
        """Bytes, shape [capacity], for reading only; None where the driver does not say what is free."""
        free = self._cluster.volumes.storage.free_storage(storage_class)
        if free is None:
            return None
        found = self._known.get(storage_class.name)
        if found is None:
            found = self._known[storage_class.name] = self._evaluated(free)
        return found

    def forget(self, storage_class: str) -> None:
        """What is said of this StorageClass has changed."""
        self._known.pop(storage_class, None)

    def forget_nodes(self) -> None:
        """Nodes have come, gone or changed."""
        self._known.clear()

    def _evaluated(self, free: Iterable[FreeStorage]) -> Ints:
        rows = np.flatnonzero(self._cluster.present)
        found: Ints = np.full(self._cluster.capacity, NONE, dtype=np.int64)
        by_labels: dict[_Keys, list[FreeStorage]] = {}
        for each in free:
            if (keys := _equal_labels(each.nodes)) is not None:
                by_labels.setdefault(keys, []).append(each)
            else:
                selected = rows[term_holds(self._cluster, Term(each.nodes), rows)] if each.nodes else rows
                found[selected] = np.maximum(found[selected], each.largest)
        for keys, alike in by_labels.items():
            by_codes = dict(self._by_codes(keys, alike))
            largest = [by_codes.get(codes, NONE) for codes in self._codes(keys, rows)]
            found[rows] = np.maximum(found[rows], largest)
        return found

    def _by_codes(self, keys: _Keys, free: Iterable[FreeStorage]) -> Iterator[tuple[_Codes, int]]:
        """The largest volume by the codes of values of these labels; values that no node has are left out."""
        known = [self._cluster.labels.codes(key) for key in keys]
        for each in sorted(free, key=lambda one: one.largest):  # the largest remains
            values = _values(each.nodes)
            if all(values[key] in codes for key, codes in zip(keys, known, strict=True)):
                yield tuple(codes[values[key]] for key, codes in zip(keys, known, strict=True)), each.largest

    def _codes(self, keys: _Keys, rows: Rows) -> Iterator[_Codes]:
        """The codes of the values of these labels, by row."""
        columns = [self._cluster.labels.column(key)[rows].tolist() for key in keys]
        return zip(*columns, strict=True)


def _equal_labels(nodes: tuple[Requirement, ...]) -> _Keys | None:
    """The labels of a selector that requires one value of each; None for another."""
    keys = tuple(sorted({each.key for each in nodes}))
    is_plain = all(each.op == "In" and len(each.values) == 1 for each in nodes)
    return keys if keys and is_plain and len(keys) == len(nodes) else None


def _values(nodes: tuple[Requirement, ...]) -> Mapping[str, str]:
    return {each.key: each.values[0] for each in nodes}
