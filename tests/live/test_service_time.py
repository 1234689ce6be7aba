import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.live.watch.service_time import refine


@given(start=st.floats(0, 1000), run=st.floats(0.001, 1000), late=st.floats(0, 30), skew=st.floats(-100, 100))
def test_the_refined_run_is_as_near_as_the_api_allows_and_exact_when_both_ends_are_equally_late(
    start, run, late, skew
):
    api_started, api_finished = (start + skew) // 1, (start + run + skew) // 1
    started, finished = refine(api_started, api_finished, start + late, start + run + late)
    assert finished - started == pytest.approx(run, abs=1e-6)


@pytest.mark.parametrize(
    ("seen_running", "seen_finished", "run"),
    [(10.0, 14.3, 4.3), (13.9, 14.0, 3.0), (10.0, 40.0, 5.0)],
    ids=["both in time", "start seen late", "end seen late"],
)
def test_an_observation_that_was_held_up_counts_no_further_than_a_second_off_the_api(
    seen_running, seen_finished, run
):
    started, finished = refine(100.0, 104.0, seen_running, seen_finished)
    assert finished - started == pytest.approx(run)


def test_a_container_that_ran_before_we_looked_is_timed_by_the_api_alone():
    assert refine(100.0, 104.0, None, 500.0) == (100.0, 104.0)


def test_a_run_never_takes_less_than_nothing():
    started, finished = refine(100.0, 100.0, 5.0, 4.0)
    assert finished == started
