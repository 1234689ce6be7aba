"""Unschedulable class queues are not asked about until a node fits their class, and then at once."""

from __future__ import annotations

import pytest

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import View
from eclectus.model.events import TaskSeen
from eclectus.model.objects import Taint
from eclectus.policies.place.allocation import LeastAllocated
from worlds import World, numbered, small_world


class Counting(LeastAllocated):
    """Counts the tasks that it is offered."""

    def __init__(self) -> None:
        super().__init__()
        self.offered = 0

    def place(self, view: View, pending):  # type: ignore[no-untyped-def]
        def counted():  # type: ignore[no-untyped-def]
            for task in pending:
                self.offered += 1
                yield task

        return super().place(view, counted())


@pytest.mark.parametrize(("cpu", "answers"), [(1, 2), (99, 1)], ids=["full", "never feasible"])
def test_an_unschedulable_queue_is_not_offered_again(cpu: int, answers: int) -> None:
    policy = Counting()
    world = small_world(make_engine(policy), cpu=1)
    world.add(*numbered(100, cpu=cpu))
    offered = policy.offered
    assert offered == answers
    world.add(*numbered(100, "later", cpu=cpu))
    world.step(TaskSeen(make_task("f", profile="other", node="nowhere")))
    assert policy.offered == offered


@pytest.mark.parametrize(
    "change",
    ["end", "delete", "node", "uncordon", "untaint", "grow", "label"],
)
def test_an_unschedulable_queue_is_activated_in_the_step_in_which_a_node_fits(change: str) -> None:
    labels = {"disk": "ssd"}
    world = World(
        make_engine(),
        make_node("full", cpu=1, labels=labels),
        make_node("cordoned", cpu=1, labels=labels, unschedulable=True),
        make_node("tainted", cpu=1, labels=labels, taints=(Taint("dedicated"),)),
        make_node("small", cpu=0.5, labels=labels),
        make_node("hdd", cpu=1, labels={"disk": "hdd"}),
    )
    selector = (("disk", "ssd"),)
    world.add(make_task("placed", node_selector=selector))
    world.add(make_task("a", node_selector=selector))
    assert world.node_of("a") == ""
    match change:
        case "end":
            world.end("placed")
        case "delete":
            world.delete("placed")
        case "node":
            world.put_node(make_node("new", cpu=1, labels=labels))
        case "uncordon":
            world.put_node(make_node("cordoned", cpu=1, labels=labels))
        case "untaint":
            world.put_node(make_node("tainted", cpu=1, labels=labels))
        case "grow":
            world.put_node(make_node("small", cpu=1, labels=labels))
        case "label":
            world.put_node(make_node("hdd", cpu=1, labels=labels))
    assert world.node_of("a") != ""


def test_a_never_feasible_queue_is_activated_when_a_node_becomes_feasible() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("placed", cpu=8), make_task("a", cpu=8))
    world.put_node(make_node("large", cpu=8))
    assert sorted(world.placed().values()) == ["large"]
    assert world.engine.queue_counts().unschedulable == 1


@pytest.mark.parametrize("change", ["shrink", "taint", "drop"])
def test_a_queue_that_no_node_could_run_any_more_is_never_feasible_from_then_on(change: str) -> None:
    world = small_world(make_engine(), cpu=2)
    world.put_node(make_node("other", cpu=1))
    world.add(make_task("placed", cpu=2), make_task("a", cpu=2))
    (pending,) = world.engine._state.class_queues
    assert not pending.never_feasible
    match change:
        case "shrink":
            world.put_node(make_node("n0", cpu=1))
        case "taint":
            world.put_node(make_node("n0", cpu=2, taints=(Taint("a", "b", "NoSchedule"),)))
        case "drop":
            world.drop_node("n0")
    assert pending.never_feasible
    world.put_node(make_node("n0", cpu=2))
    assert not pending.never_feasible


def test_a_long_wait_is_no_missed_activation() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(3))
    world.sleep(3600)
    world.end("t0")
    world.sleep(3600)
    assert world.engine.queue_counts().counters.missed_activations == 0
    assert world.node_of("t1") == "n0"


def test_a_node_that_fits_in_the_step_of_the_flush_is_no_missed_activation() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(2))
    world.sleep(299.9)
    world.now += 60
    world.end("t0")
    assert world.node_of("t1") == "n0"
    assert world.engine.queue_counts().counters.missed_activations == 0


def test_a_missed_activation_is_repaired_by_the_flush_and_counted() -> None:
    world = small_world(make_engine(wait_limit=None), cpu=1)
    world.add(*numbered(2))
    stop_refreshing(world.engine)
    world.end("t0")
    assert world.node_of("t1") == ""
    world.sleep(700)
    assert world.node_of("t1") == "n0"
    assert world.engine.queue_counts().counters.missed_activations == 1


def stop_refreshing(engine: Engine) -> None:
    """Simulate the defect that the flush detects: a class that does not follow the cluster any more."""
    classes = engine._state.view.classes
    for task_class in classes._classes.values():
        task_class.refresh = lambda: None  # type: ignore[method-assign]


def test_queue_counts_add_up_to_the_number_of_pods() -> None:
    world = small_world(make_engine(), cpu=2)
    world.refuse = lambda bind: "conflict" if bind.name == "t0" else ""
    world.add(*numbered(5), make_task("gated", gates=("x",)), make_task("huge", cpu=99))
    counts = world.engine.queue_counts()
    waiting = counts.active + counts.backoff + counts.unschedulable + counts.gated + counts.node_queues
    assert waiting + counts.binding + len(world.placed()) == len(world.tasks)
    assert (counts.backoff, counts.gated, counts.nodes) == (1, 1, 1)
