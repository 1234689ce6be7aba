"""Where the unbound claims of a pod can get volumes, kept for all pods whose claims ask for the same.

`now` changes with each volume that is chosen. Policies that plan ahead must not see nodes become infeasible
within a scheduling cycle, so `known` takes over `now` only between two cycles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.model.objects import UnboundClaim

Mask = NDArray[np.bool_]


class Places(NamedTuple):
    """Masks over rows, shape [capacity]."""

    gets: Mask  # all claims can get volumes
    is_short: Mask  # the first claim that cannot would get one if more storage were free

    def grown(self, rows: int) -> Places:
        """The same for `rows` rows; no volume is known for the new ones."""
        more = (0, rows - len(self.gets))
        return Places(np.pad(self.gets, more), np.pad(self.is_short, more))

    def resembling(self, row: int, other: int) -> Places:
        """The same, but for a row on which everything is as on another one."""
        gets, is_short = self.gets.copy(), self.is_short.copy()
        gets[row], is_short[row] = gets[other], is_short[other]
        return Places(gets, is_short)


class Reach:
    """`now`: as the volumes are now. `known`: as it was after the events of the last step."""

    __slots__ = ("claims", "known", "now")

    def __init__(self, claims: tuple[UnboundClaim, ...], now: Places) -> None:
        self.claims, self.now, self.known = claims, now, now

    def resemble(self, row: int, other: int) -> None:
        """The claims can get volumes on a row where they can on another one."""
        self.now, self.known = self.now.resembling(row, other), self.known.resembling(row, other)

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        self.now, self.known = self.now.grown(rows), self.known.grown(rows)
