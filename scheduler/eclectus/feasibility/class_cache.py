"""The classes that are alive; those longest unasked make way."""

from __future__ import annotations

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec
from eclectus.model.reservation import ClassKey

MAX_CELLS = 8_000_000  # classes times nodes: with rankings about 60 bytes each, so half a gigabyte
MIN_CLASSES = 64


class ClassCache:
    """All classes alive, found by what defines them: the spec and the kind of work."""

    def __init__(self, cluster: Cluster, most_cells: int = MAX_CELLS) -> None:
        self.cluster = cluster
        self.cycle = 0
        self._most_cells = most_cells
        self._classes: dict[ClassKey, TaskClass] = {}

    @property
    def max_classes(self) -> int:
        """How many classes may be kept: beyond it those longest unasked are dropped, to be made again."""
        return max(MIN_CLASSES, self._most_cells // self.cluster.capacity)

    def current(self, spec: Spec, workload: str) -> TaskClass:
        """The class of such tasks, up to date."""
        key = (spec, workload)
        found = self._classes.get(key)
        if found is None:
            if len(self._classes) >= self.max_classes:
                self._evict_oldest()
            found = self._classes[key] = TaskClass(self.cluster, spec, workload)
        else:
            found.refresh()
        found.last_used = self.cycle
        return found

    def cached(self, kind: ClassKey) -> TaskClass:
        """The class, up to date or not: for `fits_now` and `may_wait`."""
        return self._classes.get(kind) or self.current(*kind)

    def recheck(self, spec: Spec, workload: str) -> bool:
        """Whether a fresh look finds what was kept; if not, the fresh look takes its place. O(rows)."""
        kept, fresh = self.current(spec, workload), TaskClass(self.cluster, spec, workload)
        if np.array_equal(kept.fits_now, fresh.fits_now) and np.array_equal(kept.feasible, fresh.feasible):
            return True
        self._classes[spec, workload] = fresh
        return False

    def __len__(self) -> int:
        return len(self._classes)

    def _evict_oldest(self) -> None:
        by_age = sorted(self._classes.items(), key=lambda item: item[1].last_used)
        for key, _ in by_age[: len(by_age) // 2]:
            del self._classes[key]
