"""The moves of pods between places, as they happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eclectus.engine.places import Places, PodPlace

Move = tuple[PodPlace | None, PodPlace | None]


@contextmanager
def walked_moves() -> Iterator[set[Move]]:
    """Every move of every engine meanwhile."""
    moves: set[Move] = set()
    move, forget = Places.move, Places.forget

    def noted_move(places: Places, uid: str, place: PodPlace, handle: Any = None) -> None:
        moves.add((places.of(uid), place))
        move(places, uid, place, handle)

    def noted_forget(places: Places, uid: str) -> None:
        if places.of(uid) is not None:
            moves.add((places.of(uid), None))
        forget(places, uid)

    Places.move, Places.forget = noted_move, noted_forget  # type: ignore[method-assign]
    try:
        yield moves
    finally:
        Places.move, Places.forget = move, forget  # type: ignore[method-assign]
