"""Pictures as values: axes, lines and bars in numbers, which plots.py and page.py draw alike.

Profiles go by their place in the report's summaries, so that each has one colour everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log10

import numpy as np
from numpy.typing import NDArray

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
DARK = ("#2f93d6", "#d55e00", "#00b383", "#cc79a7", "#e69f00", "#7cc8f5", "#a0a0a0", "#ffffff")
"""Okabe and Ito's palette, which eyes that confuse red and green tell apart; on black, brighter."""
SOLID_MOST = 4  # profiles whose lines are solid: after those dashes help to tell colours apart
DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3))  # on, off, … in points

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """What runs along it, from where to where."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False  # of shares: 0.5 reads as 50 %
    unit: str = ""  # behind a single number
    names: tuple[str, ...] = ()  # instead of numbers: what stands at 0, 1, 2, …

    def fraction(self, values: Numbers) -> Numbers:
        """Where values stand, 0 at the low end and 1 at the high one."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(np.maximum(values, low * 1e-3)), log(low), log(high)
        return np.asarray((values - low) / (high - low))

    def ticks(self) -> list[tuple[float, str]]:
        """Where numbers stand, and how they are written."""
        if self.names:
            return [(float(at), name) for at, name in enumerate(self.names)]
        places = _log_places(self.low, self.high) if self.log else _even_places(self.low, self.high)
        return [(at, self.label_of(at)) for at in places]

    def label_of(self, value: float) -> str:
        """A number as this axis writes it."""
        return f"{value * 100:,.10g} %" if self.percent else f"{value:,.10g}"


@dataclass(frozen=True)
class Line:
    """One profile's curve."""

    profile: int
    x: Numbers
    y: Numbers


@dataclass(frozen=True)
class Bar:
    """A profile's middle, and the range in which eight of ten are, at a height."""

    profile: int
    at: float
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Panel:
    """One picture."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    shades: tuple[tuple[float, float], ...] = ()  # stretches of x that are not measured
    reference: float | None = None  # an x that means: right
    note: str = ""  # what the picture leaves out


def style(profile: int) -> tuple[int, tuple[int, ...]]:
    """The place of a profile's colour in the palettes, and its dashes."""
    return profile % len(LIGHT), DASHES[profile // SOLID_MOST % len(DASHES)]


def axis_limit(peaks: Sequence[float], gap: float) -> float:
    """The highest peak that shall be seen whole: those that stand `gap` times above the others are cut off.

    Half of the peaks are seen whatever they are, so that one good profile does not cut off the rest.
    """
    order = sorted(peaks)
    for at in range(ceil(len(order) / 2), len(order)):
        if order[at] > gap * order[at - 1]:
            return order[at - 1]
    return order[-1]


def cut_off_note(names: Sequence[str], reached: Mapping[int, str]) -> str:
    """Who leaves a picture, and how far; nothing where nobody does."""
    far = ", ".join(f"{names[profile]} (to {end})" for profile, end in reached.items())
    return f"beyond the picture: {far}" if far else ""


def _even_places(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten."""
    least = 0.7 * (high - low) / about
    power = 10.0 ** floor(log10(least))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= least)
    return [step * at for at in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _log_places(low: float, high: float) -> list[float]:
    """Powers of ten; with 2 and 5 of each where there are few; every so many where there are many."""
    first, last = floor(log10(low)), ceil(log10(high))
    decades = log10(high / low)
    parts = (1, 2, 5) if decades <= 2.5 else (1,)
    every = max(1, ceil(decades / 6))
    places = [part * 10.0**power for power in range(first, last + 1) if power % every == 0 for part in parts]
    return [at for at in places if low * (1 - 1e-9) <= at <= high * (1 + 1e-9)]
