"""Rate, gaps and targets of probes."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from eclectus.maths.probing import draw_target, gap_seconds, probe_rate


@pytest.mark.parametrize(
    ("capacity", "arrivals", "rate"),
    [(100, 60, 4.0), (100, 99.9, 0.5), (100, 130, 0.5), (1000, 100, 20.0), (0, 0, 0.5)],
)
def test_a_tenth_of_the_spare_capacity_between_two_bounds(
    capacity: float, arrivals: float, rate: float
) -> None:
    assert probe_rate(capacity, arrivals, share=0.1, least=0.5, most=20.0) == pytest.approx(rate)


def test_gaps_are_exponential_with_that_rate() -> None:
    rng = Random(1)
    gaps = np.array([gap_seconds(rng, 4.0) for _ in range(20_000)])
    assert gaps.mean() == pytest.approx(0.25, rel=0.03)
    assert gaps.std() == pytest.approx(0.25, rel=0.03)


def test_at_rate_0_no_probe_is_sent() -> None:
    assert gap_seconds(Random(2), 0.0) == float("inf")


def test_nodes_are_drawn_uniformly_and_workloads_by_their_share() -> None:
    rng, nodes = Random(3), [2, 5, 7]
    drawn = [draw_target(rng, nodes, [3.0, 0.0, 1.0]) for _ in range(12_000)]
    names, work = (Counter(part) for part in zip(*drawn, strict=True))  # type: ignore[misc]
    assert set(names) == {2, 5, 7}
    assert min(names.values()) / max(names.values()) > 0.92
    assert set(work) == {0, 2}
    assert work[0] / 12_000 == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(("nodes", "shares"), [([], [1.0]), ([1], []), ([1], [0.0, 0.0])])
def test_without_a_node_or_recent_tasks_there_is_no_probe(nodes: list[int], shares: list[float]) -> None:
    assert draw_target(Random(4), nodes, shares) is None
