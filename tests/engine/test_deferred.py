"""Deferred tasks: decided anew in every cycle, for a limited time, and they hold tentative room."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.events import NodeGone, NodeSeen, TaskGone
from eclectus.policies.rosella import Rosella
from worlds import World, numbered


def two_speeds(fast: float = 0.1, slow: float = 0.01, theta: float = 6.0, **nodes: object) -> World:
    """One fast and one slow node with one slot each: a task runs 10 s on the fast, 100 s on the slow one."""
    learn = ExactSpeeds({"fast": fast, "slow": slow}, otherwise=fast)
    engine = make_engine(Rosella(theta=theta), learn)
    return World(engine, make_node("fast", cpu=1), make_node("slow", cpu=1))


def test_the_fast_node_is_taken_first() -> None:
    world = two_speeds()
    world.add(make_task())
    assert world.placed() == {"a": "fast"}


def test_a_task_waits_for_the_fast_node_while_the_slow_one_is_free() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    assert world.placed() == {"t0": "fast"}
    world.end("t0")
    assert world.placed() == {"t1": "fast"}


def test_with_a_large_theta_the_slow_node_is_taken_at_once() -> None:
    world = two_speeds(theta=100)
    world.add(*numbered(2))
    assert world.placed() == {"t0": "fast", "t1": "slow"}


def test_a_task_does_not_wait_behind_another_deferred_task() -> None:
    world = two_speeds()
    world.add(*numbered(3))
    assert world.placed() == {"t0": "fast", "t2": "slow"}


def test_a_task_waits_no_longer_than_it_would_have_run_on_the_slow_node() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    world.sleep(85)
    assert world.node_of("t1") == ""
    world.sleep(40)
    assert world.node_of("t1") == "slow"


def test_waiting_time_counts_from_the_first_deferral_whatever_events_come() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    for at in range(12):
        world.add(make_task(f"later{at}", cpu=9, created=100.0))
        world.sleep(10)
    assert world.node_of("t1") == "slow"


def test_a_task_whose_node_is_deleted_is_decided_anew() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    world.step(NodeGone("fast"))
    world.settle()
    assert world.node_of("t1") == "slow"


def test_a_new_node_in_the_row_of_a_deleted_one_has_no_tentative_room() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    world.step(NodeGone("fast"), NodeSeen(make_node("new", cpu=1)))
    world.settle()
    world.add(*numbered(3, "later"))
    assert world.engine._state.cluster.tentative.min() == 0
    assert list(world.placed().values()).count("new") == 1


def test_a_new_idle_node_ends_the_wait() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    world.put_node(make_node("another", cpu=1))
    assert world.node_of("t1") == "another"


def test_a_deleted_deferred_task_leaves_no_tentative_room() -> None:
    world = two_speeds()
    world.add(*numbered(2))
    world.step(TaskGone("uid-t1"))
    assert world.engine._state.cluster.tentative.sum() == 0
    world.add(make_task("late", created=9))
    world.end("t0")
    assert world.node_of("late") == "fast"


def test_tentative_room_of_an_earlier_task_is_not_given_to_a_later_one() -> None:
    world = two_speeds()
    world.add(make_task("first", created=0), make_task("wide", cpu=1, memory=1, created=1))
    world.end("first")
    world.add(make_task("later", created=2))
    assert world.node_of("wide") == "fast"
    assert world.node_of("later") == ""


def test_a_service_never_waits_while_a_node_has_room() -> None:
    world = two_speeds()
    world.add(*numbered(2, long_running=True))
    assert world.placed() == {"t0": "fast", "t1": "slow"}


def test_no_task_waits_for_a_service_to_end() -> None:
    world = two_speeds()
    world.add(make_task("service", long_running=True), make_task("batch", created=1))
    assert world.placed() == {"service": "fast", "batch": "slow"}


def test_no_task_waits_for_a_node_that_services_overcommit() -> None:
    world = two_speeds()
    world.add(make_task("service", long_running=True))
    world.put_node(make_node("fast", cpu=0.2))
    world.add(make_task("small", cpu=0.1, created=1))
    assert world.node_of("small") == "slow"


def test_services_share_nodes_in_proportion_to_speed() -> None:
    learn = ExactSpeeds({"fast": 0.4, "slow": 0.1}, otherwise=0.1)
    world = World(make_engine(learn=learn), make_node("fast", cpu=20), make_node("slow", cpu=20))
    world.add(*numbered(15, long_running=True))
    nodes = list(world.placed().values())
    assert nodes.count("fast") == pytest.approx(12, abs=1)


def test_a_preference_counts_as_a_factor_of_speed() -> None:
    from eclectus.model.objects import Preference, Requirement, Term

    prefers_slow = (Preference(1, Term((Requirement("kind", "In", ("slow",)),))),)
    learn = ExactSpeeds({"fast": 0.15, "slow": 0.1}, otherwise=0.1)
    world = World(
        make_engine(learn=learn),
        make_node("fast", labels={"kind": "fast"}),
        make_node("slow", labels={"kind": "slow"}),
    )
    world.add(make_task("a", preferences=prefers_slow), make_task("b", created=1))
    assert world.placed() == {"a": "slow", "b": "fast"}


def test_equal_nodes_are_filled_evenly() -> None:
    learn = ExactSpeeds({}, otherwise=0.1)
    world = World(make_engine(learn=learn), *(make_node(f"n{at}") for at in range(4)))
    world.add(*numbered(8))
    assert sorted(world.placed().values()) == ["n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"]
