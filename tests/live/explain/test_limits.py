"""How many explanations are made."""

import asyncio

import pytest

from eclectus.kubeclient.serving.pages import BusyError
from eclectus.live import pages as bounds
from eclectus.live.pages import Limits


class World:
    """Limits, and the time."""

    def __init__(self):
        self.now = 1000.0
        self.limits = Limits(lambda: self.now)


def admitted(world, times):
    """How many of so many callers, one after the other, are admitted."""
    found = 0
    for _ in range(times):
        try:
            with world.limits.admitted():
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
    waiting = [world.limits.admitted() for _ in range(bounds.WAITING_MOST)]
    for each in waiting:
        each.__enter__()
    with pytest.raises(BusyError, match="5 a second and 16 at a time"):
        world.limits.admitted().__enter__()
    waiting[0].__exit__(None, None, None)
    assert admitted(world, 1) == 1


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
