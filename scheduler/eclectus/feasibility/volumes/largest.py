"""The largest volume that can be provisioned on each node, by what a CSI driver publishes of free storage.

As in kube-scheduler's VolumeBinding a node has room for a volume if one CSIStorageCapacity of the
StorageClass that selects the node allows it. A driver of local disks publishes one for each node, so most
select nodes by equal labels: these are found by the values of a node, others are compared with all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.scores.whole import Ints
from eclectus.model.objects import Requirement, Term
from eclectus.model.volumes import FreeStorage, StorageClass

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
