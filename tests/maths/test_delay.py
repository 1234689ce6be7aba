"""The formula for D, against the published bound of locality and its golden cases."""

from __future__ import annotations

from math import ceil, exp

import pytest

from eclectus.maths.delay import skips_for


def expected_locality(skips: float, tasks: int, nodes: int, copies: int) -> float:
    """The paper's lower bound over the life of a job."""
    x = exp(-copies * skips / nodes)
    return 1.0 - x / (1.0 - x) / tasks


@pytest.mark.parametrize(
    ("job", "least", "whole"),
    [
        ((0.95, 20, 3, 100), 23.1049, 24),
        ((0.9, 10, 3, 100), 23.1049, 24),
        ((0.99, 10, 3, 100), 79.9298, 80),
        ((0.95, 1, 3, 100), 101.4841, 102),
        ((0.95, 20, 1, 100), 69.3147, 70),
        ((0.95, 20, 3, 1000), 231.0491, 232),
        ((0.95, 1000, 3, 100), 0.6601, 1),
        ((0.9, 50, 2, 80), 7.2929, 8),
        ((0.8, 5, 3, 60), 13.8629, 14),
        ((0.98, 200, 3, 500), 37.1906, 38),
        ((0.95, 1, 2, 40), 60.8904, 61),
    ],
)
def test_golden_skips(job: tuple[float, int, int, int], least: float, whole: int) -> None:
    locality, tasks, copies, nodes = job
    found = skips_for(locality, tasks, nodes, copies)
    assert found == pytest.approx(least, abs=5e-5)
    assert ceil(found) == whole
    assert expected_locality(ceil(found), tasks, nodes, copies) >= locality
    assert expected_locality(found, tasks, nodes, copies) == pytest.approx(locality)


def test_golden_bounds() -> None:
    assert [round(expected_locality(d, 20, 100, 3), 4) for d in (24, 23)] == [0.9526, 0.9497]
    assert [round(expected_locality(d, 5, 60, 3), 4) for d in (14, 13)] == [0.8027, 0.7815]
