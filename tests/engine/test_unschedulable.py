"""Lanes that found nothing sleep until a node opens for their class, and not a step longer."""

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
    """Counts the tasks it is asked about."""

    def __init__(self) -> None:
        self.asked = 0

    def place(self, view: View, turns):  # type: ignore[no-untyped-def]
        def counted():  # type: ignore[no-untyped-def]
            for task in turns:
                self.asked += 1
                yield task

        return super().place(view, counted())


@pytest.mark.parametrize(("cpu", "answers"), [(1, 2), (99, 1)], ids=["full", "hopeless"])
def test_a_parked_lane_is_not_asked_about_again(cpu: int, answers: int) -> None:
    policy = Counting()
    world = small_world(make_engine(policy), cpu=1)
    world.add(*numbered(100, cpu=cpu))
    asked = policy.asked
    assert asked == answers
    world.add(*numbered(100, "later", cpu=cpu))
    world.step(TaskSeen(make_task("f", profile="other", node="nowhere")))
    assert policy.asked == asked


@pytest.mark.parametrize(
    "opening",
    ["end", "delete", "node", "uncordon", "untaint", "grow", "label"],
)
def test_a_parked_lane_wakes_in_the_step_that_opens_a_node(opening: str) -> None:
    labels = {"disk": "ssd"}
    world = World(
        make_engine(),
        make_node("full", cpu=1, labels=labels),
        make_node("cordoned", cpu=1, labels=labels, unschedulable=True),
        make_node("tainted", cpu=1, labels=labels, taints=(Taint("dedicated"),)),
        make_node("small", cpu=0.5, labels=labels),
        make_node("hdd", cpu=1, labels={"disk": "hdd"}),
    )
    ask = (("disk", "ssd"),)
    world.add(make_task("resident", node_selector=ask))
    world.add(make_task("a", node_selector=ask))
    assert world.node_of("a") == ""
    match opening:
        case "end":
            world.end("resident")
        case "delete":
            world.delete("resident")
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


def test_a_hopeless_lane_is_looked_at_again_once_a_node_could_ever_run_it() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("resident", cpu=8), make_task("a", cpu=8))
    world.put_node(make_node("large", cpu=8))
    assert sorted(world.placed().values()) == ["large"]
    assert world.engine.queue_counts().unschedulable == 1


def test_a_long_wait_is_no_missed_wake() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(3))
    world.sleep(3600)
    world.end("t0")
    world.sleep(3600)
    assert world.engine.queue_counts().counters.missed_activations == 0
    assert world.node_of("t1") == "n0"


def test_a_node_that_opens_in_the_very_step_of_the_flush_is_no_missed_wake() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(2))
    world.sleep(299.9)
    world.now += 60
    world.end("t0")
    assert world.node_of("t1") == "n0"
    assert world.engine.queue_counts().counters.missed_activations == 0


def test_a_wake_that_was_missed_is_found_by_the_flush_healed_and_counted() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*numbered(2))
    blind(world.engine)
    world.end("t0")
    assert world.node_of("t1") == ""
    world.sleep(700)
    assert world.node_of("t1") == "n0"
    assert world.engine.queue_counts().counters.missed_activations == 1


def blind(engine: Engine) -> None:
    """Plant the defect the flush is for: a class that has stopped looking at the cluster."""
    classes = engine._state.view.classes
    for task_class in classes._classes.values():
        task_class.refresh = lambda: None  # type: ignore[method-assign]


def test_the_census_adds_up_whatever_the_pods_wait_for() -> None:
    world = small_world(make_engine(), cpu=2)
    world.refuse = lambda bind: "conflict" if bind.name == "t0" else ""
    world.add(*numbered(5), make_task("gated", gates=("x",)), make_task("huge", cpu=99))
    census = world.engine.queue_counts()
    waiting = census.active + census.backoff + census.unschedulable + census.gated + census.node_queues
    assert waiting + census.binding + len(world.placed()) == len(world.tasks)
    assert (census.backoff, census.gated, census.nodes) == (1, 1, 1)
