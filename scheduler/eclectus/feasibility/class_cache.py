"""The task classes in use; those that nothing has asked for lately are dropped when others need memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.parts import Parts
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec
from eclectus.model.reservation import ClassKey

MIB = 2**20
FREE_BYTES = 128 * MIB  # up to which no class is dropped: 380 on 5,000 nodes, 600 that differ in preferences
MAX_BYTES = 512 * MIB  # of all classes: on 15,000 nodes 1,300 that differ in preferences
CLASS_BYTES = 16  # of a class for each row beside its parts: two rankings


class ClassCache:
    """Task classes by spec and workload.

    A class that is dropped is made again when it is needed. Those used in this or the last cycle are kept
    while they need less than `max_bytes`; of the others, those used last, as far as `FREE_BYTES` suffice. So
    the number of classes follows what waits. Many are dropped at a time, because each time all are sorted.
    """

    def __init__(self, cluster: Cluster, max_bytes: int = MAX_BYTES) -> None:
        self.cluster = cluster
        self._cycle = 0  # number of the scheduling cycle
        self._max_bytes, self._free_bytes = max_bytes, min(FREE_BYTES, max_bytes // 4)
        self._limit = self._free_bytes
        self._parts = Parts(cluster)
        self._classes: dict[ClassKey, TaskClass] = {}

    def begin_cycle(self) -> None:
        """A scheduling cycle begins: what it asks for is newer than what the one before has asked for."""
        self._cycle += 1

    def current(self, spec: Spec, workload: str) -> TaskClass:
        """The class of these tasks, up to date."""
        key = (spec, workload)
        found = self._classes.get(key)
        if found is None:
            if self._bytes() >= self._limit:
                self._make_room()
            found = self._classes[key] = TaskClass(self.cluster, spec, workload, self._parts)
        else:
            found.refresh()
        found.last_used = self._cycle
        return found

    def cached(self, key: ClassKey) -> TaskClass:
        """The class, perhaps not up to date: enough for `fits_beside_held` and `may_wait`."""
        return self._classes.get(key) or self.current(*key)

    def recheck(self, spec: Spec, workload: str) -> bool:
        """Whether a class made afresh agrees with the cached one; if not, all are made again. O(rows)."""
        cached, fresh = self.current(spec, workload), TaskClass(self.cluster, spec, workload)
        if np.array_equal(cached.fits_now, fresh.fits_now) and np.array_equal(
            cached.feasible, fresh.feasible
        ):
            return True
        self._parts = Parts(self.cluster)  # the defect may be in a part that others share
        self._drop(list(self._classes))
        return False

    def __len__(self) -> int:
        return len(self._classes)

    # -- memory --------------------------------------------------------------------------------

    def _bytes(self) -> int:
        return self.cluster.capacity * (len(self._classes) * CLASS_BYTES + self._parts.bytes_per_node)

    def _make_room(self) -> None:
        in_use = sum(each.last_used >= self._cycle - 1 for each in self._classes.values())
        self._keep_newest(max(in_use, len(self) * self._free_bytes // (2 * self._bytes())))
        if self._bytes() >= self._max_bytes:
            self._keep_newest(len(self) // 2)
        needed = self._bytes()
        limit = min(max(2 * needed, self._free_bytes), self._max_bytes)
        self._limit = max(limit, needed + needed // 8)  # what somebody still holds is not freed

    def _keep_newest(self, count: int) -> None:
        by_age = sorted(self._classes, key=lambda key: self._classes[key].last_used)
        self._drop(by_age[: max(len(by_age) - count, 0)])

    def _drop(self, keys: Iterable[ClassKey]) -> None:
        for key in keys:
            self._classes.pop(key).derived.clear()  # a ranking refers to its class: this frees both at once
