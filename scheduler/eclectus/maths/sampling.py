"""Random draws of nodes, mostly without looking at all of them."""

from random import Random

import numpy as np
from numpy.typing import NDArray

TRIES = 64  # rejections before the exact draw; so many occur only if one weight is far above the mean


def draw_proportional(
    rng: Random, rows: NDArray[np.intp], weights: NDArray[np.float64], most: float
) -> int | None:
    """One of `rows` with probability weights[row] / sum; None if all weights are 0."""
    drawn = draws_proportional(rng, rows, weights, most, 1)
    return drawn[0] if drawn else None


def draws_proportional(
    rng: Random, rows: NDArray[np.intp], weights: NDArray[np.float64], most: float, count: int
) -> list[int]:
    """`count` of `rows`, each with probability weights[row] / sum; empty if all weights are 0.

    `weights` is indexed by row; `most` is an upper bound of them. Rejection sampling: a uniformly drawn row
    is accepted with probability weight / most. So a changed weight needs no update, and a draw takes
    most / mean tries. After `TRIES` rejections the draw is made exactly, in O(len(rows)).
    """
    size = len(rows)
    bits, tries = size.bit_length(), TRIES if most > 0 and size else 0
    getrandbits, random, row_at, weight_of = rng.getrandbits, rng.random, rows.data, weights.data
    drawn: list[int] = []
    for _ in range(count):
        for _ in range(tries):
            # The same draws as `randrange`, four times as fast: draws take a large part of a decision.
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
    """A uniform draw among those of `rows` that are marked; None if none is. `marks` is indexed by row."""
    for _ in range(TRIES if len(rows) else 0):
        row: int = rows.item(rng.randrange(len(rows)))
        if marks[row]:
            return row
    marked = rows[marks[rows]]
    return int(marked[rng.randrange(len(marked))]) if len(marked) else None


def draw_rows(rng: Random, rows: NDArray[np.intp], count: int, distinct: bool) -> tuple[int, ...]:
    """`count` of `rows` (at least one), drawn uniformly, with replacement unless `distinct`.

    If `distinct` rows are fewer than `count`, each is drawn equally often, up to one.
    """
    size = len(rows)
    if not distinct:
        return tuple(int(rows[rng.randrange(size)]) for _ in range(count))
    whole, rest = divmod(count, size)
    every = tuple(rows.tolist()) * whole if whole else ()  # listing all rows of a large cluster takes long
    return every + tuple(int(rows[at]) for at in rng.sample(range(size), rest))
