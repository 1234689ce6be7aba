"""Bookings over time: when there is room beside them, and what changes their sum."""

from __future__ import annotations

from math import inf
from random import Random

import pytest
from msgspec.structs import replace

from builders import make_engine
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.carbyne.bookings import FOREVER, Booking, Bookings
from eclectus.policies.place.fit import BestFit
from worlds import numbered, small_world


def two() -> Bookings:
    """Of ten, six are booked from 0 to 5, and eight from 8 to 10."""
    found = Bookings((10.0,))
    found.set("a", [Booking(-FOREVER, 5.0, (6.0,))], 0.0)
    found.set("b", [Booking(8.0, 10.0, (8.0,))], 0.0)
    return found


@pytest.mark.parametrize(
    ("start", "end", "amount", "at"),
    [
        (0.0, 8.0, 4.0, 0.0),
        (0.0, 8.0, 5.0, 5.0),
        (5.0, 8.0, 10.0, 5.0),
        (4.99999, 8.00001, 10.0, 4.99999),  # times that differ by less than a ten-thousandth are one
        (5.0, 8.1, 4.0, 10.0),
        (0.0, 99.0, 2.0, 0.0),
        (11.0, FOREVER, 10.0, 11.0),
    ],
)
def test_there_is_room_when_what_is_in_the_way_has_ended(
    start: float, end: float, amount: float, at: float
) -> None:
    assert two().free_at(Booking(start, end, (amount,))) == at


def test_there_is_never_room_beside_what_has_no_end() -> None:
    found = two()
    found.set("service", [Booking(-FOREVER, FOREVER, (3.0,))], 0.0)
    assert found.free_at(Booking(0.0, 99.0, (8.0,))) == inf
    assert found.drop("service")
    assert not found.drop("service")
    assert found.free_at(Booking(0.0, 1.0, (4.0,))) == 0.0


def test_what_is_moved_is_not_in_its_own_way() -> None:
    found, moved = two(), Booking(8.0, 10.0, (4.0,))
    assert found.free_at(Booking(7.0, 9.0, (4.0,))) == 10.0
    assert found.free_at(Booking(7.0, 9.0, (4.0,)), moved) == 7.0
    assert found.free_at(Booking(7.0, 9.0, (7.0,)), moved) == 10.0


def test_a_resource_of_which_nothing_is_asked_is_in_nobodys_way() -> None:
    found = Bookings((10.0, 10.0))
    found.set("a", [Booking(0.0, 5.0, (1.0, 11.0))], 0.0)
    assert found.free_at(Booking(0.0, 1.0, (9.0, 0.0))) == 0.0
    assert found.free_at(Booking(0.0, 1.0, (9.0, 1.0))) == 5.0


def test_without_bookings_all_is_free() -> None:
    assert Bookings((10.0,)).free_at(Booking(3.0, 4.0, (10.0,))) == 3.0


def test_a_start_as_booked_changes_nothing_of_the_sum() -> None:
    found = two()
    assert found.set("b", [Booking(7.0, 9.0, (8.0,))], 6.0)
    assert not found.set("b", [Booking(-FOREVER, 9.0, (8.0,))], 7.0)
    assert found.set("b", [], 8.0)


def test_others_may_be_in_the_way_of_a_new_plan_where_it_wants_more_than_before() -> None:
    found = two()
    assert found.allow("b", [Booking(5.0, 7.0, (10.0,))])
    assert not found.allow("b", [Booking(4.0, 7.0, (5.0,))])
    found.set("a", [Booking(0.0, 5.0, (11.0,))], 0.0)  # more than there is: nobody else's fault
    assert found.allow("b", [Booking(8.0, 9.0, (8.0,))])
    assert found.allow("new", [Booking(5.0, 8.0, (10.0,))])
    assert not found.allow("new", [Booking(4.0, 8.0, (1.0,))])


def test_a_namespace_without_pods_books_nothing_any_more() -> None:
    order = Carbyne(overhang="bounded")
    run = small_world(make_engine(BestFit(), order=order), cpu=20)
    run.add(*numbered(2), *(replace(each, namespace="b") for each in numbered(2, prefix="b")))
    assert order._planner.bookings._changes.keys() == {"default/", "b/"}
    run.end("b0")
    run.end("b1")
    assert order._planner.bookings._changes.keys() == {"default/"}


@pytest.mark.parametrize("seed", range(20))
def test_room_is_found_as_by_counting_each_second(seed: int) -> None:
    random, found = Random(seed), Bookings((10.0,))
    used = [0] * 40
    for at in range(6):
        start = random.randrange(20)
        end, amount = start + random.randrange(1, 9), random.randrange(1, 4)
        found.set(f"j{at}", [Booking(float(start), float(end), (float(amount),))], 0.0)
        for second in range(start, end):
            used[second] += amount
    for start in range(20):
        end, amount = start + random.randrange(1, 9), random.randrange(1, 11)
        in_the_way = [second for second in range(start, end) if used[second] + amount > 10]
        found_at = found.free_at(Booking(float(start), float(end), (float(amount),)))
        if not in_the_way:
            assert found_at == start
        else:  # no later than when what is there after the last of them is something else
            last = in_the_way[-1]
            other = next(second for second in range(last + 1, 40) if used[second] != used[last])
            assert last + 1 <= found_at <= other
