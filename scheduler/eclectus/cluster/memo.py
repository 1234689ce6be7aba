"""Dicts with a duty: one that computes a missing value once and keeps it, and indexes of ordered sets."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

MAX_KEYS = 10_000  # a cluster has a few hundred kinds of pods; this bounds the memory if each pod differs

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(dict[K, V]):
    """`memo[key]` is `compute(key)`, computed once until `clear`; cleared when it holds MAX_KEYS keys.

    With `keeps`, a key for which it is false is computed each time: keys without a bound on their size.
    """

    def __init__(self, compute: Callable[[K], V], keeps: Callable[[K], bool] | None = None) -> None:
        super().__init__()
        self._compute = compute
        self._keeps = keeps

    def __missing__(self, key: K) -> V:
        value = self._compute(key)
        if self._keeps is None or self._keeps(key):
            if len(self) >= MAX_KEYS:
                self.clear()
            self[key] = value
        return value


def unfile(index: dict[K, Any], key: K, entry: object) -> None:
    """Remove an entry of a dict of dicts; a key without entries goes with its last one."""
    entries = index[key]
    del entries[entry]
    if not entries:
        del index[key]
