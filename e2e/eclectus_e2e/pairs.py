"""Pairs of runs: the order of their halves, and what may be said of the ratios within them.

Both halves of a pair get the same work, one after the other. What drifts meanwhile, such as a growing etcd
or another user of the machine, touches halves that alternate in being first alike.
"""

from collections.abc import Iterator, Sequence
from math import exp, isfinite, log, nan
from statistics import fmean
from typing import TypeVar

import msgspec

from eclectus.maths.student import half_width

LEAST_PAIRS = 5  # of which won, equal and lost are said: the interval of fewer is wide, and seldom normal
WON, EQUAL, LOST, FEW_PAIRS = "won", "equal", "lost", "too few pairs"
Kind = TypeVar("Kind")


def in_turn(kinds: Sequence[Kind], pair: int) -> Sequence[Kind]:
    """The halves of a pair in their order: the last of one pair is the first of the next."""
    return kinds if pair % 2 == 0 else kinds[::-1]


def alternating(kinds: Sequence[Kind], pairs: int) -> Iterator[tuple[int, Kind]]:
    """Number of the pair and kind of each run, in order: A B, B A, A B."""
    for pair in range(pairs):
        yield from ((pair, one) for one in in_turn(kinds, pair))


class Interval(msgspec.Struct, frozen=True):
    """The mean of some pairs and its 95 % interval; `low` and `high` are None with fewer than two pairs."""

    mean: float  # NaN without any pair
    low: float | None
    high: float | None
    pairs: int

    def text(self, decimals: int = 2) -> str:
        """For a table: `0.81 (0.70 to 0.93)`, and `-` without any pair."""
        if not self.pairs:
            return "-"
        if self.low is None or self.high is None:
            return f"{self.mean:.{decimals}f}"
        return f"{self.mean:.{decimals}f} ({self.low:.{decimals}f} to {self.high:.{decimals}f})"


def mean_interval(values: Sequence[float]) -> Interval:
    """Of differences; one that is not finite, such as of a stream that lost all pods, is left out."""
    known = [value for value in values if isfinite(value)]
    if not known:
        return Interval(nan, None, None, 0)
    mean, half = fmean(known), half_width(known)
    if half is None:
        return Interval(mean, None, None, len(known))
    return Interval(mean, mean - half, mean + half, len(known))


def ratio_interval(ratios: Sequence[float]) -> Interval:
    """Of positive ratios: the geometric mean, so that exchanging both sides gives the reciprocal."""
    found = mean_interval([log(ratio) for ratio in ratios if ratio > 0])
    low, high = (None if end is None else exp(end) for end in (found.low, found.high))
    return Interval(exp(found.mean), low, high, found.pairs)


def verdict(found: Interval, *, even: float = 1.0, more_is_better: bool = False) -> str:
    """WON or LOST where the interval leaves out `even`, else EQUAL; FEW_PAIRS for less than LEAST_PAIRS.

    `found` is of our figure over the other's; of differences `even` is 0.
    """
    if found.low is None or found.high is None or found.pairs < LEAST_PAIRS:
        return FEW_PAIRS
    if found.low <= even <= found.high:
        return EQUAL
    return WON if (found.low > even) == more_is_better else LOST
