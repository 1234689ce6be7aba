"""No learning: every node counts as equally fast.

The baseline, and the assumption of schedulers that do not measure speeds.
"""

from dataclasses import dataclass

import numpy as np

from eclectus.cluster.scalars import read_only
from eclectus.framework import Learn, Speeds


@dataclass(eq=False)
class Unlearned(Learn):
    """Every node is equally fast."""

    def __post_init__(self) -> None:
        self._speeds = Speeds(read_only(np.ones(0)), 1.0, 0)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """Extend the array to the cluster's length."""
        if len(self._speeds.rate) < capacity:
            self._speeds = Speeds(read_only(np.ones(capacity)), 1.0, self._speeds.epoch + 1)

    def speeds(self, workload: str) -> Speeds:
        """One task a second in each slot of every node."""
        return self._speeds
