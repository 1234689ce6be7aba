"""A journal of changed rows, so that whoever keeps derived arrays pays for changes and not for nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]

_NOTHING = np.array([], dtype=np.intp)
_NOTHING.setflags(write=False)


class Journal:
    """Rows in the order they changed. A reader remembers its place and asks what came since."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._base = 0  # place of the first entry still kept

    @property
    def end(self) -> int:
        """The place just after the newest entry."""
        return self._base + len(self._rows)

    def note(self, row: int) -> None:
        """Row `row` has changed."""
        self._rows.append(row)

    def since(self, place: int) -> Rows | None:
        """Rows changed since `place`, each once, ascending; None when the journal no longer reaches back."""
        if place < self._base:
            return None
        news = self._rows[place - self._base :]
        # Mostly there is nothing new or one row, for which np.unique would cost five times as much.
        return np.array(sorted(set(news)), dtype=np.intp) if news else _NOTHING

    def forget(self, keep: int) -> None:
        """Keep no more than the newest `keep` entries; slower readers start over."""
        if len(self._rows) > 2 * keep:
            dropped = len(self._rows) - keep
            del self._rows[:dropped]
            self._base += dropped

    def restart(self) -> None:
        """Everything has changed: every reader starts over."""
        self._base = self.end + 1
        self._rows.clear()
