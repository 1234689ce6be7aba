"""Chance, one stream for each purpose, so that what one purpose draws disturbs no other.

Two profiles run with one seed thus meet the very same arrivals and sizes, and their difference is the
policies' doing alone. The engine's own chance has a seed of its own, drawn here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096  # numbers drawn at a time: one by one, numpy would cost more than the world itself


def stream(seed: int, purpose: str) -> np.random.Generator:
    """A generator for one purpose of one run; equal on every machine, in every process."""
    return np.random.Generator(np.random.PCG64([seed, crc32(purpose.encode())]))


def engine_seed(seed: int) -> int:
    """The seed of the engine's own chance in this run."""
    return int(stream(seed, "policy").integers(2**31))


def endless(draw: Callable[[int], NDArray[np.float64]]) -> Iterator[float]:
    """The numbers of `draw(count)` one after the other, for ever."""
    return chain.from_iterable(draw(BLOCK).tolist() for _ in repeat(None))
