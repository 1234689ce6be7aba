"""Values that are kept for a while, and not more than so many."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Key -> value for `seconds` after it was put; of more than `most` the oldest are forgotten."""

    def __init__(self, seconds: float, most: int, now: Callable[[], float]) -> None:
        self._seconds, self._most, self._now = seconds, most, now
        self._kept: dict[Key, tuple[float, Value]] = {}  # in the order in which they end

    def get(self, key: Key) -> Value | None:
        """The value; None if it was not put or its time is over."""
        until, value = self._kept.get(key, (0.0, None))
        return value if self._now() < until else None

    def put(self, key: Key, value: Value) -> None:
        """Keep the value from now on."""
        self._kept.pop(key, None)
        self._kept[key] = self._now() + self._seconds, value
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    def __len__(self) -> int:
        return len(self._kept)
