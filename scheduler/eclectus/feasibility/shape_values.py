"""One value for each node, of what depends on its shape alone: allocatable, labels, taints, cordon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only

Item = TypeVar("Item", bound=np.generic)


class ShapeValues(Generic[Item]):
    """An array over nodes that follows the change log `shape`. Classes share it, and each may refresh it.

    `evaluate(rows)`: the values of these rows, shape [len(rows)]; all rows at once are a slice. Where there
    has been no node the value is 0.
    """

    def __init__(
        self, cluster: Cluster, item: type[Item], evaluate: Callable[[AnyRows], NDArray[Item]]
    ) -> None:
        self._cluster = cluster
        self._evaluate: Callable[[AnyRows], NDArray[Item]] = evaluate
        self._cursor = -1
        self._values: NDArray[Item] = np.zeros(0, dtype=item)
        self._view = self._values
        self.refresh()

    def refresh(self) -> NDArray[Item]:
        """The values, up to date, shape [capacity], read-only; replaced when the cluster's arrays are."""
        shape = self._cluster.shape
        if self._cursor != shape.head:
            changed = shape.since(self._cursor)
            self._cursor = shape.head
            if changed is None:
                self._start_over()
            else:
                rows = np.array(changed, dtype=np.intp)
                self._values[rows] = self._evaluate(rows)
        return self._view

    def _start_over(self) -> None:
        capacity, rows = self._cluster.capacity, slice(len(self._cluster.names))
        if len(self._values) != capacity:
            self._values = np.zeros(capacity, dtype=self._values.dtype)
            self._view = read_only(self._values)
        self._values[rows] = self._evaluate(rows)
