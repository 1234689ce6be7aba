"""Node queues: tasks that wait at a busy node from their arrival."""

from __future__ import annotations

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Line
from eclectus.model.objects import HostPort
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.rosella import Rosella
from worlds import World, numbered, small_world


def queueing_world(cpu: float = 1, **roles: object) -> World:
    """One node, whose node queue every pod enters."""
    return small_world(make_engine(Uniform("lines"), **roles), cpu=cpu)  # type: ignore[arg-type]


def test_a_node_queue_is_dispatched_in_order_of_arrival() -> None:
    world = queueing_world()
    world.add(*numbered(4))
    for at in range(3):
        world.end(f"t{at}")
        assert world.placed() == {f"t{at + 1}": "n0"}
    assert world.engine._state.cluster.tentative.sum() == 0


def test_the_head_of_a_node_queue_is_not_overtaken_by_smaller_tasks_behind_it() -> None:
    world = queueing_world(cpu=4)
    world.add(make_task("r0", cpu=2), make_task("r1", cpu=2, created=1))
    world.add(make_task("large", cpu=4, created=2), make_task("small", cpu=1, created=3))
    world.end("r0")
    assert set(world.placed()) == {"r1"}
    world.end("r1")
    assert world.placed() == {"large": "n0"}
    world.end("large")
    assert world.placed() == {"small": "n0"}


def test_other_profiles_do_not_take_the_room_of_a_node_queues_head() -> None:
    profiles = [make_profile(Uniform("lines"), "lines"), make_profile(LeastAllocated(), "greedy")]
    world = World(Engine(profiles, Unlearned()), make_node("n0", cpu=4))
    world.add(make_task("r", cpu=3, profile="lines"))
    world.add(make_task("large", cpu=4, profile="lines"))
    world.add(make_task("small", cpu=1, profile="greedy"))
    assert world.placed() == {"r": "n0"}
    world.end("r")
    assert world.placed() == {"large": "n0"}


def test_a_line_policy_may_choose_another_than_the_first() -> None:
    class Youngest(Line):
        def next(self, view, row, queue):  # type: ignore[no-untyped-def]
            return max(queue, key=lambda reservation: reservation.head.created)

    world = queueing_world(line=Youngest())
    world.add(*numbered(4))
    world.end("t0")
    assert world.placed() == {"t3": "n0"}


def test_a_line_policy_may_choose_none_yet() -> None:
    class NoneYet(Line):
        def next(self, view, row, queue):  # type: ignore[no-untyped-def]
            return None

    world = queueing_world(line=NoneYet())
    world.add(make_task())
    assert (world.placed(), world.engine.queue_counts().node_queues) == ({}, 1)


def test_a_first_come_line_policy_is_not_called() -> None:
    class NotCalled(FifoLine):
        def next(self, view, row, queue):  # type: ignore[no-untyped-def]
            raise AssertionError("asked")

    world = queueing_world(line=NotCalled())
    world.add(*numbered(3))
    world.end("t0")
    assert (world.placed(), world.faults) == ({"t1": "n0"}, [])


def test_tasks_queued_at_a_cordoned_node_return_to_their_class_queue() -> None:
    world = queueing_world()
    world.add(*numbered(3))
    world.put_node(make_node("m", cpu=2))
    world.put_node(make_node("n0", cpu=1, unschedulable=True))
    assert [world.node_of(f"t{at}") for at in range(3)] == ["n0", "m", "m"]


def test_a_queued_task_too_large_for_its_shrunk_node_returns_to_its_class_queue() -> None:
    world = queueing_world(cpu=4)
    world.add(make_task("a", cpu=4), make_task("b", cpu=4, created=1))
    world.put_node(make_node("n0", cpu=2))
    assert world.engine.queue_counts().node_queues == 0
    assert world.engine.queue_counts().unschedulable == 1


def test_a_deleted_task_leaves_its_node_queue() -> None:
    world = queueing_world()
    world.add(*numbered(3))
    world.delete("t1")
    world.end("t0")
    assert world.placed() == {"t2": "n0"}


