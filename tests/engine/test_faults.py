"""A faulty policy gets a Fault with its name, and only the pod at hand backs off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Bind, Defer, Enqueue, Line, OrderTraits, Reason, Unschedulable, View, Wait
from eclectus.model.events import NodeSeen
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from worlds import World, numbered, small_world


class FaultyPolicy(LeastAllocated):
    """LeastAllocated, except for the pod called `bad`, which `answer` answers."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Any]:
        for task in pending:
            if task.name == "bad":
                yield from self.answer(view, task)
            else:
                yield from super().place(view, iter([task]))


def raises(view: View, task: Task) -> Iterator[Any]:
    raise ZeroDivisionError("by zero")
    yield


def three() -> list[Task]:
    return [make_task("t0", created=0), make_task("bad", created=1), make_task("t1", created=2)]


NAN = float("nan")
FAULTS = {
    "raises": (raises, "ZeroDivisionError: by zero"),
    "a full node": (lambda view, task: [Bind(task, 1)], "default/bad does not fit on node n1 now"),
    "a row without a node": (lambda view, task: [Bind(task, 60)], "there is no node in row 60"),
    "a negative row": (lambda view, task: [Bind(task, -1)], "there is no node in row -1"),
    "a row that is not a number": (lambda view, task: [Bind(task, "n0")], "is no row"),
    "a fractional row": (lambda view, task: [Enqueue(task, 0.5)], "is no row"),
    "a task never offered": (lambda view, task: [Bind(make_task("x"), 0)], "default/x was not offered"),
    "no task": (lambda view, task: [Bind(None, 0)], "None is no task"),
    "no action": (lambda view, task: ["n0"], "'n0' is not an action"),
    "None as an action": (lambda view, task: [None], "None is not an action"),
    "deferred to an infeasible node": (
        lambda view, task: [Defer(task, Wait(row=2))],
        "node n2 may never run",
    ),
    "enqueued at an infeasible node": (lambda view, task: [Enqueue(task, 2)], "node n2 may never run"),
    "deferred until a time in the past": (
        lambda view, task: [Defer(task, Wait(until=0.0, row=1))],
        "cannot be deferred until 0.0",
    ),
    "deferred until nan": (
        lambda view, task: [Defer(task, Wait(until=NAN, row=1))],
        "cannot be deferred until nan",
    ),
    "no reason": (lambda view, task: [Unschedulable(task, "full")], "'full' is no Reason"),
}


def world_with(answer: Any) -> World:
    world = World(
        make_engine(FaultyPolicy(answer)),
        make_node("n0"),
        make_node("n1", cpu=1),
        make_node("n2", unschedulable=True),
    )
    world.add(make_task("placed", node="n1"))
    world.add(*three())
    return world


@pytest.mark.parametrize("fault", FAULTS, ids=list(FAULTS))
def test_an_invalid_answer_is_refused_with_a_fault(fault: str) -> None:
    answer, message = FAULTS[fault]
    world = world_with(answer)
    assert world.node_of("bad") == ""
    assert (world.node_of("t0"), world.node_of("t1")) == ("n0", "n0")
    assert {fault.policy for fault in world.faults} == {"FaultyPolicy"}
    assert message in world.faults[0].message


@pytest.mark.parametrize(
    "fault", ["raises", "a full node", "a row that is not a number", "a fractional row", "no reason"]
)
def test_the_pod_of_an_invalid_answer_backs_off_and_is_reported(fault: str) -> None:
    world = world_with(FAULTS[fault][0])
    assert world.engine.queue_counts().backoff == 1
    [(reason, message)] = world.messages("bad")
    assert reason == "SchedulerError"
    assert FAULTS[fault][1] in message


def test_a_failing_policy_is_reported_once() -> None:
    world = world_with(raises)
    world.sleep(120)
    assert len(world.messages("bad")) == 1


def test_a_task_answered_twice_is_placed_once() -> None:
    world = world_with(lambda view, task: [Bind(task, 0), Bind(task, 0)])
    assert world.node_of("bad") == "n0"
    assert "is answered already" in world.faults[0].message
    assert world.node_of("t1") == "n0"


def test_a_task_that_is_not_answered_is_offered_again_and_reported() -> None:
    offered: list[str] = []
    world = world_with(lambda view, task: offered.append(task.name) or [])
    world.sleep(40)
    assert len(offered) > 1
    assert world.messages("bad")[-1] == (
        "WaitingForNode",
        "waiting although 1 node has room: policy FaultyPolicy has not placed it yet",
    )


