"""Figures of paired runs: their mean with a 95 % confidence interval, by Student's t over the pairs. Pure."""

from collections.abc import Sequence
from math import exp, isfinite, log, nan
from statistics import fmean

import msgspec

from eclectus.maths.student import half_width


class Interval(msgspec.Struct, frozen=True):
    """The mean of some pairs and its 95 % interval; `low` and `high` are None with fewer than two pairs."""

    mean: float  # NaN without any pair
    low: float | None
    high: float | None
    pairs: int

    def text(self, decimals: int = 2) -> str:
        """For a table: `0.81 (0.70 to 0.93)`."""
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
