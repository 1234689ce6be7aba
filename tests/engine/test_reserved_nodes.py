"""Nodes that an Order keeps free for refused tasks: who gets the room, and how long it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.explain.pod import explain_pod
from eclectus.framework import JobPlanner, Nominate, Order, OrderTraits, Refused, Relieve, View
from eclectus.model.events import NodeGone, NodeSeen, TaskSeen
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.relieve.preemption import Preemption
from worlds import World

Answer = Callable[[Refused], Iterator[Nominate]]


def large_on_row_0(refused: Refused) -> Iterator[Nominate]:
    return iter([Nominate(task, 0) for task in refused.tasks if task.name == "large"])


class Reserving(JobPlanner):
    """Reserves what `answer` says; keeps it while `keeps`; groups are jobs."""

    traits = OrderTraits(reserves_nodes=True)

    def __init__(self, answer: Answer = large_on_row_0, *, keeps: bool = True) -> None:
        self.answer, self.keeps = answer, keeps
        self.asked: list[Refused] = []

    def group(self, task: Task) -> str:
        return task.job

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        return (-task.priority, task.created, serial)

    def reserve_nodes(self, view: View, refused: Refused) -> Iterator[Nominate]:
        self.asked.append(refused)
        return self.answer(refused) if refused.tasks else iter(())

    def keeps_node(self, view: View, task: Task, row: int) -> bool:
        return self.keeps


def reserving(order: Order | None = None, relieve: Relieve | None = None, **large: object) -> World:
    """Two small pods run on a node of two cores, and a large pod needs both cores."""
    engine = make_engine(LeastAllocated(), order=order or Reserving(), relieve=relieve or NoRelief())
    world = World(engine, make_node("n", 2))
    world.add(make_task("small-0"), make_task("small-1"))
    world.add(make_task("large", cpu=2, created=1.0, **large))
    return world


def test_the_room_that_comes_on_a_reserved_node_is_kept_and_nobody_is_evicted() -> None:
    world = reserving()
    assert world.tasks["large"].nominated == "n"
    assert world.engine.queue_counts().nominated == 1
    world.end("small-0")
    world.add(make_task("later", created=0.0))
    assert world.node_of("later") == ""
    world.end("small-1")
    assert world.placed() == {"large": "n"}
    assert world.engine.queue_counts().nominated == 0
    assert (world.evictions, world.faults) == ([], [])


def test_without_a_reservation_smaller_pods_take_the_room() -> None:
    world = reserving(FifoOrder())
    world.end("small-0")
    world.add(make_task("later", created=0.0))
    world.end("small-1")
    assert world.placed() == {"later": "n"}


def test_a_pod_of_higher_priority_takes_the_room_and_the_reservation_lasts() -> None:
    world = reserving()
    world.end("small-0")
    world.add(make_task("urgent", priority=1))
    assert world.node_of("urgent") == "n"
    world.end("urgent")
    world.end("small-1")
    assert world.placed() == {"large": "n"}


def test_room_elsewhere_comes_first_and_frees_the_reserved_node() -> None:
    world = reserving()
    world.step(NodeSeen(make_node("other", 2)))
    world.settle()
    assert world.node_of("large") == "other"
    world.end("small-0")
    world.add(make_task("later"))
    assert world.node_of("later") == "n"


def test_a_reservation_ends_when_its_order_says_so_though_nothing_happens() -> None:
    order = Reserving()
    world = reserving(order)
    world.end("small-0")
    world.add(make_task("later"))
    order.answer, order.keeps = lambda refused: iter(()), False
    world.sleep(31.0)
    assert world.tasks["large"].nominated == ""
    assert world.node_of("later") == "n"
    asked = len(order.asked)
    world.sleep(31.0)
    assert len(order.asked) > asked


def test_a_reservation_ends_with_its_node() -> None:
    world = reserving()
    world.step(NodeGone("n"))
    assert world.tasks["large"].nominated == ""


def test_a_reservation_outlives_the_process_while_the_order_keeps_it() -> None:
    for keeps in (True, False):
        before = reserving()
        order = Reserving(lambda refused: iter(()), keeps=keeps)
        world = World(make_engine(LeastAllocated(), order=order), make_node("n", 2))
        world.add(*before.tasks.values())
        assert (world.tasks["large"].nominated == "n") is keeps
        world.end("small-0")
        world.add(make_task("later"))
        assert (world.node_of("later") == "") is keeps


def test_no_node_is_reserved_where_pods_of_lower_priority_may_be_evicted() -> None:
    order = Reserving()
    world = reserving(order, Preemption(), priority=1)
    assert {victim.name for victim in world.evictions} == {"small-0", "small-1"}
    assert all(not refused.tasks for refused in order.asked)
    assert world.node_of("large") == "n"


def test_a_pod_that_may_evict_nobody_gets_a_node() -> None:
    assert reserving(relieve=Preemption(), priority=1, preempts=False).tasks["large"].nominated == "n"
    assert reserving(relieve=Preemption()).tasks["large"].nominated == "n"


def test_a_reservation_gives_way_when_a_pod_of_lower_priority_could_be_evicted() -> None:
    world = reserving(relieve=Preemption())
    assert world.tasks["large"].nominated == "n"
    world.put(replace(world.tasks["large"], priority=1))
    world.sleep(40.0)
    assert world.node_of("large") == "n"
    assert len(world.evictions) == 2


def test_the_first_of_each_group_is_shown() -> None:
    order = Reserving(lambda refused: iter(()))
    world = reserving(order)
    jobs = [make_task(f"{name}-{at}", cpu=2, created=2.0 + at, job=name) for name in "ab" for at in range(2)]
    world.add(*jobs)
    world.sleep(5.0)
    assert [task.name for task in order.asked[-1].tasks] == ["large", "a-0", "b-0"]


def test_an_order_that_errs_is_named_and_stops_nobody() -> None:
    def fails(refused: Refused) -> Iterator[Nominate]:
        raise ValueError("no")

    for answer, problem in (
        (fails, "ValueError: no"),
        (lambda refused: iter([Nominate(refused.tasks[0], 7)]), "there is no node in row 7"),
        (lambda refused: iter([Nominate(make_task("unknown"), 0)]), "is not among the refused tasks"),
    ):
        world = reserving(Reserving(answer))
        assert problem in world.faults[0].message
        world.end("small-0")
        world.end("small-1")
        assert world.node_of("large") == "n"


def test_an_order_that_fails_when_asked_whether_it_keeps_a_node_keeps_none() -> None:
    class Failing(Reserving):
        def keeps_node(self, view: View, task: Task, row: int) -> bool:
            raise ValueError("no")

    world = reserving(Failing())
    world.end("small-0")
    assert world.tasks["large"].nominated == ""
    assert "ValueError: no" in world.faults[0].message


def test_an_explanation_says_that_a_node_is_kept_free() -> None:
    world = reserving()
    found = explain_pod(world.engine, "default", "large", world.now).nomination
    assert found is not None
    assert (found.node, found.reserved, found.leaving) == ("n", True, ())
    world.step(TaskSeen(replace(world.tasks["small-0"], deleting=True)))
    found = explain_pod(world.engine, "default", "large", world.now).nomination
    assert found is not None
    assert [pod.name for pod in found.leaving] == ["small-0"]
