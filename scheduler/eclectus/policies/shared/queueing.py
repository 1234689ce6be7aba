"""Where a task waits: a setting that several policies share."""

from __future__ import annotations

from typing import Annotated, Literal

from eclectus.model.settings import Setting

Queue = Annotated[
    Literal["central", "lines"],
    Setting(
        "where a task waits: centrally for a node with room, or in the line of a node chosen on arrival",
        why="central never leaves a node idle beside work; lines are what the papers analyse",
    ),
]
