"""The task classes in use; when there are too many, those unused for longest are dropped."""

from __future__ import annotations

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec
from eclectus.model.reservation import ClassKey

MAX_CELLS = 8_000_000  # classes times nodes; about 60 bytes each with rankings, so half a gigabyte
MIN_CLASSES = 64  # kept on any number of nodes


class ClassCache:
    """Task classes by spec and workload."""

    def __init__(self, cluster: Cluster, max_cells: int = MAX_CELLS) -> None:
        self.cluster = cluster
        self.cycle = 0  # number of the scheduling cycle; written by the engine
        self._max_cells = max_cells
        self._classes: dict[ClassKey, TaskClass] = {}

    @property
    def max_classes(self) -> int:
        """How many classes are kept; those dropped are made again when they are needed."""
        return max(MIN_CLASSES, self._max_cells // self.cluster.capacity)

    def current(self, spec: Spec, workload: str) -> TaskClass:
        """The class of these tasks, up to date."""
        key = (spec, workload)
        found = self._classes.get(key)
        if found is None:
            if len(self._classes) >= self.max_classes:
                self._drop_oldest()
            found = self._classes[key] = TaskClass(self.cluster, spec, workload)
        else:
            found.refresh()
        found.last_used = self.cycle
        return found

    def cached(self, key: ClassKey) -> TaskClass:
        """The class, perhaps not up to date: enough for `fits_beside_held` and `may_wait`."""
        return self._classes.get(key) or self.current(*key)

    def recheck(self, spec: Spec, workload: str) -> bool:
        """Whether a class made afresh agrees with the cached one; if not, it replaces it. O(rows)."""
        cached, fresh = self.current(spec, workload), TaskClass(self.cluster, spec, workload)
        if np.array_equal(cached.fits_now, fresh.fits_now) and np.array_equal(
            cached.feasible, fresh.feasible
        ):
            return True
        self._classes[spec, workload] = fresh
        return False

    def __len__(self) -> int:
        return len(self._classes)

    def _drop_oldest(self) -> None:
        """Drop the half of the classes that was unused for longest."""
        by_age = sorted(self._classes.items(), key=lambda item: item[1].last_used)
        for key, _ in by_age[: len(by_age) // 2]:
            del self._classes[key]
