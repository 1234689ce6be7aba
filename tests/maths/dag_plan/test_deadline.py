"""The deadline of a job: what moves it, and what does not."""

from __future__ import annotations

from math import inf

import pytest

from eclectus.maths.dag_plan import Deadline

FIRST = Deadline().replanned(0.0, 100.0)


def test_the_first_plan_sets_it() -> None:
    assert Deadline(100.0) == FIRST
    assert Deadline().replanned(0.0, 100.0, growth=2.0) == FIRST


@pytest.mark.parametrize(
    ("growth", "at"), [(0.5, 100.0), (1.0, 100.0), (1.25, 84.0), (2.0, 60.0), (4.0, 50.0), (inf, 50.0)]
)
def test_an_earlier_end_moves_it_as_far_as_the_share_has_grown(growth: float, at: float) -> None:
    assert FIRST.replanned(20.0, 50.0, growth=growth) == Deadline(at)
    assert FIRST.replanned(20.0, 50.0, growth=growth, excused=True) == Deadline(at)


def test_a_later_end_does_not_move_it() -> None:
    assert FIRST.replanned(20.0, 110.0, growth=2.0) == FIRST


def test_a_smaller_share_or_lost_work_lets_it_slip() -> None:
    slipped = FIRST.replanned(1.0, 110.0, excused=True).replanned(2.0, 115.0, excused=True)
    assert slipped == Deadline(115.0, slips=2, slip_seconds=15.0)
    assert slipped.replanned(3.0, 105.0, excused=True) == Deadline(105.0, slips=2, slip_seconds=15.0)


def test_what_is_within_the_error_of_the_times_is_no_slip() -> None:
    assert FIRST.replanned(0.0, 100.5, excused=True) == FIRST
    assert FIRST.replanned(0.0, 102.0, excused=True).slips == 1
