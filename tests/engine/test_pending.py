"""How a Place policy may take pending tasks: one by one, all at once, or one of each class queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from builders import make_engine, make_task
from eclectus.framework import (
    Action,
    Bind,
    Defer,
    OrderTraits,
    PendingTasks,
    Place,
    Unschedulable,
    View,
    Wait,
)
from eclectus.policies.order.fifo import FifoOrder
from worlds import World, numbered, small_world


class ScriptedPolicy(Place):
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


def test_a_policy_may_take_tasks_from_class_queues() -> None:
    seen: list[list[str]] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        queues = list(pending.queues())
        while queues:
            at_hand = [pending.take(queue) for queue in queues]
            seen.append([task.name for task in at_hand if task])
            for task in at_hand:
                assert task is not None
                yield Bind(task, 0)
            queues = [queue for queue in queues if queue.head is not None]

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert seen == [["a0", "b0"], ["a1", "b1"], ["a2"]]
    assert [bind.name for bind in world.binds] == ["a0", "b0", "a1", "b1", "a2"]


def test_class_queues_come_in_the_order_of_their_heads_and_are_not_offered_task_by_task() -> None:
    seen: list[tuple[str, int]] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        first = next(pending)
        yield Bind(first, 0)
        seen.extend((queue.head.name, len(queue)) for queue in pending.queues() if queue.head)
        assert list(pending) == []

    world = world_of(answer_tasks)
    world.answers_binds = False
    world.add(*TASKS)
    assert seen == [("a1", 3), ("b0", 2)]  # with the one that was answered
    assert [bind.name for bind in world.binds] == ["a0"]
    assert world.engine.queue_counts().active == 4


def test_a_queue_goes_on_after_defer_and_ends_with_unschedulable() -> None:
    seen: list[str] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        for queue in list(pending.queues()):
            while (task := pending.take(queue)) is not None:
                seen.append(task.name)
                yield Defer(task, Wait(row=0)) if task.name == "a0" else Unschedulable(task)

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert seen == ["a0", "a1", "b0"]
    assert world.engine.queue_counts().unschedulable == 2 + 3


def test_an_order_that_fails_is_not_asked_again_in_the_cycle() -> None:
    class Failing(FifoOrder):
        traits = OrderTraits()

        def group(self, task):  # type: ignore[no-untyped-def]
            return task.workload

        def rank(self, view, group, head):  # type: ignore[no-untyped-def]
            if head.name in ("a1", "a2"):
                raise RuntimeError("no more")
            return ()

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Bind(task, 0)
        assert list(pending) == list(pending.queues()) == []

    world = small_world(make_engine(ScriptedPolicy(answer_tasks), order=Failing()), cpu=9)
    world.answers_binds = False
    world.add(*TASKS)
    assert [fault.message for fault in world.faults] == ["RuntimeError: no more"]
    assert [bind.name for bind in world.binds] == ["a0"]


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
            yield Defer(task, Wait(row=0))
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
            yield Defer(task, Wait(row=0))
            found.append(pending.skip(task, 9))
            found.append(pending.skip(task, -1))

    world = world_of(answer_tasks)
    world.add(*TASKS)
    assert found == [2, 0, 1, 0]


def test_tasks_are_skipped_in_all_groups_of_their_class() -> None:
    class ByJob(FifoOrder):
        traits = OrderTraits()

        def group(self, task):  # type: ignore[no-untyped-def]
            return task.job

        def rank(self, view, group, head):  # type: ignore[no-untyped-def]
            return (head.created,)

    seen: list[str] = []

    def answer_tasks(view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            seen.append(task.name)
            yield Defer(task, Wait(row=0))
            if task.name == "t0":
                assert pending.skip(task, 3) == 3
            if task.name == "t4":
                assert pending.skip(task, 9) == 1

    world = small_world(make_engine(ScriptedPolicy(answer_tasks), order=ByJob()))
    other = make_task("other", workload="b", created=9.0, job="z")
    world.add(*(make_task(f"t{at}", created=at, job=f"j{at}") for at in range(6)), other)
    assert seen == ["t0", "t4", "other"]
    world.step()
    assert seen[3:] == ["t0", "t4", "other"]


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
