"""A log of changed rows: whoever keeps derived arrays pays for changes and not for nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]
AnyRows = Rows | slice
"""Rows, or all of them as a slice, which numpy reads several times as fast."""


class ChangeLog:
    """Rows in the order in which they changed. A reader keeps a cursor and asks for the rows since then.

    Of more than `max_entries` only the newer half is kept; a reader that is further behind starts over.
    """

    def __init__(self, max_entries: int) -> None:
        self._rows: list[int] = []
        self._base = 0  # cursor of the oldest entry kept
        self.head = 0  # cursor just after the newest entry; written here only
        self.max_entries = max_entries

    def record(self, row: int) -> None:
        """Row `row` has changed."""
        self._rows.append(row)
        self.head += 1
        if len(self._rows) > self.max_entries:
            self.truncate(self.max_entries // 2)

    def record_all(self) -> None:
        """Every row may have changed: every reader starts over."""
        self.head += 1
        self._base = self.head
        self._rows.clear()

    def since(self, cursor: int) -> list[int] | None:
        """Rows changed since `cursor`, each once, ascending; None if the log does not reach back so far."""
        if cursor < self._base:
            return None
        changed = self._rows[cursor - self._base :]
        return sorted(set(changed)) if len(changed) > 1 else changed

    def truncate(self, keep: int) -> None:
        """Keep no more than the newest `keep` entries."""
        dropped = max(len(self._rows) - keep, 0)
        del self._rows[:dropped]
        self._base += dropped
