"""What one namespace takes from the speeds that others have learned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eclectus.maths.service_rates import LEAST_SAMPLES, MOST_PRIOR, Votes, prior, vote

LOGS = st.floats(-20, 20) | st.just(float("nan"))


def tables(most: int = 6) -> st.SearchStrategy[np.ndarray]:
    return (
        st.integers(1, 4)
        .flatmap(
            lambda rows: st.lists(st.lists(LOGS, min_size=rows, max_size=rows), min_size=1, max_size=most)
        )
        .map(np.array)
    )


def plain_median(values: list[float]) -> float:
    """The number nearest to 0 between the lower and the upper median."""
    known = sorted(each for each in values if not np.isnan(each))
    if not known:
        return float("nan")
    lower, upper = known[(len(known) - 1) // 2], known[len(known) // 2]
    return min(max(0.0, lower), upper)


@given(tables())
def test_a_median_equals_a_plain_one(votes: np.ndarray) -> None:
    rows, known = range(votes.shape[1]), Votes(votes)
    assert known.median() == pytest.approx([plain_median(votes[:, row]) for row in rows], nan_ok=True)
    for each in range(len(votes)):
        others = np.delete(votes, each, axis=0)
        wanted = [plain_median(others[:, row]) for row in rows]
        assert known.median(without=each) == pytest.approx(wanted, nan_ok=True)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=6), st.floats(-1e6, 1e6))
@example([1.0], -1e6)
def test_one_liar_beside_honest_votes_moves_a_median_within_0_and_theirs(
    honest: list[float], lie: float
) -> None:
    (median,) = Votes([np.array([each]) for each in (*honest, lie)]).median()
    assert min(0.0, *honest) <= median <= max(0.0, *honest)


@given(
    st.lists(LOGS, min_size=1, max_size=8), st.lists(st.booleans(), min_size=8, max_size=8), st.floats(-3, 3)
)
def test_a_prior_is_bounded_and_a_common_factor_says_nothing(
    logs: list[float], is_known: list[bool], shift: float
) -> None:
    median, marks = np.array(logs), np.array(is_known[: len(logs)])
    found = prior(median, marks)
    assert ((found >= 1 / MOST_PRIOR - 1e-12) & (found <= MOST_PRIOR + 1e-12)).all()
    assert (found[np.isnan(median)] == 1.0).all()
    small = np.clip(median, -0.1, 0.1)
    few = np.clip(shift, -1.0, 1.0)
    assert prior(small + few, marks) == pytest.approx(prior(small, marks))


def test_a_vote_has_mean_0_and_needs_samples() -> None:
    found = vote(np.array([1.0, 4.0, 9.0]), np.array([LEAST_SAMPLES, 100.0, LEAST_SAMPLES - 0.1]))
    assert found == pytest.approx([-np.log(2.0), np.log(2.0), np.nan], nan_ok=True)
    assert np.isnan(vote(np.ones(2), np.zeros(2))).all()
