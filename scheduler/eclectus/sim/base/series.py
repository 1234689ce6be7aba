"""Samples at equal intervals over a run of unknown length, bounded in number."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Series(Generic[T]):
    """Holds between `most` and 2 * `most` samples once the run is long enough.

    At 2 * `most` samples every other one is dropped and the interval doubles.
    """

    __slots__ = ("due", "every", "items", "most")

    def __init__(self, every: float, most: int) -> None:
        self.every, self.most = every, most
        self.due = every  # time of the next sample
        self.items: list[T] = []

    def add(self, item: T) -> None:
        """Add the sample taken at `due`."""
        self.items.append(item)
        if len(self.items) == 2 * self.most:
            del self.items[::2]
            self.every *= 2
        self.due += self.every
