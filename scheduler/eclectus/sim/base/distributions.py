"""How large tasks are: the laws of queueing theory, each given by its mean and its shape, or sizes on record.

Sizes are seconds at speed 1. The squared coefficient of variation (variance over squared mean) is what
Pollaczek and Khinchine's formula needs; it is inf where the variance is.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, nan, sqrt
from pathlib import Path
from statistics import fmean, pvariance
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting

Draw = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True)
class Size:
    """The law of one kind of work."""

    law: Annotated[
        Literal[
            "exponential",
            "deterministic",
            "gamma",
            "hyperexponential",
            "pareto",
            "bounded-pareto",
            "empirical",
        ],
        Setting("the service law", why="the law that most closed forms are for"),
    ] = "exponential"
    mean: Annotated[
        float | None,
        Setting(
            "mean size, at speed 1; 1 s if left out, empirical: the mean on record",
            unit="s",
            least=1e-6,
            most=1e9,
        ),
    ] = None
    scv: Annotated[
        float,
        Setting(
            "hyperexponential: the squared coefficient of variation, two phases of balanced means",
            why="about what batch traces show",
            least=1,
            most=1e4,
        ),
    ] = 10.0
    shape: Annotated[
        float,
        Setting(
            "pareto laws: the tail falls as size to the power -shape; gamma: one over the squared "
            "coefficient of variation",
            why="pareto: finite mean, infinite variance",
            least=1.01,
            most=100,
        ),
    ] = 1.5
    ratio: Annotated[
        float, Setting("bounded-pareto: the largest size over the smallest", least=1.01, most=1e12)
    ] = 1e4
    values: Annotated[
        tuple[float, ...],
        Setting("empirical: sizes, one as likely as the other", unit="s", least=1e-9, most=1e12),
    ] = ()
    file: Annotated[str, Setting("empirical: instead of values, the path of a file of them, one a line")] = ""

    def __post_init__(self) -> None:
        if self.law == "empirical":
            if bool(self.values) == bool(self.file):
                raise SettingsError("values", "an empirical law needs either values or a file of them")
        elif self.values or self.file:
            raise SettingsError("values" if self.values else "file", "belongs to law: empirical")
        if self.law == "bounded-pareto" and abs(self.shape - 1) < 1e-9:
            raise SettingsError("shape", "1 has no closed mean; take 1.01")

    def within(self, folder: Path) -> Size:
        """With the values of its file, which is looked for in `folder`. Raises SettingsError."""
        if not self.file:
            return self
        values = tuple(_values(folder / self.file))
        if not values:
            raise SettingsError("file", f"{self.file} holds no number")
        return replace(self, values=values, file="")

    @property
    def mean_seconds(self) -> float:
        """Mean size, whether given or not."""
        if self.mean is None:
            return fmean(self.values) if self.values else 1.0
        return self.mean

    def drawing(self, chance: np.random.Generator) -> Draw:
        """`draw(count)` for this law."""
        mean = self.mean_seconds
        return lambda count: mean * self._unit(chance, count)

    def _unit(self, chance: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Sizes of mean 1."""
        match self.law:
            case "exponential" | "gamma":
                return chance.standard_gamma(self._phases, count) / self._phases
            case "deterministic":
                return np.ones(count)
            case "hyperexponential":
                often = 0.5 * (1.0 + sqrt((self.scv - 1.0) / (self.scv + 1.0)))
                is_often = chance.random(count) < often
                return chance.exponential(1.0, count) * np.where(is_often, 0.5 / often, 0.5 / (1.0 - often))
            case "pareto":
                return (1.0 - chance.random(count)) ** (-1.0 / self.shape) * (self.shape - 1.0) / self.shape
            case "bounded-pareto":
                least = 1.0 / self._bounded_moment(1)
                cut = 1.0 - self.ratio**-self.shape
                return np.asarray(least * (1.0 - chance.random(count) * cut) ** (-1.0 / self.shape))
            case "empirical":
                return chance.choice(np.array(self.values), count) / fmean(self.values)

    @property
    def _phases(self) -> float:
        """The shape of the gamma distribution, of which the exponential is that of one phase."""
        return self.shape if self.law == "gamma" else 1.0

    def _bounded_moment(self, power: int) -> float:
        """E[X^power] of a bounded Pareto on 1..ratio."""
        a, h = self.shape, self.ratio
        if abs(a - power) < 1e-9:
            return float(a * np.log(h) / (1.0 - h**-a))
        return float(a / (a - power) * (1.0 - h ** (power - a)) / (1.0 - h**-a))

    @property
    def squared_variation(self) -> float:
        """Variance over squared mean."""
        match self.law:
            case "exponential" | "gamma":
                return 1.0 / self._phases
            case "deterministic":
                return 0.0
            case "hyperexponential":
                return self.scv
            case "pareto":
                return 1.0 / (self.shape * (self.shape - 2.0)) if self.shape > 2 else inf
            case "bounded-pareto":
                return self._bounded_moment(2) / self._bounded_moment(1) ** 2 - 1.0
            case "empirical":
                return pvariance(self.values) / fmean(self.values) ** 2


def _values(path: Path) -> Iterator[float]:
    """Numbers above 0, one a line; blank lines are passed over. Raises SettingsError with the line."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _value(line, f"{path.name}, line {number}")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SettingsError("file", f"{path.name} cannot be read: {error}") from error


def _value(line: str, where: str) -> float:
    try:
        value = float(line)
    except ValueError:
        value = nan
    if not 0 < value < inf:
        raise SettingsError(
            "file", f"{where}: {line.strip()[:40]!r} is no size; a number of seconds above 0 is"
        )
    return value
