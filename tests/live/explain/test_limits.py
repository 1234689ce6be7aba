"""How many explanations are made."""

import asyncio
from contextlib import suppress

import pytest

from eclectus.kubeclient.serving.pages import BusyError
from eclectus.live import limits as bounds
from eclectus.live.limits import Limits
from eclectus.model.errors import QuestionError


class World:
    """Limits, the time, and for how much of it the thread has worked."""

    def __init__(self):
        self.now, self.worked = 1000.0, 0.0
        self.limits = Limits(lambda: self.now, lambda: self.worked)


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


COST = 0.125  # of a what-if on a large cluster


def changed(world, times, namespace="a", cost=COST):
    """How many of so many questions about a changed state are answered."""

    def answer():
        world.worked += cost

    found = 0
    for _ in range(times):
        with suppress(BusyError):
            world.limits.charged(namespace, answer)
            found += 1
    return found


def test_questions_about_a_changed_state_cost_what_they_take_and_one_namespace_gets_half():
    world, half = World(), bounds.SHARE_OF_ONE * bounds.CHANGED_SECONDS
    # The last one may begin when hardly anything is left.
    assert changed(world, 100) == half / COST + 1
    assert changed(world, 100, "b") in (half / COST, half / COST - 1), "others have theirs"
    assert changed(world, 100, "c") <= 1, "all together are bounded"


@pytest.mark.parametrize("cost", [0.03125, 0.125, 1.0])
def test_in_the_long_run_they_take_a_share_of_the_time_whatever_one_costs(cost):
    world, seconds = World(), 4000
    for _ in range(seconds):
        for namespace in "abc":
            changed(world, 10, namespace, cost)
        world.now += 1
    share = bounds.CHANGED_SHARE
    assert share * seconds <= world.worked <= bounds.CHANGED_SECONDS + share * seconds + cost


def test_who_has_used_up_the_time_learns_when_to_ask_again():
    world = World()
    changed(world, 100)
    with pytest.raises(BusyError, match=r"about namespace a .*, 2\.5% of it: ask again in 5 s") as raised:
        world.limits.charged("a", lambda: None)
    world.now += raised.value.seconds - 0.5
    assert changed(world, 1) == 0
    world.now += 0.5
    assert changed(world, 100) == 1


def test_a_question_that_fails_costs_too():
    world = World()

    def fail():
        world.worked += 3
        raise QuestionError("there is no such node")

    with pytest.raises(QuestionError):
        world.limits.charged("a", fail)
    assert changed(world, 1) == 0


def test_what_a_changed_state_costs_leaves_other_explanations():
    world = World()
    for _ in range(100):
        with suppress(BusyError), world.limits.admitted_to_change("a"):
            pass
    assert admitted(world, 100, ["a"]) == bounds.IN_A_ROW / 2


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
