"""How a Place policy may take pending tasks: one by one, all at once, or one of each class queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from builders import make_engine, make_task
from eclectus.framework import Action, Defer, PendingTasks, Place, PlacePolicy, Unschedulable, View
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from worlds import World, numbered, small_world


class ScriptedPolicy(PlacePolicy):
    """Takes and answers tasks by a function of the test."""

    def __init__(self, answer_tasks: Callable[[View, PendingTasks], Iterator[Action]]) -> None:
        self._answer_tasks = answer_tasks

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        return self._answer_tasks(view, pending)


def world_of(answer_tasks: Callable[[View, PendingTasks], Iterator[Action]], cpu: float = 9) -> World:
    return small_world(make_engine(ScriptedPolicy(answer_tasks)), cpu=cpu)


TASKS = [
    make_task("a0", workload="a", created=0),
    make_task("a1", workload="a", created=1),
    make_task("b0", workload="b", created=2),
    make_task("a2", workload="a", created=3),
    make_task("b1", workload="b", created=4),
]


def test_one_task_of_each_queue_is_offered_until_it_is_answered() -> None:
    seen: list[list[str]] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        pending.one_per_queue()
        while at_hand := list(pending):
            seen.append([task.name for task in at_hand])
            for task in at_hand:
                yield Place(task, 0)

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert seen == [["a0", "b0"], ["a1", "b1"], ["a2"]]
    assert [bind.name for bind in world.binds] == ["a0", "b0", "a1", "b1", "a2"]


def test_queues_with_an_answered_task_are_offered_again_in_order() -> None:
    seen: list[str] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        pending.one_per_queue()
        first, second = pending
        yield Place(second, 0)
        yield Place(first, 0)
        seen.extend(task.name for task in pending)

    world = world_of(answer_tasks)
    world.answers_binds = False
    world.add(*TASKS)
    assert seen == ["a1", "b1"]
    assert [bind.name for bind in world.binds] == ["b0", "a0"]
    assert world.engine.queue_counts().active == 3


def test_a_queue_continues_after_defer_and_ends_with_unschedulable() -> None:
    seen: list[str] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        pending.one_per_queue()
        answers: dict[str, Callable[[Task], Action]] = {
            "a0": lambda task: Defer(task, 0),
            "b0": Unschedulable,
        }
        while at_hand := list(pending):
            for task in at_hand:
                seen.append(task.name)
                yield answers.get(task.name, Unschedulable)(task)

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert seen == ["a0", "b0", "a1"]
    assert world.engine.queue_counts().unschedulable == 2 + 3


def test_an_order_that_fails_is_not_asked_again_in_the_cycle() -> None:
    class Failing(FifoOrder):
        def queues_in_order(self, view, queues):  # type: ignore[no-untyped-def]
            for queue in queues:
                yield queue
                raise RuntimeError("no more")

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        pending.one_per_queue()
        while at_hand := list(pending):
            for task in at_hand:
                yield Place(task, 0)

    world = small_world(make_engine(ScriptedPolicy(answer_tasks), order=Failing()), cpu=9)
    world.step()
    world.add(*TASKS)
    assert len(world.faults) == len({bind.name for bind in world.binds})  # one a cycle


def test_a_policy_that_takes_all_tasks_may_answer_each_unschedulable() -> None:
    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in list(pending):
            yield Unschedulable(task)

    world = world_of(answer_tasks)
    world.add(*numbered(5))
    assert world.engine.queue_counts().unschedulable == 5
    assert world.engine.queue_counts().counters.attempts["unschedulable", "eclectus"] == 5


def test_skipped_tasks_are_offered_again_in_the_next_cycle() -> None:
    seen: list[str] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            seen.append(task.name)
            yield Defer(task, 0)
            if task.name == "a0":
                assert pending.skip(task, 1) == 1

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert seen == ["a0", "b0", "a2", "b1"]
    world.step()
    assert seen[4:] == ["a0", "b0", "a2", "b1"]


def test_skip_returns_how_many_tasks_it_skipped() -> None:
    found: list[int] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Defer(task, 0)
            found.append(pending.skip(task, 9))
            found.append(pending.skip(task, -1))

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert found == [2, 0, 1, 0]


def attempts(world: World) -> dict[tuple[str, str], int]:
    return dict(world.engine.queue_counts().counters.attempts)


def test_pods_that_join_an_unschedulable_class_are_attempts_too() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(*(make_task(f"a{i}") for i in range(15)))
    assert len(world.binds) == 4
    assert attempts(world) == {("scheduled", "eclectus"): 4, ("unschedulable", "eclectus"): 11}
    world.add(*(make_task(f"b{i}") for i in range(3)))
    world.step()
    assert attempts(world)["unschedulable", "eclectus"] == 14
