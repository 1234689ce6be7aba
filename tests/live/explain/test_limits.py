"""How many explanations are made."""

import asyncio
from contextlib import suppress

import pytest

from eclectus.kubeclient.serving.pages import BusyError
from eclectus.live import limits as bounds
from eclectus.live.limits import Limits


class World:
    """Limits, and the time."""

    def __init__(self):
        self.now = 1000.0
        self.limits = Limits(lambda: self.now)


def admitted(world, times, namespaces=("a", "b")):
    """How many of so many callers, who ask about each of these in turn, are admitted."""
    found = 0
    for number in range(times):
        try:
            with world.limits.admitted(namespaces[number % len(namespaces)]):
                found += 1
        except BusyError:
            pass
    return found


def test_after_some_in_a_row_so_many_a_second_are_admitted():
    world = World()
    assert admitted(world, 100) == bounds.IN_A_ROW
    world.now += 2
    assert admitted(world, 100) == 2 * bounds.A_SECOND


def test_of_many_callers_at_once_so_many_wait_and_the_others_are_refused():
    world = World()
    waiting = [world.limits.admitted(f"{number}") for number in range(bounds.WAITING_MOST)]
    for each in waiting:
        each.__enter__()
    with pytest.raises(BusyError, match="5 a second and 16 at a time"):
        world.limits.admitted("a").__enter__()
    waiting[0].__exit__(None, None, None)
    assert admitted(world, 1) == 1


def test_who_asks_about_one_namespace_leaves_half_to_others():
    world = World()
    assert admitted(world, 100, ["a"]) == bounds.IN_A_ROW / 2
    assert admitted(world, 100, ["b"]) == bounds.IN_A_ROW / 2
    world.now += 2
    assert admitted(world, 100, ["a"]) == bounds.A_SECOND
    assert admitted(world, 100, ["c"]) == bounds.A_SECOND, "as many as of all are left"


def test_half_of_those_that_wait_are_about_one_namespace_and_the_refusal_names_it():
    world = World()
    waiting = [world.limits.admitted("a") for _ in range(bounds.WAITING_MOST // 2)]
    for each in waiting:
        each.__enter__()
    with pytest.raises(BusyError, match=r"explanations about namespace a .* 2\.5 a second and 8 at a time"):
        world.limits.admitted("a").__enter__()
    assert admitted(world, 1, ["b"]) == 1


def test_pages_of_lists_are_fewer_and_leave_explanations():
    world = World()

    def listed(times, namespace):
        found = 0
        for _ in range(times):
            with suppress(BusyError), world.limits.admitted_to_list(namespace):
                found += 1
        return found

    assert listed(100, "a") == bounds.LISTED_IN_A_ROW / 2
    world.now += 4
    assert listed(100, "a") == 4 * bounds.LISTED_A_SECOND / 2
    assert admitted(world, 1, ["a"]) == 1
    with pytest.raises(BusyError, match=r"pages of lists about namespace a .* 1 a second"):
        world.limits.admitted_to_list("a").__enter__()


def test_of_explanations_of_a_changed_state_one_namespace_gets_half_too():
    world, found = World(), 0
    for _ in range(bounds.CHANGED_IN_A_ROW):
        try:
            with world.limits.admitted_to_change("a"):
                found += 1
        except BusyError:
            pass
    assert found == bounds.CHANGED_IN_A_ROW / 2
    with world.limits.admitted_to_change("b"):
        pass


def test_one_caller_is_served_after_the_other():
    world, order = World(), []

    async def ask(name):
        async with world.limits.turn:
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    async def work():
        await asyncio.gather(ask("a"), ask("b"))

    asyncio.run(work())
    assert order == ["a begins", "a ends", "b begins", "b ends"]
