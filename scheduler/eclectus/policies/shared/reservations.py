"""Nodes drawn for the reservations of a job: what several policies share."""

from __future__ import annotations

from random import Random
from typing import Annotated

from eclectus.cluster.changelog import Rows
from eclectus.model.settings import Setting

Ratio = Annotated[
    float,
    Setting(
        "reservations a task", why="2 in every published simulation; more gains little", least=1, most=100
    ),
]
Distinct = Annotated[
    bool,
    Setting(
        "draw different nodes for the reservations of a job",
        why="as Sparrow's daemon does; the published simulators draw with replacement",
    ),
]


def draw(rng: Random, rows: Rows, count: int, distinct: bool) -> tuple[int, ...]:
    """So many of `rows` (at least one) at random; distinct ones spread evenly where there are fewer."""
    size = len(rows)
    if not distinct:
        return tuple(int(rows[rng.randrange(size)]) for _ in range(count))
    whole, rest = divmod(count, size)
    return tuple(rows.tolist()) * whole + tuple(int(rows[at]) for at in rng.sample(range(size), rest))
