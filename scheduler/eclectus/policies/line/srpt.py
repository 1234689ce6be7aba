"""Shortest remaining work first, with a limit to how often a job may be overtaken.

The lines of Eagle (Delgado, Didona, Dinu, Zwaenepoel, SoCC 2016): of what stands in line the job with the
least remaining work (tasks not started times estimate) goes first, unless somebody it would pass has been
overtaken by as much as `slack` times its own estimate. Long work at the head goes before everybody.

Departures: long work passes nobody, where the paper lets it compete by what is left of its whole job,
which a line does not know of tasks that were placed one by one; so no short task that was there first
waits behind long work. Work that has no estimate is taken to last as long as is believed of it on that
node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated
from weakref import WeakKeyDictionary

from eclectus.framework import Line, View
from eclectus.model.reservation import Reservation
from eclectus.model.settings import Setting
from eclectus.policies.shared.backlog import expected_seconds
from eclectus.policies.shared.partition import CutOff


@dataclass(eq=False)
class ShortestRemaining(CutOff, Line):
    """SRPT with slack."""

    slack: Annotated[
        float,
        Setting("a job may be overtaken by so many times its own estimate", why="the paper's", least=0),
    ] = 5.0

    def __post_init__(self) -> None:
        self._overtaken: WeakKeyDictionary[Reservation, defaultdict[int, float]] = WeakKeyDictionary()

    def next(self, view: View, row: int, line: Sequence[Reservation]) -> Reservation | None:
        """The best of those who may pass all that stand before them."""
        if self.is_long(line[0].head):
            return line[0]
        slack, best, least = inf, 0, inf
        for at, claim in enumerate(line):
            if self.is_long(claim.head):
                continue
            seconds = expected_seconds(view, claim.head, row)
            remaining = seconds * len(claim.tasks)
            if remaining < least and seconds <= slack:
                best, least = at, remaining
            slack = min(slack, self.slack * seconds - self._overtaken_by(claim, row))
        if view.task_class(line[best].head).fits_beside_held(row):
            self._count(line[:best], row, expected_seconds(view, line[best].head, row))
        return line[best]

    def _count(self, passed: Sequence[Reservation], row: int, seconds: float) -> None:
        for claim in dict.fromkeys(passed):  # who stands there twice is passed once
            self._overtaken.setdefault(claim, defaultdict(float))[row] += seconds

    def _overtaken_by(self, claim: Reservation, row: int) -> float:
        """Seconds of work that has passed the claim in this line."""
        return self._overtaken[claim][row] if claim in self._overtaken else 0.0