def test_a_policy_that_never_stops_answering_is_stopped() -> None:
    def endless(view: View, task: Task) -> Iterator[Any]:
        while True:
            yield None

    world = world_with(endless)
    assert set(world.placed()) == {"placed", "t0", "t1"}
    assert len(world.step(after=1)) <= 101
    assert "erred 100 times in one scheduling cycle" in world.messages("bad")[0][1]


def test_a_policy_that_raises_when_it_is_called_is_one_fault_a_cycle() -> None:
    class Broken(LeastAllocated):
        def place(self, view, pending):  # type: ignore[no-untyped-def]
            raise RuntimeError("not today")

    world = small_world(make_engine(Broken()))
    world.add(make_task())
    assert [fault.message for fault in world.faults] == ["RuntimeError: not today"]


def test_for_a_policy_that_takes_all_tasks_and_raises_one_pod_at_a_time_backs_off() -> None:
    class TakesAll(LeastAllocated):
        def place(self, view, pending):  # type: ignore[no-untyped-def]
            tasks = list(pending)
            if any(task.name == "bad" for task in tasks):
                raise ValueError("bad batch")
            yield from super().place(view, iter(tasks))

    world = small_world(make_engine(TakesAll()))
    world.add(*three())
    world.delete("bad")
    world.sleep(30)
    assert set(world.placed()) == {"t0", "t1"}


def test_an_order_that_raises_on_a_pod_affects_only_that_pod() -> None:
    class BadKey(FifoOrder):
        def key(self, task: Task, serial: int) -> tuple[float, ...]:
            return (1 / 0,) if task.name == "bad" else super().key(task, serial)

    world = small_world(make_engine(order=BadKey()))
    world.add(*three())
    assert set(world.placed()) == {"t0", "t1"}
    assert [fault.policy for fault in world.faults] == ["BadKey"]
    assert world.messages("bad")[0][0] == "SchedulerError"


@pytest.mark.parametrize(
    "answer", [lambda name: None, lambda name: 1.0, lambda name: ({"b": None}.get(name, 1.0),)]
)
def test_an_order_that_ranks_by_nonsense_ends_the_cycle(answer: Any) -> None:
    class BadRanks(FifoOrder):
        traits = OrderTraits()

        def group(self, task: Task) -> str:
            return task.name

        def rank(self, view: View, group: str, head: Task) -> Any:
            return answer(group)

    world = small_world(make_engine(order=BadRanks()))
    world.add(make_task("a"))
    assert world.placed() == {"a": "n0"}  # a single class queue: the Order is not asked
    world.add(make_task("b"), make_task("c"))
    assert world.placed() == {"a": "n0"}
    assert [fault.policy for fault in world.faults] == ["BadRanks"]
    world.delete("b")
    assert world.node_of("c") == "n0"


@pytest.mark.parametrize("answer", [lambda queue: 1 / 0, lambda queue: make_task("x"), lambda queue: "t1"])
def test_where_a_line_policy_fails_the_first_reservation_starts(answer: Any) -> None:
    class BadLine(Line):
        def next(self, view, row, queue):  # type: ignore[no-untyped-def]
            return answer(queue)

    world = small_world(make_engine(Uniform("lines"), line=BadLine()), cpu=1)
    world.add(*numbered(2))
    world.end("t0")
    assert world.node_of("t1") == "n0"
    assert {fault.policy for fault in world.faults} == {"BadLine"}


def test_a_learner_that_raises_on_a_sample_loses_that_sample() -> None:
    class BadLearn(ExactSpeeds):
        def observe(self, done):  # type: ignore[no-untyped-def]
            raise ArithmeticError("odd")

    world = small_world(make_engine(learn=BadLearn({})), cpu=1)
    world.add(*numbered(2))
    world.end("t0")
    assert world.node_of("t1") == "n0"
    assert [(fault.policy, fault.message) for fault in world.faults] == [("BadLearn", "ArithmeticError: odd")]


def test_the_message_of_a_policys_reason_is_reported() -> None:
    world = world_with(lambda view, task: [Unschedulable(task, Reason("the pool is used up"))])
    world.sleep(2)
    assert world.messages("bad") == [("WaitingForNode", "the pool is used up")], "a node has room"


def test_after_a_fault_other_pods_are_placed_on_a_new_node() -> None:
    world = small_world(make_engine(FaultyPolicy(raises)), cpu=1)
    world.add(*three())
    world.step(NodeSeen(make_node("m", cpu=1)))
    world.settle()
    assert set(world.placed()) == {"t0", "t1"}
