"""A log of what has changed, rows or groups: what keeps derived values pays for changes only."""

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
AnyRows = Rows | slice
"""Rows, or all of them as a slice, which numpy reads several times as fast."""
FEW = 16  # entries that are sorted for each reader
T = TypeVar("T")
Entry = TypeVar("Entry", int, str)


class EntryLog(Generic[T]):
    """Entries in their order. A reader keeps a cursor and asks for those since then.

    Of more than `max_entries` only the newer half is kept; a reader that is further behind starts over.
    """

    def __init__(self, max_entries: int) -> None:
        self._entries: list[T] = []
        self._base = 0  # cursor of the oldest entry kept
        self.head = 0  # cursor just after the newest entry; written here only
        self._max_entries = max_entries
        self._full_at = max_entries  # cursor just after the last entry for which there is a place

    def allow(self, max_entries: int) -> None:
        """From now on, keep up to so many entries."""
        self._max_entries = max_entries
        self._full_at = self._base + max_entries

    def record(self, entry: T) -> None:
        """This has happened."""
        self._entries.append(entry)
        self.head += 1
        if self.head > self._full_at:
            self.truncate(self._max_entries // 2)

    def record_all(self) -> None:
        """Everything may have changed: every reader starts over."""
        self.head += 1
        self._base, self._full_at = self.head, self.head + self._max_entries
        self._entries.clear()

    def entries_since(self, cursor: int) -> list[T] | None:
        """The entries since `cursor`, in their order; None if the log does not reach back so far."""
        return None if cursor < self._base else self._entries[cursor - self._base :]

    def truncate(self, keep: int) -> None:
        """Keep no more than the newest `keep` entries."""
        dropped = max(len(self._entries) - keep, 0)
        del self._entries[:dropped]
        self._base += dropped
        self._full_at += dropped


class ChangeLog(EntryLog[Entry]):
    """Rows, or names, in the order of their changes. Many readers at one cursor sort them once."""

    def __init__(self, max_entries: int) -> None:
        super().__init__(max_entries)
        self._last: tuple[int, int, list[Entry]] = -1, -1, []  # cursor, head, and what has changed between

    def since(self, cursor: int) -> list[Entry] | None:
        """Those changed since `cursor`, each once, ascending; None if the log does not reach back so far."""
        if cursor == self.head:
            return []
        if cursor < self._base:
            return None
        if self.head - cursor < FEW:
            changed = self._entries[cursor - self._base :]
            return sorted(set(changed)) if len(changed) > 1 else changed
        if self._last[:2] != (cursor, self.head):
            self._last = cursor, self.head, sorted(set(self._entries[cursor - self._base :]))
        return self._last[2].copy()
