"""Drawing nodes at random, without looking at all of them."""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

TRIES = 64  # rejections before the exact draw: reached only where one node outweighs dozens of others


def draw_proportional(
    rng: Random, rows: NDArray[np.intp], weights: NDArray[np.float64], most: float
) -> int | None:
    """One of `rows` with probability weights[row] / sum; None where all weights are 0."""
    drawn = draws_proportional(rng, rows, weights, most, 1)
    return drawn[0] if drawn else None


def draws_proportional(
    rng: Random, rows: NDArray[np.intp], weights: NDArray[np.float64], most: float, count: int
) -> list[int]:
    """So many of `rows`, each with probability weights[row] / sum; none where all weights are 0.

    `weights` is indexed by row; `most` bounds them from above. By rejection: a uniform row is taken
    with probability weight / most, so a changed weight costs nothing and a draw costs most / mean
    tries; after `TRIES` the draw is made exactly, O(len(rows)).
    """
    size = len(rows)
    bits, tries = size.bit_length(), TRIES if most > 0 and size else 0
    getrandbits, random, row_at, weight_of = rng.getrandbits, rng.random, rows.data, weights.data
    drawn: list[int] = []
    for _ in range(count):
        for _ in range(tries):
            # So does `randrange` draw, at four times the price: draws are a large part of decisions.
            while (at := getrandbits(bits)) >= size:
                pass
            row = row_at[at]
            if random() * most < weight_of[row]:
                break
        else:
            exact = _draw_exactly(rng, rows, weights)
            if exact is None:
                break
            row = exact
        drawn.append(row)
    return drawn


def _draw_exactly(rng: Random, rows: NDArray[np.intp], weights: NDArray[np.float64]) -> int | None:
    total = np.cumsum(weights[rows])
    if not len(rows) or total[-1] <= 0:
        return None
    return int(rows[int(np.searchsorted(total, rng.random() * total[-1], side="right"))])


def draw_marked(rng: Random, rows: NDArray[np.intp], marks: NDArray[np.bool_]) -> int | None:
    """A uniform draw among those of `rows` that are marked; None where none is. `marks` by row."""
    for _ in range(TRIES if len(rows) else 0):
        row: int = rows.item(rng.randrange(len(rows)))
        if marks[row]:
            return row
    marked = rows[marks[rows]]
    return int(marked[rng.randrange(len(marked))]) if len(marked) else None
