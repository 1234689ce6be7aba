"""Student's confidence interval of a mean over independent runs, computed without tables."""

from collections.abc import Sequence
from math import atan, cos, pi, sin, sqrt


def half_width(values: Sequence[float], confidence: float = 0.95) -> float | None:
    """Half the width of the confidence interval of the mean; None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    mean = sum(values) / count
    variance = sum((value - mean) ** 2 for value in values) / (count - 1)
    return quantile((1.0 + confidence) / 2.0, count - 1) * sqrt(variance / count)


def quantile(share: float, freedom: int) -> float:
    """The quantile of Student's t with `freedom` degrees for a share above one half; by bisection."""
    low, high = 0.0, 1.0
    while cumulative(high, freedom) < share:
        high *= 2.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if cumulative(middle, freedom) < share else (low, middle)
    return high


def cumulative(t: float, freedom: int) -> float:
    """P(T <= t) for t >= 0, by the finite series for whole degrees (Abramowitz, Stegun 26.7.3 and 26.7.4)."""
    angle = atan(t / sqrt(freedom))
    term = cos(angle) if freedom % 2 else 1.0
    total, first = 0.0, 3 if freedom % 2 else 2
    for k in range(first, freedom + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (k - 1) / k
    within = (angle + sin(angle) * total) * 2.0 / pi if freedom % 2 else sin(angle) * total
    return 0.5 + within / 2.0
