"""Panels as plain values: axes, lines and bars, which `plots.py` and `svg.py` draw alike.

Profiles are numbered as in the report's summaries, so that each has the same colour everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10

import numpy as np
from numpy.typing import NDArray

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
DARK = ("#2f93d6", "#d55e00", "#00b383", "#cc79a7", "#e69f00", "#7cc8f5", "#a0a0a0", "#ffffff")
"""Okabe and Ito's palette, safe for colour-blind readers; brighter on a dark background."""
SOLID_MOST = 4  # profiles with solid lines; the following ones are dashed
DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3))  # lengths on, off, … in points

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """Label, range and number format of an axis."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False  # values are shares: 0.5 is written as 50 %
    unit: str = ""  # written after a single value
    names: tuple[str, ...] = ()  # labels at 0, 1, 2, … instead of numbers

    def fraction(self, values: Numbers) -> Numbers:
        """Positions along the axis: 0 at the low end, 1 at the high one."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(np.maximum(values, low * 1e-3)), log(low), log(high)
        return np.asarray((values - low) / (high - low))

    def ticks(self) -> list[tuple[float, str]]:
        """Values of the ticks, and their labels."""
        if self.names:
            return [(float(at), name) for at, name in enumerate(self.names)]
        ticks = _log_ticks(self.low, self.high) if self.log else _linear_ticks(self.low, self.high)
        return [(at, self.label_of(at)) for at in ticks]

    def label_of(self, value: float) -> str:
        """The label of a value."""
        return f"{value * 100:,.10g} %" if self.percent else f"{value:,.10g}"


@dataclass(frozen=True)
class Line:
    """One profile's curve."""

    profile: int
    x: Numbers
    y: Numbers


@dataclass(frozen=True)
class Bar:
    """A profile's median and its range from the 10th to the 90th percentile, at height `at`."""

    profile: int
    at: float
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Panel:
    """One panel of a figure."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    shades: tuple[tuple[float, float], ...] = ()  # ranges of x that are not measured
    reference: float | None = None  # x of a reference line
    note: str = ""  # how to read the panel, and what it cuts off or leaves out


def style(profile: int) -> tuple[int, tuple[int, ...]]:
    """The index of a profile's colour in the palettes, and its dashes."""
    return profile % len(LIGHT), DASHES[profile // SOLID_MOST % len(DASHES)]


def axis_limit(peaks: Sequence[float], gap: float) -> float:
    """The highest peak that is shown in full; peaks more than `gap` times above the next one are cut off.

    At least half of the peaks are always shown, so that one low peak does not cut off all others.
    """
    order = sorted(peaks)
    for at in range(ceil(len(order) / 2), len(order)):
        if order[at] > gap * order[at - 1]:
            return order[at - 1]
    return order[-1]


def cut_off_note(names: Sequence[str], reached: Mapping[int, str]) -> str:
    """A note on the profiles that are cut off and the values they reach; empty if there are none."""
    far = ", ".join(f"{names[profile]} (to {end})" for profile, end in reached.items())
    return f"cut off: {far}" if far else ""


def _linear_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, about `about` of them."""
    least = 0.7 * (high - low) / about
    power = 10.0 ** floor(log10(least))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= least)
    return [step * at for at in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; with multiples of 2 and 5 on short axes, and only every n-th on long ones."""
    first, last = floor(log10(low)), ceil(log10(high))
    decades = log10(high / low)
    parts = (1, 2, 5) if decades <= 2.5 else (1,)
    every = max(1, ceil(decades / 6))
    ticks = [part * 10.0**power for power in range(first, last + 1) if power % every == 0 for part in parts]
    return [at for at in ticks if low * (1 - 1e-9) <= at <= high * (1 + 1e-9)]
