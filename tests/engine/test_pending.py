"""How a Place policy may pull its turns: one by one, all, or one of each lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from builders import make_engine, make_task
from eclectus.framework import Action, Defer, PendingTasks, Place, PlacePolicy, Unschedulable, View
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from worlds import World, numbered, small_world


class Pulling(PlacePolicy):
    """Pulls and answers as the test says."""

    def __init__(self, pull: Callable[[View, PendingTasks], Iterator[Action]]) -> None:
        self._pull = pull

    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        return self._pull(view, turns)


def world_of(pull: Callable[[View, PendingTasks], Iterator[Action]], cpu: float = 9) -> World:
    return small_world(make_engine(Pulling(pull)), cpu=cpu)


LANES = [
    make_task("a0", workload="a", created=0),
    make_task("a1", workload="a", created=1),
    make_task("b0", workload="b", created=2),
    make_task("a2", workload="a", created=3),
    make_task("b1", workload="b", created=4),
]


def test_one_of_each_lane_is_at_hand_until_it_is_answered() -> None:
    seen: list[list[str]] = []

    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        turns.one_per_queue()
        while at_hand := list(turns):
            seen.append([task.name for task in at_hand])
            for task in at_hand:
                yield Place(task, 0)

    world = world_of(pull)
    world.add(*LANES)
    assert seen == [["a0", "b0"], ["a1", "b1"], ["a2"]]
    assert [bind.name for bind in world.binds] == ["a0", "b0", "a1", "b1", "a2"]


def test_lanes_of_which_something_was_answered_come_again_in_the_order() -> None:
    seen: list[str] = []

    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        turns.one_per_queue()
        first, second = turns
        yield Place(second, 0)
        yield Place(first, 0)
        seen.extend(task.name for task in turns)

    world = world_of(pull)
    world.answers_binds = False
    world.add(*LANES)
    assert seen == ["a1", "b1"]
    assert [bind.name for bind in world.binds] == ["b0", "a0"]
    assert world.engine.queue_counts().active == 3


def test_a_lane_goes_on_after_a_plan_and_ends_with_a_refusal() -> None:
    seen: list[str] = []

    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        turns.one_per_queue()
        answers: dict[str, Callable[[Task], Action]] = {
            "a0": lambda task: Defer(task, 0),
            "b0": Unschedulable,
        }
        while at_hand := list(turns):
            for task in at_hand:
                seen.append(task.name)
                yield answers.get(task.name, Unschedulable)(task)

    world = world_of(pull)
    world.add(*LANES)
    assert seen == ["a0", "b0", "a1"]
    assert world.engine.queue_counts().unschedulable == 2 + 3


def test_an_order_that_fails_is_not_asked_again_however_much_is_answered() -> None:
    class Failing(FifoOrder):
        def queues_in_order(self, view, lanes):  # type: ignore[no-untyped-def]
            for lane in lanes:
                yield lane
                raise RuntimeError("no more")

    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        turns.one_per_queue()
        while at_hand := list(turns):
            for task in at_hand:
                yield Place(task, 0)

    world = small_world(make_engine(Pulling(pull), order=Failing()), cpu=9)
    world.step()
    world.add(*LANES)
    assert len(world.faults) == len({bind.name for bind in world.binds})  # one a round


def test_who_takes_all_may_refuse_each_and_a_lane_is_refused_once() -> None:
    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        for task in list(turns):
            yield Unschedulable(task)

    world = world_of(pull)
    world.add(*numbered(5))
    assert world.engine.queue_counts().unschedulable == 5
    assert world.engine.queue_counts().counters.attempts["unschedulable", "eclectus"] == 5


def test_those_passed_over_are_not_offered_in_this_round_and_come_again_in_the_next() -> None:
    seen: list[str] = []

    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        for task in turns:
            seen.append(task.name)
            yield Defer(task, 0)
            if task.name == "a0":
                assert turns.skip(task, 1) == 1

    world = world_of(pull)
    world.add(*LANES)
    assert seen == ["a0", "b0", "a2", "b1"]
    world.step()
    assert seen[4:] == ["a0", "b0", "a2", "b1"]


def test_no_more_are_passed_over_than_there_are() -> None:
    found: list[int] = []

    def pull(view: View, turns: PendingTasks) -> Iterator[Action]:
        for task in turns:
            yield Defer(task, 0)
            found.append(turns.skip(task, 9))
            found.append(turns.skip(task, -1))

    world = world_of(pull)
    world.add(*LANES)
    assert found == [2, 0, 1, 0]
