"""A journal of changed rows, so that whoever keeps derived arrays pays for changes and not for nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


class ChangeLog:
    """Rows in the order they changed. A reader remembers its place and asks what came since.

    Of more than `most` entries only the newer half is kept; slower readers start over.
    """

    def __init__(self, max_entries: int) -> None:
        self._rows: list[int] = []
        self._base = 0  # place of the first entry still kept
        self.head = 0  # the place just after the newest entry; read it, do not write it
        self.most = max_entries

    def record(self, row: int) -> None:
        """Row `row` has changed."""
        self._rows.append(row)
        self.head += 1
        if len(self._rows) > self.most:
            self.truncate(self.most // 2)

    def since(self, place: int) -> list[int] | None:
        """Rows changed since `place`, each once, ascending; None when the journal no longer reaches back."""
        if place < self._base:
            return None
        news = self._rows[place - self._base :]
        return sorted(set(news)) if len(news) > 1 else news

    def truncate(self, keep: int) -> None:
        """Keep no more than the newest `keep` entries."""
        dropped = max(len(self._rows) - keep, 0)
        del self._rows[:dropped]
        self._base += dropped

    def record_all(self) -> None:
        """Everything has changed: every reader starts over."""
        self.head += 1
        self._base = self.head
        self._rows.clear()
