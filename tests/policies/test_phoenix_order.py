"""`order: phoenix`: who goes first, by how much others are delayed, and that work is conserved."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.framework import Order
from eclectus.model.events import TaskSeen
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.phoenix import FewestNodesFirst
from eclectus.policies.place.allocation import LeastAllocated
from worlds import World

ARM = (("arch", "arm"),)


def one_server(order: Order, flexible_slots: int = 10) -> World:
    """One slot that both kinds of pods share, on an arm node; all others are taken for good."""
    engine = make_engine(LeastAllocated(), order=order, wait_limit=None)
    blocked = make_node("blocked", cpu=flexible_slots - 1, labels={"blocked": "yes"})
    found = World(engine, make_node("arm", cpu=1, labels=dict(ARM)), blocked)
    found.add(make_task("blocker", cpu=flexible_slots - 1, node_selector=(("blocked", "yes"),)))
    assert found.node_of("blocker") == "blocked"
    return found


class Queueing:
    """Pods that arrive at `one_server` and run one after the other: who waits, and who starts when."""

    def __init__(self, order: Order, tasks: list[Task]) -> None:
        self.world, self.started = one_server(order), dict[str, float]()
        waiting = sorted(tasks, key=lambda task: (task.created, task.uid))
        running: list[tuple[float, str]] = []
        while waiting or running:
            at = min([waiting[0].created] if waiting else [], default=float("inf"))
            if running and running[0][0] <= at:
                self.world.now, name = heappop(running)
                self.world.end(name)
            else:
                task = waiting.pop(0)
                self.world.now = task.created
                self.world.add(task)
            for bind in self.world.binds[1 + len(self.started) :]:
                self.started[bind.name] = self.world.now
                seconds = next(each.estimate for each in tasks if each.name == bind.name)
                heappush(running, (self.world.now + (seconds or 0.0), bind.name))
        assert self.world.faults == []


def arrivals(seed: int, count: int, load: float) -> list[Task]:
    random, now, found = Random(seed), 0.0, []
    for at in range(count):
        now += random.expovariate(load / 1.25)
        needs_arm = random.random() < 0.4
        selector = ARM if needs_arm else ()
        seconds = random.choice([0.5, 2.0])
        found.append(make_task(f"t{at}", estimate=seconds, created=now, node_selector=selector))
    return found


def order_of(found: World, *tasks: Task) -> list[str]:
    """In which order pods that wait together get the one slot."""
    found.add(replace(tasks[0], uid="first", name="first", spec=make_task().spec))
    found.now = 100.0
    found.add(*tasks)
    names, name = [], "first"
    while len(names) < len(tasks):
        found.end(name)
        name = found.binds[-1].name
        names.append(name)
    return names


def test_a_pod_goes_before_one_on_ten_times_as_many_nodes_that_is_less_than_ten_times_as_old() -> None:
    made = [
        make_task("flexible", created=10.0),  # 90 s old
        make_task("arm", created=90.5, node_selector=ARM),  # 9.5 s
        make_task("young", created=91.5, node_selector=ARM),  # 8.5 s
    ]
    assert order_of(one_server(FewestNodesFirst()), *made) == ["arm", "flexible", "young"]


def test_of_one_set_the_eldest_goes_first_and_priority_before_all() -> None:
    made = [
        make_task("second", created=20.0, node_selector=ARM),
        make_task("urgent", created=99.0, priority=1),
        make_task("first", created=10.0, node_selector=ARM),
    ]
    made[2] = replace(made[2], name="eldest", uid="uid-eldest")
    assert order_of(one_server(FewestNodesFirst()), *made) == ["urgent", "eldest", "second"]


def test_the_order_follows_the_time_although_nothing_else_changes() -> None:
    """A flexible pod on two cores, 8 s older than one on one core: first until it is 16 s old."""

    def first(at: float) -> str:
        found = one_server(FewestNodesFirst(), flexible_slots=2)
        found.add(make_task("runs", created=0.0))
        found.now = 9.0
        found.add(make_task("old", created=0.0), make_task("young", created=8.0, node_selector=ARM))
        found.now = at
        found.end("runs")
        return found.binds[-1].name

    assert [first(at) for at in (9.0, 15.0, 17.0, 100.0)] == ["old", "old", "young", "young"]


@pytest.mark.parametrize("seed", range(3))
def test_work_is_conserved(seed: int) -> None:
    """The waits, each weighed by the work that waits, have the same sum in every order (Kleinrock 1965)."""

    def waited(order: Order) -> tuple[float, float]:
        run = Queueing(order, tasks)
        waits = [((run.started[each.name] - each.created) * (each.estimate or 0.0), each) for each in tasks]
        return sum(wait for wait, _ in waits), sum(wait for wait, each in waits if each.spec.node_selector)

    tasks = arrivals(seed, 150, load=0.9)
    (all_by_age, arm_by_age), (all_by_nodes, arm_by_nodes) = map(
        waited, (FifoOrder(), FewestNodesFirst(slack=100.0))
    )
    assert all_by_nodes == pytest.approx(all_by_age)
    assert arm_by_nodes < arm_by_age


def most_overtaken(tasks: list[Task], slots: dict[bool, int], order: Order) -> float:
    """The most by which any pod is delayed by later ones but the last, in its own estimates."""
    run, most = Queueing(order, tasks), 0.0
    for each in tasks:
        later = [
            other
            for other in tasks
            if other.created > each.created and run.started[other.name] < run.started[each.name]
        ]
        later.sort(key=lambda other: run.started[other.name])
        delays = [(other.estimate or 0.0) / slots[bool(each.spec.node_selector)] for other in later]
        most = max(most, sum(delays[:-1]) / (each.estimate or 1.0))
    return most


lengths = st.lists(
    st.tuples(st.booleans(), st.floats(0.1, 3.0), st.floats(0.5, 8.0)), min_size=5, max_size=25
)


@settings(max_examples=25, deadline=None)
@given(lengths, st.sampled_from([0.0, 0.2, 1.0]))
def test_no_pod_is_delayed_by_more_than_its_slack_and_one_pod(
    made: list[tuple[bool, float, float]], slack: float
) -> None:
    now, tasks = 0.0, []
    for at, (needs_arm, gap, seconds) in enumerate(made):
        now += gap
        selector = ARM if needs_arm else ()
        tasks.append(make_task(f"t{at}", estimate=seconds, created=now, node_selector=selector))
    assert most_overtaken(tasks, {True: 1, False: 10}, FewestNodesFirst(slack)) <= slack + 1e-9


def test_without_slack_no_pod_is_overtaken_for_long() -> None:
    tasks = arrivals(1, 80, load=0.95)
    tight = most_overtaken(tasks, {True: 1, False: 10}, FewestNodesFirst(0.0))
    loose = most_overtaken(tasks, {True: 1, False: 10}, FewestNodesFirst(100.0))
    assert tight == 0.0 < loose


def test_the_engine_reports_an_order_that_fails_when_it_is_informed_of_a_bind() -> None:
    class Failing(FewestNodesFirst):
        def placed(self, *bind: Any) -> None:
            raise ValueError("no")

    found = World(make_engine(LeastAllocated(), order=Failing()), make_node())
    found.step(TaskSeen(make_task()))
    assert [fault.message for fault in found.faults] == ["ValueError: no"]
    assert len(found.binds) == 1
