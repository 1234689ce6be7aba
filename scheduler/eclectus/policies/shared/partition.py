"""Short and long tasks, and the partition of the nodes that keeps some of them free of long tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.framework import Rows, Setting, Task, View


@dataclass(eq=False)
class CutOff:
    """Which tasks are long."""

    cut_off: Annotated[
        float,
        Setting(
            "a task is long if its estimate is greater than this; a task without an estimate is short",
            unit="s",
            why="published cut-offs are 77, 91, 273 and 1130 s, by trace; set the same for place and line",
            least=0,
        ),
    ] = 90.0

    def is_long(self, task: Task) -> bool:
        """Whether the task is long."""
        return task.estimate is not None and task.estimate > self.cut_off


@dataclass(eq=False)
class Partition(CutOff):
    """Long tasks may use the last `long_share` of the nodes, in the order of their rows."""

    long_share: Annotated[
        float,
        Setting(
            "share of the nodes that long tasks may use; the other nodes run short tasks only",
            why="published with 0.83 to 0.98, by trace; set the same for place and line",
            least=0.01,
            most=1,
        ),
    ] = 0.9

    def rows_for_long(self, view: View, rows: Rows) -> Rows:
        """Those of `rows` that long tasks may use; all of `rows` if there is none."""
        chosen = rows[rows >= self._boundary(view)]
        return chosen if len(chosen) else rows

    def rows_for_short_alone(self, view: View, rows: Rows) -> Rows:
        """Those of `rows` that run short tasks only."""
        return rows[rows < self._boundary(view)]

    def _boundary(self, view: View) -> int:
        """The first row that long tasks may use."""
        present = np.flatnonzero(view.cluster.present)
        alone = int((1.0 - self.long_share) * len(present) + 0.5)
        return int(present[alone]) if alone < len(present) else len(view.cluster.present)
