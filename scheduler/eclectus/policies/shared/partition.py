"""Short and long work, and the nodes that long work leaves alone: what several policies share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.framework import View
from eclectus.model.objects import Task
from eclectus.model.settings import Setting


@dataclass(eq=False)
class CutOff:
    """Who is long."""

    cut_off: Annotated[
        float,
        Setting(
            "a task is long if its estimate is above this; without an estimate it is short",
            unit="s",
            why="the published cut-offs are 77, 91, 273 and 1130 s, by trace; the same in place and line",
            least=0,
        ),
    ] = 90.0

    def is_long(self, task: Task) -> bool:
        """Whether the task counts as long."""
        return task.estimate is not None and task.estimate > self.cut_off


@dataclass(eq=False)
class Partition(CutOff):
    """Where long work may go: the last nodes, in the order in which they were first seen."""

    long_share: Annotated[
        float,
        Setting(
            "share of the nodes that take long tasks; the others are for short ones alone",
            why="published with 0.83 to 0.98, by trace; the same in place and line",
            least=0.01,
            most=1,
        ),
    ] = 0.9

    def rows_for_long(self, view: View, rows: Rows) -> Rows:
        """Those of `rows` that long tasks may use; all, if they may use none of them."""
        chosen = rows[rows >= self._boundary(view)]
        return chosen if len(chosen) else rows

    def rows_for_short_alone(self, view: View, rows: Rows) -> Rows:
        """Those of `rows` that long tasks never use."""
        return rows[rows < self._boundary(view)]

    def _boundary(self, view: View) -> int:
        present = np.flatnonzero(view.cluster.present)
        alone = int((1.0 - self.long_share) * len(present) + 0.5)
        return int(present[alone]) if alone < len(present) else len(view.cluster.present)
