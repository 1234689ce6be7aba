"""Random streams: one independent generator for each purpose of a run.

All profiles that run with one seed therefore see the same arrivals and sizes, so differences between their
results are due to the policies alone. The engine's random source has a seed of its own, derived here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

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
