"""Lines: tasks that committed to a busy node on arrival."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Line
from eclectus.model.objects import HostPort
from eclectus.model.reservation import Reservation
from eclectus.policies import table
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.rosella import Rosella
from worlds import World, numbered, small_world


def lined(cpu: float = 1, **roles: object) -> World:
    """One node whose line every pod joins."""
    return small_world(make_engine(Uniform("lines"), **roles), cpu=cpu)  # type: ignore[arg-type]


def test_a_line_is_served_in_order_of_joining() -> None:
    world = lined()
    world.add(*numbered(4))
    for at in range(3):
        world.end(f"t{at}")
        assert world.placed() == {f"t{at + 1}": "n0"}
    assert world.engine._state.cluster.tentative.sum() == 0


def test_the_head_of_a_line_keeps_its_room_from_smaller_ones_behind() -> None:
    world = lined(cpu=4)
    world.add(make_task("r0", cpu=2), make_task("r1", cpu=2, created=1))
    world.add(make_task("large", cpu=4, created=2), make_task("small", cpu=1, created=3))
    world.end("r0")
    assert set(world.placed()) == {"r1"}
    world.end("r1")
    assert world.placed() == {"large": "n0"}
    world.end("large")
    assert world.placed() == {"small": "n0"}


def test_the_head_of_a_line_keeps_its_room_from_other_profiles() -> None:
    profiles = [make_profile(Uniform("lines"), "lines"), make_profile(LeastAllocated(), "greedy")]
    world = World(Engine(profiles, Unlearned()), make_node("n0", cpu=4))
    world.add(make_task("r", cpu=3, profile="lines"))
    world.add(make_task("large", cpu=4, profile="lines"))
    world.add(make_task("small", cpu=1, profile="greedy"))
    assert world.placed() == {"r": "n0"}
    world.end("r")
    assert world.placed() == {"large": "n0"}


def test_a_line_policy_may_let_another_go_first() -> None:
    class Youngest(Line):
        def next(self, view, row, line):  # type: ignore[no-untyped-def]
            return max(line, key=lambda claim: claim.head.created)

    world = lined(line=Youngest())
    world.add(*numbered(4))
    world.end("t0")
    assert world.placed() == {"t3": "n0"}


def test_a_line_policy_may_let_nobody_go_yet() -> None:
    class Shut(Line):
        def next(self, view, row, line):  # type: ignore[no-untyped-def]
            return None

    world = lined(line=Shut())
    world.add(make_task())
    assert (world.placed(), world.engine.queue_counts().node_queues) == ({}, 1)


def test_a_line_policy_that_serves_as_they_come_is_not_asked() -> None:
    class Mute(FifoLine):
        def next(self, view, row, line):  # type: ignore[no-untyped-def]
            raise AssertionError("asked")

    world = lined(line=Mute())
    world.add(*numbered(3))
    world.end("t0")
    assert (world.placed(), world.faults) == ({"t1": "n0"}, [])


@pytest.mark.parametrize("name", [name for name, policy in table.LINE.items() if policy.first_come])
def test_a_line_policy_that_says_it_serves_as_they_come_does(name: str) -> None:
    line = [Reservation([task], [0], 0.0) for task in numbered(3)]
    view = make_engine()._state.view
    assert table.LINE[name]().next(view, 0, line) is line[0]


def test_a_cordoned_nodes_line_goes_back_to_the_queue() -> None:
    world = lined()
    world.add(*numbered(3))
    world.put_node(make_node("m", cpu=2))
    world.put_node(make_node("n0", cpu=1, unschedulable=True))
    assert [world.node_of(f"t{at}") for at in range(3)] == ["n0", "m", "m"]


def test_a_node_that_shrinks_below_the_head_of_its_line_lets_it_go() -> None:
    world = lined(cpu=4)
    world.add(make_task("a", cpu=4), make_task("b", cpu=4, created=1))
    world.put_node(make_node("n0", cpu=2))
    assert world.engine.queue_counts().node_queues == 0
    assert world.engine.queue_counts().unschedulable == 1


def test_a_task_that_leaves_a_line_frees_its_room_there() -> None:
    world = lined()
    world.add(*numbered(3))
    world.delete("t1")
    world.end("t0")
    assert world.placed() == {"t2": "n0"}


def test_a_task_that_changes_in_its_line_joins_anew() -> None:
    world = lined(cpu=2)
    world.add(make_task("r", cpu=2))
    world.add(make_task("a", cpu=2, created=1), make_task("b", cpu=2, created=2))
    world.put(make_task("a", cpu=1, created=1))
    world.end("r")
    assert world.placed() == {"b": "n0"}


def test_no_line_is_joined_that_only_services_could_shorten() -> None:
    sampled, compared = Rosella(view="sample", compare="sq"), Rosella(replan=False, compare="sq")
    for policy in (Uniform("lines"), sampled, compared, Rosella(replan=False)):
        world = small_world(make_engine(policy), nodes=2, cpu=2)
        world.put_node(make_node("n1", cpu=2, unschedulable=True))
        world.add(*numbered(2, "service", long_running=True))
        world.put_node(make_node("n1", cpu=2))
        world.add(*numbered(6))
        assert list(world.placed().values()).count("n1") == 2, policy
        assert (0 in world.engine._state.node_queues.by_row, world.faults) == (False, []), policy


def test_a_line_that_a_service_has_cut_off_goes_back_to_the_queue() -> None:
    world = lined()
    world.add(make_task("r"), make_task("a", created=1))
    world.put(make_task("foreign", profile="other", node="n0", long_running=True))
    world.end("r")
    assert world.engine.queue_counts().node_queues == 0
    world.put_node(make_node("m", cpu=1))
    assert world.node_of("a") == "m"


def test_a_port_taken_by_a_resident_is_waited_for_in_line() -> None:
    world = lined(cpu=4)
    ports = (HostPort(80),)
    world.add(make_task("a", host_ports=ports), make_task("b", host_ports=ports, created=1))
    assert world.placed() == {"a": "n0"}
    world.end("a")
    assert world.placed() == {"b": "n0"}


def test_a_restart_makes_lines_again_from_the_pending_pods() -> None:
    world = lined()
    world.add(*numbered(4))
    again = small_world(make_engine(Uniform("lines")), cpu=1)
    again.add(*world.tasks.values())
    assert again.engine.queue_counts().node_queues == world.engine.queue_counts().node_queues == 3


def test_a_full_view_that_commits_joins_the_line_that_ends_soonest() -> None:
    learn = ExactSpeeds({"n0": 1.0, "n1": 0.1})
    world = small_world(make_engine(Rosella(replan=False, compare="sed"), learn), nodes=2, cpu=1)
    world.add(*numbered(5))
    assert len(world.engine._state.node_queues.by_row[0]) == 4


def test_lines_lose_nobody_when_nodes_come_and_go() -> None:
    world = small_world(make_engine(Uniform("lines")), nodes=3, cpu=1)
    world.add(*numbered(12))
    for at in range(3):
        world.drop_node(f"n{at}")
        world.put_node(make_node(f"m{at}", cpu=4))
    census = world.engine.queue_counts()
    waiting = census.active + census.node_queues + census.unschedulable + census.backoff
    assert waiting + len(world.placed()) == 12


def test_a_line_policy_may_divide_by_a_speed_of_nought() -> None:
    class Shortest(Line):
        def next(self, view, row, line):  # type: ignore[no-untyped-def]
            seconds = [1.0 / view.speeds(view.task_class(claim.head)).rate[row] for claim in line]
            return line[seconds.index(min(seconds))]

    world = small_world(make_engine(Uniform("lines"), ExactSpeeds({"n0": 0.0}), line=Shortest()), cpu=1)
    world.add(*numbered(2))
    world.end("t0")
    assert (world.placed(), world.faults) == ({"t1": "n0"}, [])


def test_node_queues_and_class_queues_share_one_cluster_without_over_committing_it() -> None:
    world = small_world(make_engine(Uniform("lines")), nodes=2, cpu=2)
    world.add(*numbered(9))
    for _ in range(9):
        assert all(list(world.placed().values()).count(node) <= 2 for node in ("n0", "n1"))
        done = next(iter(world.placed()), None)
        if done is not None:
            world.end(done)
    assert world.engine.queue_counts().node_queues == 0
