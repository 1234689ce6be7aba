"""What is reckoned once a key and then kept: a dict that fills itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

MAX_KEYS = 10_000  # a cluster has a few hundred kinds of pods; this bounds a hostile one

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(dict[K, V]):
    """`reckoned[key]` is `reckon(key)`, until it is cleared."""

    def __init__(self, reckon: Callable[[K], V]) -> None:
        super().__init__()
        self._compute = reckon

    def __missing__(self, key: K) -> V:
        value = self._compute(key)
        if len(self) >= MAX_KEYS:
            self.clear()
        self[key] = value
        return value
