"""A policy that misbehaves is refused with a named Fault, and costs only the pod at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Defer, Enqueue, Line, Place, Reason, Unschedulable, View
from eclectus.model.events import NodeSeen
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from worlds import World, numbered, small_world


class Naughty(LeastAllocated):
    """LeastAllocated, but for the pod called `bad`, which is answered by `sin`."""

    def __init__(self, sin: Any) -> None:
        self.sin = sin

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Any]:
        for task in turns:
            if task.name == "bad":
                yield from self.sin(view, task)
            else:
                yield from super().place(view, iter([task]))


def raises(view: View, task: Task) -> Iterator[Any]:
    raise ZeroDivisionError("by nought")
    yield


def three() -> list[Task]:
    return [make_task("t0", created=0), make_task("bad", created=1), make_task("t1", created=2)]


NAN = float("nan")
SINS = {
    "raises": (raises, "ZeroDivisionError: by nought"),
    "a full node": (lambda view, task: [Place(task, 1)], "default/bad does not fit on node n1 now"),
    "a row without a node": (lambda view, task: [Place(task, 60)], "there is no node in row 60"),
    "a row that cannot be": (lambda view, task: [Place(task, -1)], "there is no node in row -1"),
    "a row that is no number": (lambda view, task: [Place(task, "n0")], "is no row"),
    "half a row": (lambda view, task: [Enqueue(task, 0.5)], "is no row"),
    "a task never offered": (lambda view, task: [Place(make_task("x"), 0)], "default/x was not offered"),
    "no task at all": (lambda view, task: [Place(None, 0)], "None is no task"),
    "no action": (lambda view, task: ["n0"], "'n0' is not an action"),
    "nothing as an action": (lambda view, task: [None], "None is not an action"),
    "a plan where it may never run": (lambda view, task: [Defer(task, 2)], "node n2 may never run"),
    "a line where it may never run": (lambda view, task: [Enqueue(task, 2)], "node n2 may never run"),
    "a plan to look again in the past": (
        lambda view, task: [Defer(task, 1, 0.0)],
        "cannot be deferred until 0.0",
    ),
    "a plan to look again at no time": (
        lambda view, task: [Defer(task, 1, NAN)],
        "cannot be deferred until nan",
    ),
    "no reason": (lambda view, task: [Unschedulable(task, "full")], "'full' is no Reason"),
}


def misplaced(sin: Any) -> World:
    world = World(
        make_engine(Naughty(sin)),
        make_node("n0"),
        make_node("n1", cpu=1),
        make_node("n2", unschedulable=True),
    )
    world.add(make_task("resident", node="n1"))
    world.add(*three())
    return world


@pytest.mark.parametrize("sin", SINS, ids=list(SINS))
def test_an_answer_that_must_not_be_is_refused_and_named(sin: str) -> None:
    answer, message = SINS[sin]
    world = misplaced(answer)
    assert world.node_of("bad") == ""
    assert (world.node_of("t0"), world.node_of("t1")) == ("n0", "n0")
    assert {fault.policy for fault in world.faults} == {"Naughty"}
    assert message in world.faults[0].message


@pytest.mark.parametrize(
    "sin", ["raises", "a full node", "a row that is no number", "half a row", "no reason"]
)
def test_the_pod_it_was_about_backs_off_and_is_told(sin: str) -> None:
    world = misplaced(SINS[sin][0])
    assert world.engine.queue_counts().backoff == 1
    [(reason, message)] = world.messages("bad")
    assert reason == "SchedulerError"
    assert SINS[sin][1] in message


def test_what_is_said_of_a_failing_policy_is_said_once() -> None:
    world = misplaced(raises)
    world.sleep(120)
    assert len(world.messages("bad")) == 1


def test_a_task_answered_twice_is_placed_once() -> None:
    world = misplaced(lambda view, task: [Place(task, 0), Place(task, 0)])
    assert world.node_of("bad") == "n0"
    assert "is answered already" in world.faults[0].message
    assert world.node_of("t1") == "n0"


def test_a_task_that_is_not_answered_is_offered_again_and_told_it_waits() -> None:
    mute: list[str] = []
    world = misplaced(lambda view, task: mute.append(task.name) or [])
    world.sleep(40)
    assert len(mute) > 1
    assert world.messages("bad")[-1] == (
        "WaitingForNode",
        "waiting although 1 nodes have room: policy Naughty has not placed it yet",
    )


def test_a_policy_that_never_stops_answering_is_stopped() -> None:
    def babble(view: View, task: Task) -> Iterator[Any]:
        while True:
            yield None

    world = misplaced(babble)
    assert set(world.placed()) == {"resident", "t0", "t1"}
    assert len(world.step(after=1)) <= 101
    assert "erred 100 times in one scheduling cycle" in world.messages("bad")[0][1]


def test_a_policy_that_cannot_even_be_asked_costs_a_fault_a_round() -> None:
    class Broken(LeastAllocated):
        def place(self, view, turns):  # type: ignore[no-untyped-def]
            raise RuntimeError("not today")

    world = small_world(make_engine(Broken()))
    world.add(make_task())
    assert [fault.message for fault in world.faults] == ["RuntimeError: not today"]


def test_a_policy_that_takes_all_before_it_fails_loses_one_pod_at_a_time() -> None:
    class Batch(LeastAllocated):
        def place(self, view, turns):  # type: ignore[no-untyped-def]
            tasks = list(turns)
            if any(task.name == "bad" for task in tasks):
                raise ValueError("bad batch")
            yield from super().place(view, iter(tasks))

    world = small_world(make_engine(Batch()))
    world.add(*three())
    world.delete("bad")
    world.sleep(30)
    assert set(world.placed()) == {"t0", "t1"}


def test_an_order_that_raises_on_a_pod_costs_that_pod_alone_and_is_named() -> None:
    class BadKey(FifoOrder):
        def key(self, task: Task, serial: int) -> tuple[float, ...]:
            return (1 / 0,) if task.name == "bad" else super().key(task, serial)

    world = small_world(make_engine(order=BadKey()))
    world.add(*three())
    assert set(world.placed()) == {"t0", "t1"}
    assert [fault.policy for fault in world.faults] == ["BadKey"]
    assert world.messages("bad")[0][0] == "SchedulerError"


@pytest.mark.parametrize("answer", [None, "lane"])
def test_an_order_that_yields_no_lane_ends_the_round_and_is_named(answer: Any) -> None:
    class BadTurns(FifoOrder):
        def queues_in_order(self, view, lanes):  # type: ignore[no-untyped-def]
            yield from lanes
            yield answer

    world = small_world(make_engine(order=BadTurns()))
    world.add(make_task("a"))
    assert world.placed() == {"a": "n0"}
    assert [fault.policy for fault in world.faults] == ["BadTurns"]


@pytest.mark.parametrize("sin", [lambda line: 1 / 0, lambda line: make_task("x"), lambda line: "t1"])
def test_a_line_policy_that_fails_is_named_and_the_first_in_line_starts(sin: Any) -> None:
    class BadLine(Line):
        def next(self, view, row, line):  # type: ignore[no-untyped-def]
            return sin(line)

    world = small_world(make_engine(Uniform("lines"), line=BadLine()), cpu=1)
    world.add(*numbered(2))
    world.end("t0")
    assert world.node_of("t1") == "n0"
    assert {fault.policy for fault in world.faults} == {"BadLine"}


def test_a_learner_that_raises_on_a_sample_costs_that_sample() -> None:
    class BadLearn(ExactSpeeds):
        def observe(self, done):  # type: ignore[no-untyped-def]
            raise ArithmeticError("odd")

    world = small_world(make_engine(learn=BadLearn({})), cpu=1)
    world.add(*numbered(2))
    world.end("t0")
    assert world.node_of("t1") == "n0"
    assert [(fault.policy, fault.message) for fault in world.faults] == [("BadLearn", "ArithmeticError: odd")]


def test_a_refusal_of_one_task_alone_backs_off_and_leaves_its_class_in_peace() -> None:
    world = misplaced(lambda view, task: [Unschedulable(task, Reason("not on a Friday", of_class=False))])
    assert world.messages("bad") == [("Unschedulable", "not on a Friday")]
    assert world.node_of("t1") == "n0"
    world.sleep(60)
    assert len(world.messages("bad")) == 1


def test_a_refusal_in_the_policys_own_words_reaches_the_pod() -> None:
    world = misplaced(lambda view, task: [Unschedulable(task, Reason("the pool is used up"))])
    world.sleep(2)
    assert world.messages("bad") == [("Unschedulable", "the pool is used up")]


def test_a_fault_stops_nobody_from_seeing_the_next_node() -> None:
    world = small_world(make_engine(Naughty(raises)), cpu=1)
    world.add(*three())
    world.step(NodeSeen(make_node("m", cpu=1)))
    world.settle()
    assert set(world.placed()) == {"t0", "t1"}
