"""Types of settings that several policies have, each with its explanation."""

from __future__ import annotations

from typing import Annotated, Literal

from eclectus.framework import PlaceTraits, Setting

Queue = Annotated[
    Literal["central", "lines"],
    Setting(
        "where a task waits: in one central queue until a node has room, or in the node queue (line) of a "
        "node chosen on arrival",
        why="a central queue never leaves a node idle while tasks wait that fit there; the papers analyse "
        "node queues",
    ),
]
TRAITS_BY_QUEUE = {"central": PlaceTraits(), "lines": PlaceTraits(joins_node_queues=True)}
Ratio = Annotated[
    float,
    Setting(
        "reservations for each task of a job",
        why="2 in all published simulations; more gains little",
        least=1,
        most=100,
    ),
]
Distinct = Annotated[
    bool,
    Setting(
        "draw different nodes for the reservations of a job",
        why="Sparrow's daemon draws different nodes; the published simulators draw with replacement",
    ),
]
