"""Which nodes are asked: draws with replacement, of those that a task may run on.

The query rule is one half of a choice by sampling, the assignment rule (compare.py) the other: to use
speeds in both is worth more than in either alone (Gardner and others, 2021). A node that is believed to do no
work is never drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from eclectus.cluster.changelog import Rows
from eclectus.framework import Speeds
from eclectus.maths.sampling import draw_marked, draws_proportional

Query = Callable[[Random, Rows, Speeds, int], list[int]]
"""query(rng, rows, speeds, count): so many of `rows`; none where none of them does any work."""


def proportional(rng: Random, rows: Rows, speeds: Speeds, count: int) -> list[int]:
    """With a probability in proportion to the rate of this work, the paper's."""
    return draws_proportional(rng, rows, speeds.rate, speeds.most, count)


def uniform(rng: Random, rows: Rows, speeds: Speeds, count: int) -> list[int]:
    """Each with the same probability."""
    works = speeds.rate > 0.0
    drawn = (draw_marked(rng, rows, works) for _ in range(count))
    return [row for row in drawn if row is not None]


QUERIES: dict[str, Query] = {"proportional": proportional, "uniform": uniform}
