"""A series over a run whose length nobody knows: moments at equal distances, and never too many."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Series(Generic[T]):
    """Between `most` and twice as many moments once the run is long enough; before, fewer.

    When it is full every other moment goes, and the distance doubles.
    """

    __slots__ = ("due", "every", "items", "most")

    def __init__(self, every: float, most: int) -> None:
        self.every, self.most = every, most
        self.due = every  # when the next moment is to be added
        self.items: list[T] = []

    def add(self, item: T) -> None:
        """What was seen at `due`."""
        self.items.append(item)
        if len(self.items) == 2 * self.most:
            del self.items[::2]
            self.every *= 2
        self.due += self.every
