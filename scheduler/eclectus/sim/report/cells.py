"""Tables of text, and how figures are written in their cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eclectus.sim.base.results import Interval, ProfileSummary, TimeStatistics

UNITS = (
    (864_000.0, 86_400.0, "d"),
    (36_000.0, 3600.0, "h"),
    (3600.0, 60.0, "min"),
    (0.1, 1.0, "s"),
    (1e-4, 1e-3, "ms"),
    (0.0, 1e-6, "µs"),
)  # least time in seconds, seconds per unit, name
QUANTITIES = ("mean", "median", "p90", "p99")  # what `times_cells` writes
NO_VALUE = "-"  # if no task or job has ended


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first cell of a row is text, the others are numbers, or names of groups."""

    heads: list[str]
    rows: list[list[str]]


def format_interval(value: Interval, digits: int = 3, scale: float = 1.0) -> str:
    """`1.046 ±0.004`: digits according to the width of the interval."""
    mean = value.mean / scale
    if value.half_width is None:
        return f"{mean:,.0f}" if abs(mean) >= 10**digits else f"{mean:.{digits}g}"
    half = value.half_width / scale
    places = max(0, min(6, 1 - _magnitude(max(half, abs(mean) / 1000) or 1.0)))
    return f"{mean:,.{places}f} ±{half:,.{places}f}"


def optional_cell(value: Interval | None, scale: float = 1.0) -> str:
    """The interval, or `NO_VALUE` if there is none."""
    return NO_VALUE if value is None else format_interval(value, scale=scale)


def times_cells(spread: TimeStatistics | None, scale: float) -> list[str]:
    """A cell for each of QUANTITIES; `scale`: seconds per unit."""
    if spread is None:
        return [NO_VALUE] * 4
    return [
        format_interval(value, scale=scale) for value in (spread.mean, spread.p50, spread.p90, spread.p99)
    ]


def unit_for(seconds: float) -> tuple[float, str]:
    """Seconds per unit, and the name of the unit that suits this time."""
    return next((size, name) for least, size, name in UNITS if seconds >= least)


def scale_of(summaries: Sequence[ProfileSummary]) -> tuple[float, str]:
    """The same for all response times of the comparison."""
    means = [each.all.response.mean.mean for each in summaries if each.all.response is not None]
    return unit_for(min(means, default=1.0))


def _magnitude(value: float) -> int:
    return int(f"{abs(value):e}".partition("e")[2])
