"""Work under a changing speed."""

import math

import pytest

from eclectus_e2e.testbed.kubelet.pods.work import Work


def test_work_takes_its_size_over_the_speed() -> None:
    assert Work(8.0, speed=4.0, since=100.0).done_at() == 102.0


def test_a_change_of_speed_keeps_what_is_done() -> None:
    work = Work(8.0, speed=1.0, since=0.0)
    work.change_speed(4.0, 2.0)  # half is done; the other half at twice the speed
    assert work.done_at() == 6.0


def test_no_progress_at_speed_zero() -> None:
    work = Work(8.0, speed=1.0, since=0.0)
    work.change_speed(2.0, 0.0)
    assert work.done_at() == math.inf
    work.change_speed(50.0, 1.0)
    assert work.done_at() == 56.0


def test_endless_work_stays_endless() -> None:
    work = Work(math.inf, speed=3.0, since=0.0)
    work.change_speed(5.0, 0.0)
    work.change_speed(9.0, 1.0)
    assert work.done_at() == math.inf


@pytest.mark.parametrize("cuts", [1, 7, 100])
def test_settling_often_equals_settling_once(cuts: int) -> None:
    work = Work(10.0, speed=0.5, since=0.0)
    for step in range(1, cuts + 1):
        work.settle(12.0 * step / cuts)
    assert work.remaining == pytest.approx(4.0)
