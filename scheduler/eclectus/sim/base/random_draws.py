"""Every purpose of a run draws from a random stream of its own, and sizes follow a distribution.

All profiles that run with one seed therefore see the same arrivals and sizes, so differences between their
results are due to the policies alone. The engine's random source has a seed of its own, derived here too.

The distributions are those of queueing theory, given by mean and shape, and empirical ones. Sizes are in
seconds at speed 1. The squared coefficient of variation (variance over squared mean) is the parameter of the
Pollaczek-Khinchine formula; it is inf if the variance is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, repeat
from math import inf, nan, sqrt
from pathlib import Path
from statistics import fmean
from typing import Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from eclectus.model.errors import SettingsError
from eclectus.model.settings import setting
from eclectus.sim.base.files import read_lines

BLOCK = 4096  # numbers per draw: drawing one at a time would cost more than the rest of the simulation


def stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator for one purpose of one run; the same on every machine and in every process."""
    return np.random.Generator(np.random.PCG64([seed, crc32(purpose.encode())]))


def engine_seed(seed: int) -> int:
    """The seed of the engine's random source in this run."""
    return int(stream(seed, "policy").integers(2**31))


def endless_draws(draw: Callable[[int], NDArray[np.float64]]) -> Iterator[float]:
    """An endless iterator over the numbers that `draw(count)` returns."""
    return chain.from_iterable(draw(BLOCK).tolist() for _ in repeat(None))


Sampler = Callable[[int], NDArray[np.float64]]


@dataclass(frozen=True)
class SizeDistribution:
    """The size distribution of one class of work; `law` names the family."""

    law: Literal[
        "exponential", "deterministic", "gamma", "hyperexponential", "pareto", "bounded-pareto", "empirical"
    ] = setting("exponential", "the distribution of sizes", why="most closed-form results assume it")
    mean: float | None = setting(
        None,
        "mean size at speed 1; by default 1 s, or the mean of the empirical values",
        unit="s",
        least=1e-6,
        most=1e9,
    )
    scv: float = setting(
        10.0,
        "hyperexponential: squared coefficient of variation, two phases with balanced means",
        why="about that of published batch traces",
        least=1,
        most=1e4,
    )
    shape: float = setting(
        1.5,
        "pareto: the tail falls as size to the power -shape; gamma: one over the squared "
        "coefficient of variation",
        why="pareto: finite mean, infinite variance",
        least=1.01,
        most=100,
    )
    ratio: float = setting(1e4, "bounded-pareto: largest over smallest size", least=1.01, most=1e12)
    values: tuple[float, ...] = setting(
        (), "empirical: sizes, all equally likely", unit="s", least=1e-9, most=1e12
    )
    file: str = setting("", "empirical: path of a file with one size per line, instead of values")

    def __post_init__(self) -> None:
        if self.law == "empirical":
            if bool(self.values) == bool(self.file):
                raise SettingsError("values", "law: empirical needs either values or a file")
        elif self.values or self.file:
            raise SettingsError("values" if self.values else "file", "is valid only with law: empirical")
        if self.law == "bounded-pareto" and abs(self.shape - 1) < 1e-9:
            raise SettingsError("shape", "1 is not supported by bounded-pareto; use 1.01")

    def with_file_values(self, folder: Path) -> SizeDistribution:
        """A copy with the values of its file, whose path is relative to `folder`. Raises SettingsError."""
        if not self.file:
            return self
        values = tuple(_values(folder, self.file))
        if not values:
            raise SettingsError("file", f"{self.file} contains no number")
        return replace(self, values=values, file="")

    @property
    def mean_seconds(self) -> float:
        """The mean size, explicit or default."""
        if self.mean is None:
            return fmean(self.values) if self.values else 1.0
        return self.mean

    def sampler(self, rng: np.random.Generator) -> Sampler:
        """A function `draw(count)` that returns random sizes."""
        mean = self.mean_seconds
        return lambda count: mean * self._unit_sizes(rng, count)

    def _unit_sizes(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Random sizes with mean 1."""
        match self.law:
            case "exponential" | "gamma":
                phases = self.shape if self.law == "gamma" else 1.0
                return rng.standard_gamma(phases, count) / phases
            case "deterministic":
                return np.ones(count)
            case "hyperexponential":
                probability = 0.5 * (1.0 + sqrt((self.scv - 1.0) / (self.scv + 1.0)))
                is_first_phase = rng.random(count) < probability
                means = np.where(is_first_phase, 0.5 / probability, 0.5 / (1.0 - probability))
                return rng.exponential(1.0, count) * means
            case "pareto":
                return (1.0 - rng.random(count)) ** (-1.0 / self.shape) * (self.shape - 1.0) / self.shape
            case "bounded-pareto":
                a, h = self.shape, self.ratio
                least = 1.0 / (a / (a - 1) * (1.0 - h ** (1 - a)) / (1.0 - h**-a))
                return np.asarray(least * (1.0 - rng.random(count) * (1.0 - h**-a)) ** (-1.0 / a))
            case "empirical":
                return rng.choice(np.array(self.values), count) / fmean(self.values)


def _values(folder: Path, name: str) -> Iterator[float]:
    """Positive numbers, one per line; blank lines are skipped. Raises SettingsError naming the line."""
    for number, line in read_lines(folder, name):
        try:
            value = float(line)
        except ValueError:
            value = nan
        if not 0 < value < inf:
            where, text = f"{Path(name).name}, line {number}", line.strip()[:40]
            raise SettingsError("file", f"{where}: {text!r} is not a size; write a number of seconds above 0")
        yield value