def test_a_task_that_changes_in_a_node_queue_enters_it_again_at_the_end() -> None:
    world = queueing_world(cpu=2)
    world.add(make_task("r", cpu=2))
    world.add(make_task("a", cpu=2, created=1), make_task("b", cpu=2, created=2))
    world.put(make_task("a", cpu=1, created=1))
    world.end("r")
    assert world.placed() == {"b": "n0"}


def test_no_task_enters_the_queue_of_a_node_that_services_fill() -> None:
    sampled, compared = Rosella(view="sample", compare="sq"), Rosella(replan=False, compare="sq")
    for policy in (Uniform("lines"), sampled, compared, Rosella(replan=False)):
        world = small_world(make_engine(policy), nodes=2, cpu=2)
        world.put_node(make_node("n1", cpu=2, unschedulable=True))
        world.add(*numbered(2, "service", long_running=True))
        world.put_node(make_node("n1", cpu=2))
        world.add(*numbered(6))
        assert list(world.placed().values()).count("n1") == 2, policy
        assert (0 in world.engine._state.node_queues.by_row, world.faults) == (False, []), policy


def test_tasks_queued_at_a_node_that_a_service_fills_return_to_their_class_queue() -> None:
    world = queueing_world()
    world.add(make_task("r"), make_task("a", created=1))
    world.put(make_task("foreign", profile="other", node="n0", long_running=True))
    world.end("r")
    assert world.engine.queue_counts().node_queues == 0
    world.put_node(make_node("m", cpu=1))
    assert world.node_of("a") == "m"


def test_a_task_waits_in_the_node_queue_for_a_used_host_port() -> None:
    world = queueing_world(cpu=4)
    ports = (HostPort(80),)
    world.add(make_task("a", host_ports=ports), make_task("b", host_ports=ports, created=1))
    assert world.placed() == {"a": "n0"}
    world.end("a")
    assert world.placed() == {"b": "n0"}


def test_after_a_restart_node_queues_are_rebuilt_from_pending_pods() -> None:
    world = queueing_world()
    world.add(*numbered(4))
    again = small_world(make_engine(Uniform("lines")), cpu=1)
    again.add(*world.tasks.values())
    assert again.engine.queue_counts().node_queues == world.engine.queue_counts().node_queues == 3


def test_full_view_without_replanning_enqueues_where_the_task_ends_soonest() -> None:
    learn = ExactSpeeds({"n0": 1.0, "n1": 0.1})
    world = small_world(make_engine(Rosella(replan=False, compare="sed"), learn), nodes=2, cpu=1)
    world.add(*numbered(5))
    assert len(world.engine._state.node_queues.by_row[0]) == 4


def test_no_queued_task_is_lost_when_nodes_are_replaced() -> None:
    world = small_world(make_engine(Uniform("lines")), nodes=3, cpu=1)
    world.add(*numbered(12))
    for at in range(3):
        world.drop_node(f"n{at}")
        world.put_node(make_node(f"m{at}", cpu=4))
    counts = world.engine.queue_counts()
    waiting = counts.active + counts.node_queues + counts.unschedulable + counts.backoff
    assert waiting + len(world.placed()) == 12


def test_a_line_policy_may_divide_by_a_speed_of_zero() -> None:
    class Shortest(Line):
        def next(self, view, row, queue):  # type: ignore[no-untyped-def]
            seconds = [1.0 / view.speeds(view.task_class(each.head)).rate[row] for each in queue]
            return queue[seconds.index(min(seconds))]

    world = small_world(make_engine(Uniform("lines"), ExactSpeeds({"n0": 0.0}), line=Shortest()), cpu=1)
    world.add(*numbered(2))
    world.end("t0")
    assert (world.placed(), world.faults) == ({"t1": "n0"}, [])


def test_node_queues_and_class_queues_together_overcommit_no_node() -> None:
    world = small_world(make_engine(Uniform("lines")), nodes=2, cpu=2)
    world.add(*numbered(9))
    for _ in range(9):
        assert all(list(world.placed().values()).count(node) <= 2 for node in ("n0", "n1"))
        done = next(iter(world.placed()), None)
        if done is not None:
            world.end(done)
    assert world.engine.queue_counts().node_queues == 0
