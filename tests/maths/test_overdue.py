"""The speed bound from overdue tasks: against a plain computation, and false suspicion of healthy nodes."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.maths.load import speed_share, unlikelihood

UNLIKELIHOOD = unlikelihood(30, 2.0)


def share(*overruns: float, limit: float = UNLIKELIHOOD) -> float:
    """g of one node with these tasks."""
    rows = np.zeros(len(overruns), dtype=np.intp)
    return float(speed_share(rows, np.array(overruns), 1, limit)[0])


TASKS = st.lists(st.tuples(st.integers(0, 4), st.floats(0.0, 1e6)), max_size=30)


@given(TASKS)
@settings(deadline=None)
def test_it_equals_a_plain_computation(tasks: list[tuple[int, float]]) -> None:
    found = speed_share(
        np.array([r for r, _ in tasks], dtype=np.intp), np.array([y for _, y in tasks]), 6, UNLIKELIHOOD
    )
    for row in range(6):
        late = sorted((y for at, y in tasks if at == row and y > 0), reverse=True)
        bounds = [exp(UNLIKELIHOOD / (place + 1)) / y for place, y in enumerate(late)]
        assert found[row] == pytest.approx(min([1.0, *bounds]))


def test_tasks_within_their_expected_time_give_no_bound() -> None:
    assert share(0.2, 0.9, 1.0, 0.0) == 1.0


def test_without_running_tasks_there_is_no_bound() -> None:
    assert share() == 1.0


def test_one_hung_task_lowers_the_bound_little_whatever_runs_beside_it() -> None:
    assert share(500.0) == 1.0
    assert share(500.0, 1.1, 0.5, 0.2) == 1.0
    assert share(3600.0) == pytest.approx(0.25)


def test_silence_of_four_slots_counts_after_five_and_a_half_mean_times() -> None:
    assert share(5.4, 5.4, 5.4, 5.4) == 1.0
    assert share(11.0, 11.0, 11.0, 11.0) == pytest.approx(0.5, rel=0.01)
    assert share(55.0, 55.0, 55.0, 55.0) == pytest.approx(0.1, rel=0.01)


def test_newly_started_tasks_do_not_raise_the_bound() -> None:
    assert share(55.0, 55.0, 55.0, 55.0, 0.1, 0.3) == share(55.0, 55.0, 55.0, 55.0)


def test_more_nodes_need_more_evidence() -> None:
    assert share(11, 11, 11, 11, limit=unlikelihood(5000, 2.0)) == 1.0


@pytest.mark.parametrize("slots", [1, 4, 16])
@pytest.mark.parametrize("distribution", ["exponential", "scv 10", "equal"])
def test_a_healthy_node_is_suspect_less_often_than_promised(distribution: str, slots: int) -> None:
    """Tasks that all start at once; how often their first end comes too late for g = 1."""
    rng, starts = np.random.default_rng(8), 40_000
    sizes = np.ones((starts, slots))
    if distribution != "equal":
        sizes = rng.exponential(1.0, (starts, slots))
    if distribution == "scv 10":
        rare = 0.5 * (1 - (9 / 11) ** 0.5)
        sizes *= np.where(rng.random((starts, slots)) < rare, 0.5 / rare, 0.5 / (1 - rare))
    silence = sizes.min(axis=1)
    assert np.mean(silence > exp(UNLIKELIHOOD / slots)) <= 30**-2.0


def test_the_bound_holds_for_a_node_of_half_the_learned_speed() -> None:
    """A node of half the learned speed: g < 1/2 would be wrong, and has a probability below n^-x."""
    rng, slots = np.random.default_rng(9), 4
    silence = 2.0 * rng.exponential(1.0, (40_000, slots)).min(axis=1)
    limit = exp(UNLIKELIHOOD / slots) / 0.5
    assert np.mean(silence > limit) <= 30**-2.0
    assert log(limit) > 0
