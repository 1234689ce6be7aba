"""A preference is given up exactly when the task would end later on preferred nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eclectus.policies.place.phoenix import MARGIN, relaxes

SECONDS = st.floats(0.01, 1e5)


@given(SECONDS, SECONDS, SECONDS)
def test_a_task_that_waits_gives_up_exactly_when_it_would_end_later(
    wait: float, service: float, elsewhere: float
) -> None:
    expected = wait + service > elsewhere
    assert relaxes(wait, service, elsewhere_seconds=elsewhere, is_waiting=True) == expected


@given(SECONDS, SECONDS, SECONDS)
def test_a_task_begins_to_wait_only_for_a_gain_beyond_the_margin(
    wait: float, service: float, elsewhere: float
) -> None:
    begins = not relaxes(wait, service, elsewhere_seconds=elsewhere, is_waiting=False)
    assert begins == (MARGIN * (wait + service) <= elsewhere)


@given(SECONDS, SECONDS, SECONDS)
def test_what_began_to_wait_goes_on_while_its_estimates_move_by_less_than_the_margin(
    wait: float, service: float, elsewhere: float
) -> None:
    if not relaxes(wait, service, elsewhere_seconds=elsewhere, is_waiting=False):
        later = 1.09 * (wait + service) - service
        assert not relaxes(later, service, elsewhere_seconds=elsewhere, is_waiting=True)


@given(SECONDS, SECONDS)
def test_without_a_gain_nothing_waits(wait: float, service: float) -> None:
    assert relaxes(wait, service, elsewhere_seconds=service, is_waiting=False)
    assert relaxes(wait, service, elsewhere_seconds=service, is_waiting=True)
