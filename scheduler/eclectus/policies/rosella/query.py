"""Which nodes are asked: draws of one node, of those that a task may run on.

The query rule is one half of a choice by sampling, the assignment rule (compare.py) the other: to use
speeds in both is worth more than in either alone (Gardner and others, 2021). A node that is believed to do no
work is never drawn.
"""

from __future__ import annotations

from collections.abc import Callable

from eclectus.core.journal import Rows
from eclectus.core.seam import View
from eclectus.feasibility.classes import TaskClass
from eclectus.maths.sampling import draw_marked, draw_proportional

Query = Callable[[View, TaskClass, Rows], int | None]
"""query(view, task_class, rows): one of `rows`; None where none of them does any work."""


def proportional(view: View, task_class: TaskClass, rows: Rows) -> int | None:
    """With a probability in proportion to the rate of this work, the paper's."""
    speeds = view.speeds(task_class)
    return draw_proportional(view.rng, rows, speeds.rate, speeds.most)


def uniform(view: View, task_class: TaskClass, rows: Rows) -> int | None:
    """Each with the same probability."""
    return draw_marked(view.rng, rows, view.speeds(task_class).rate > 0.0)


QUERIES: dict[str, Query] = {"proportional": proportional, "uniform": uniform}
