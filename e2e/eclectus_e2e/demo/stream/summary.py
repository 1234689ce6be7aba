"""Mean and quantiles of measured times. Pure."""

from collections.abc import Sequence

import msgspec
import numpy as np


class Summary(msgspec.Struct, frozen=True):
    """Mean and quantiles of times in seconds; NaN (null in JSON) without any."""

    mean: float
    p50: float
    p95: float
    p99: float


def summarise(seconds: Sequence[float]) -> Summary:
    """Mean and quantiles; NaN of nothing."""
    if not seconds:
        return Summary(*[float("nan")] * 4)
    return Summary(
        float(np.mean(seconds)), *(float(value) for value in np.quantile(seconds, (0.5, 0.95, 0.99)))
    )


def ratio(one: Summary, baseline: Summary) -> Summary:
    """Each figure as a share of the baseline's; NaN where that is 0."""
    pairs = zip(_figures(one), _figures(baseline), strict=True)
    return Summary(*(value / other if other else float("nan") for value, other in pairs))


def _figures(one: Summary) -> list[float]:
    return [getattr(one, name) for name in Summary.__struct_fields__]
