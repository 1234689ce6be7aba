"""Random draws: in the right proportions, and never of excluded rows."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from eclectus.maths.sampling import TRIES, draw_marked, draw_proportional

DRAWS = 20_000
CHI_SQUARE_99_9 = {3: 16.27, 8: 26.12, 9: 27.88}  # by degrees of freedom


def chi_square(counts: Counter[int], expected: dict[int, float]) -> float:
    total = sum(counts.values())
    return sum((counts[row] - total * share) ** 2 / (total * share) for row, share in expected.items())


@pytest.mark.parametrize("most", [6.0, 60.0], ids=["tight bound", "loose bound"])
def test_rows_come_in_proportion_to_their_weights(most: float) -> None:
    weights = np.array([1.0, 2.0, 3.0, 6.0, 99.0])
    rows, rng = np.array([0, 1, 2, 3]), Random(1)
    counts = Counter(draw_proportional(rng, rows, weights, most) for _ in range(DRAWS))
    shares = {row: weights[row] / 12 for row in (0, 1, 2, 3)}
    assert set(counts) == set(shares)
    assert chi_square(counts, shares) < CHI_SQUARE_99_9[3]  # type: ignore[arg-type]


def test_a_node_that_outweighs_all_others_is_drawn_exactly() -> None:
    """Most tries are rejected here, so the exact draw decides."""
    weights = np.full(2000, 1e-4)
    weights[1234] = 1.0
    rng = Random(2)
    rows = np.arange(2000)
    share = 1.0 / weights.sum()
    hits = sum(draw_proportional(rng, rows, weights, 1.0) == 1234 for _ in range(3000))
    assert hits / 3000 == pytest.approx(share, abs=4 * (share * (1 - share) / 3000) ** 0.5)


def test_a_weight_of_nothing_is_never_drawn() -> None:
    weights = np.array([0.0, 1e-9, 0.0, 1.0, 0.0])
    rng = Random(3)
    drawn = {draw_proportional(rng, np.arange(5), weights, 1.0) for _ in range(DRAWS)}
    assert drawn <= {1, 3}


@pytest.mark.parametrize("rows", [[], [0, 2]], ids=["no rows", "no weight"])
def test_without_rows_or_weights_nothing_is_drawn(rows: list[int]) -> None:
    weights = np.array([0.0, 1.0, 0.0])
    assert draw_proportional(Random(4), np.array(rows, dtype=np.intp), weights, 1.0) is None


def test_with_all_weights_and_the_bound_0_nothing_is_drawn() -> None:
    assert draw_proportional(Random(4), np.arange(3), np.zeros(3), 0.0) is None


def test_example_three_draws_the_heavy_worker_half_the_time_and_twice_a_quarter() -> None:
    """One worker of rate m beside m of rate 1: p_1 = 1/2, P(same worker twice) = sum p_i^2, about 1/4."""
    m = 100
    weights = np.append(float(m), np.ones(m))
    rng, rows = Random(5), np.arange(m + 1)
    pairs = [[draw_proportional(rng, rows, weights, m) for _ in range(2)] for _ in range(DRAWS)]
    assert np.mean([pair[0] == 0 for pair in pairs]) == pytest.approx(0.5, abs=0.015)
    assert np.mean([0 in pair for pair in pairs]) == pytest.approx(0.75, abs=0.013)
    assert np.mean([pair[0] == pair[1] for pair in pairs]) == pytest.approx(
        0.25 + m / (2 * m) ** 2, abs=0.013
    )


def test_example_one_draws_the_same_worker_twice_a_fifth_of_the_time() -> None:
    weights = np.append(np.ones(9), 6.0)
    rng, rows = Random(6), np.arange(10)
    pairs = [[draw_proportional(rng, rows, weights, 6.0) for _ in range(2)] for _ in range(DRAWS)]
    assert np.mean([pair[0] == pair[1] for pair in pairs]) == pytest.approx(0.2, abs=0.012)


def test_marked_rows_are_drawn_alike() -> None:
    marks = np.arange(20) % 2 == 0
    rng = Random(7)
    counts = Counter(draw_marked(rng, np.arange(20), marks) for _ in range(DRAWS))
    assert chi_square(counts, dict.fromkeys(range(0, 20, 2), 0.1)) < CHI_SQUARE_99_9[9]  # type: ignore[arg-type]


def test_one_marked_row_among_thousands_is_found() -> None:
    marks = np.zeros(100 * TRIES, dtype=bool)
    marks[77] = True
    assert draw_marked(Random(8), np.arange(100 * TRIES), marks) == 77


@pytest.mark.parametrize("rows", [[], [0, 1]], ids=["no rows", "no marks"])
def test_without_marked_rows_nothing_is_drawn(rows: list[int]) -> None:
    assert draw_marked(Random(9), np.array(rows, dtype=np.intp), np.zeros(2, dtype=bool)) is None


def test_equal_chances_draw_alike() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    one, other = Random(10), Random(10)
    assert [draw_proportional(one, np.arange(3), weights, 3.0) for _ in range(50)] == [
        draw_proportional(other, np.arange(3), weights, 3.0) for _ in range(50)
    ]


def test_rows_are_drawn_as_randrange_draws_them() -> None:
    """A tape replays draws that were made by any release."""
    weights, rows = np.array([1.0, 9.0, 2.0, 5.0, 3.0]), np.array([4, 1, 0, 3, 2])
    one, other = Random(6), Random(6)
    for _ in range(200):
        row = None
        while row is None:
            tried = int(rows[other.randrange(5)])
            row = tried if other.random() * 9 < weights[tried] else None
        assert draw_proportional(one, rows, weights, 9.0) == row
