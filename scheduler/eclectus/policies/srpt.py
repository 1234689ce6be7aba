"""Shortest remaining work first, with a limit to how often a job may be overtaken.

The lines of Eagle (Delgado, Didona, Dinu, Zwaenepoel, SoCC 2016): of what stands in line the job with the
least remaining work (tasks not started times estimate) goes first, unless somebody it would pass has been
overtaken by as much as `slack` times its own estimate. Long work at the head goes before everybody.

Departure: work that has no estimate is taken to last as long as is believed of it on that node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated
from weakref import WeakKeyDictionary

from eclectus.core.claim import Claim
from eclectus.core.seam import Line, View
from eclectus.core.settings import Setting
from eclectus.policies.backlog import expected_seconds
from eclectus.policies.partition import CutOff


@dataclass(eq=False)
class ShortestRemaining(CutOff, Line):
    """SRPT with slack."""

    slack: Annotated[
        float,
        Setting("a job may be overtaken by so many times its own estimate", why="the paper's", least=0),
    ] = 5.0

    def __post_init__(self) -> None:
        self._overtaken: WeakKeyDictionary[Claim, Counter[int]] = WeakKeyDictionary()  # seconds by row

    def next(self, view: View, row: int, line: Sequence[Claim]) -> Claim | None:
        """The best of those who may pass all that stand before them."""
        if self.is_long(line[0].head):
            return line[0]
        slack, best, least = inf, 0, inf
        for at, claim in enumerate(line):
            seconds = expected_seconds(view, claim.head, row)
            remaining = seconds * len(claim.tasks)
            if remaining < least and seconds <= slack:
                best, least = at, remaining
            if not self.is_long(claim.head):
                slack = min(slack, self.slack * seconds - self._overtaken.get(claim, _NOBODY)[row])
        if view.task_class(line[best].head).fits_now(row):
            self._count(line[:best], row, expected_seconds(view, line[best].head, row))
        return line[best]

    def _count(self, passed: Sequence[Claim], row: int, seconds: float) -> None:
        for claim in passed:
            self._overtaken.setdefault(claim, Counter())[row] += seconds  # type: ignore[assignment]


_NOBODY: Counter[int] = Counter()
