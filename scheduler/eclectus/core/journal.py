"""A journal of changed rows, so that whoever keeps derived arrays pays for changes and not for nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


class Journal:
    """Rows in the order they changed. A reader remembers its place and asks what came since."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0  # place of the first entry still kept
        self.end = 0  # the place just after the newest entry; read it, do not write it

    def note(self, row: int) -> None:
        """Row `row` has changed."""
        self._rows.append(row)
        self.end += 1

    def news(self, place: int) -> list[int] | None:
        """Rows changed since `place`, each once, ascending; None when the journal no longer reaches back."""
        if place < self._base:
            return None
        news = self._rows[place - self._base :]
        return sorted(set(news)) if len(news) > 1 else news

    def since(self, place: int) -> Rows | None:
        """The same as an array."""
        news = self.news(place)
        return None if news is None else np.array(news, dtype=np.intp)

    def forget(self, keep: int) -> None:
        """Keep no more than the newest `keep` entries; slower readers start over."""
        if len(self._rows) > 2 * keep:
            dropped = len(self._rows) - keep
            del self._rows[:dropped]
            self._base += dropped

    def restart(self) -> None:
        """Everything has changed: every reader starts over."""
        self.end += 1
        self._base = self.end
        self._rows.clear()
