"""Liveness of nodes as one namespace sees it: which nodes count as slower, which are dead or back.

States: `unknown`, no samples; `live`; `suspect`, its tasks are overdue, so it counts as slower
(maths/overdue.py); `dead`, the last choice for real work. Departures from the paper (Q. Wu, Z. Liu,
"Rosella", 2020), whose benchmarks arrive all the time: only time in which something ran on a node is
evidence against it, so an idle node never counts as dead. A dead node on which a task ends is suspect until
it has enough new samples. A dead node on which nothing runs is reset after a half-life, since without probes
nothing else would bring it back.

Silence and slowness are evidence for the namespace whose tasks they are. An end is a sign of life for all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

REVIVAL_SAMPLES = 8  # of tasks that started after the node died, that make it live again
TRIAL_SHARE = 0.125  # share of its learned speed that a dead node counts with after a sign of life


class Death:
    """Since when a node counts as dead, its samples since then, and since when it is quiet."""

    __slots__ = ("has_sign_of_life", "new_samples", "quiet_since", "since")

    def __init__(self, since: float) -> None:
        self.since = self.quiet_since = since  # quiet: no task has ended or left
        self.new_samples, self.has_sign_of_life = 0, False


class Liveness:
    """Shares and deaths; arrays by row, shape [capacity]."""

    def __init__(self, rows: int = 0) -> None:
        self.share: Floats = np.ones(rows)  # of its learned speed with which a node counts; 0: dead
        self._deaths: dict[int, Death] = {}

    # -- rows ----------------------------------------------------------------------------------

    def open_rows(self, rows: int) -> None:
        """Extend the array to `rows` rows."""
        missing = rows - len(self.share)
        if missing > 0:
            self.share = np.pad(self.share, (0, missing), constant_values=1.0)

    def reset(self, row: int) -> None:
        """The row is not dead and counts with its full learned speed."""
        self.share[row] = 1.0
        self._deaths.pop(row, None)

    # -- tasks ---------------------------------------------------------------------------------

    def left(self, row: int, now: float) -> None:
        """A task no longer runs on the row."""
        if row in self._deaths:
            self._deaths[row].quiet_since = now

    def ended(self, row: int, began: float, now: float) -> bool:
        """A task has run to its end; returns whether its time is a sample of the node.

        On a dead node, only tasks that started after its death are samples, since others stood still with it.
        But any end is a sign of life, after which the node gets a little real work.
        """
        death = self._deaths.get(row)
        if death is None:
            self.share[row] = 1.0
            return True
        death.has_sign_of_life, death.quiet_since = True, now
        self.share[row] = TRIAL_SHARE
        is_sample = began >= death.since
        death.new_samples += is_sample
        return is_sample

    def revived_since(self, row: int) -> float | None:
        """Make the node live again if it has enough new samples; returns when it died, else None."""
        death = self._deaths.get(row)
        if death is None or death.new_samples < REVIVAL_SAMPLES:
            return None
        self.reset(row)
        return death.since

    # -- failure detection -------------------------------------------------------------------------------

    def is_dead(self, row: int) -> bool:
        """Whether the node counts as dead: it died and has shown no sign of life since."""
        return row in self._deaths and not self._deaths[row].has_sign_of_life

    def dead_rows(self) -> list[int]:
        """The rows of dead nodes."""
        return [row for row in self._deaths if self.is_dead(row)]

    def lowered_rows(self) -> set[int]:
        """The rows that count with less than their learned speed, or have died and not come back."""
        return {*np.flatnonzero(self.share != 1.0).tolist(), *self._deaths}

    def marked(self, rows: Iterable[int]) -> NDArray[np.bool_]:
        """True for these rows; shape [capacity]."""
        marks = np.zeros(len(self.share), dtype=bool)
        marks[list(rows)] = True
        return marks

    def mark_dead(self, rows: NDArray[np.intp], now: float) -> list[int]:
        """These rows count as dead from now on; returns those that did not before."""
        died = [row for row in rows.tolist() if not self.is_dead(row)]
        for row in died:
            self._deaths[row] = Death(now)
        return died

    def apply_shares(self, share: Floats, nodes: int) -> None:
        """Take over the shares. Dead rows get 0, unless all nodes are dead, which must be an error."""
        dead = self.dead_rows()
        self.share = share
        for row, death in self._deaths.items():
            if death.has_sign_of_life:
                share[row] = min(share[row], TRIAL_SHARE)
        if len(dead) < nodes:
            share[dead] = 0.0

    def silent_since(self, last_end: Floats) -> Floats:
        """Since when each row is silent: since a task ended there; after a death also since one left."""
        found = last_end.copy()
        for row, death in self._deaths.items():
            found[row] = max(found[row], death.quiet_since)
        return found

    def idle_dead_rows(self, busy: Container[int], now: float, after: float) -> list[int]:
        """Dead rows, none of them `busy`, where no task has ended or left for `after` seconds."""
        return [
            row for row, death in self._deaths.items() if row not in busy and now - death.quiet_since >= after
        ]

    def is_dead_or_on_trial(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the rows are dead, or have shown a sign of life since but too few samples."""
        return self.marked(self._deaths)[rows]
