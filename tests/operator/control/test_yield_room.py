"""Probes make way for real pods: at once, for those that it helps, and never on a node believed dead.

Most hold no room, and make way for who has come into the room that they stand for; some do, and make way for
who waits for it.
"""

from __future__ import annotations

import pytest

from eclectus.kube import objects as kube
from eclectus_operator.decide.room import blocks_any
from eclectus_operator.objects.convert import read
from fake_api import NODES, PODS, PROFILES
from probe_world import REAL, ProbeWorld, node, node_probe, real, running_pod, world_with


def probed(reserve_room: bool) -> ProbeWorld:
    """One node of four cores, two of them used by a real pod, and a probe that stands for one runs there."""
    world = world_with(node_probe(reserveRoom=reserve_room), nodes=0)
    world.api.put(NODES, node("n0"))
    world.api.put(REAL, real("resident", "2", on="n0"))
    running_pod(world)
    return world


@pytest.fixture
def world() -> ProbeWorld:
    """The probe holds its room."""
    return probed(reserve_room=True)


@pytest.fixture
def borrowing() -> ProbeWorld:
    """It holds none."""
    return probed(reserve_room=False)


def ends(world: ProbeWorld) -> bool:
    """Whether the probe is told to go by the next look."""
    world.sync()
    (probe,) = world.api.pods().values()
    return "deletionTimestamp" in probe["metadata"]


def test_the_room_that_a_real_pod_waits_for_is_given_up_at_once(world):
    world.api.put(REAL, real("late", "2"))
    assert ends(world)
    (name,) = world.api.pods()
    assert world.api.pods()[name]["spec"]["terminationGracePeriodSeconds"] == 1
    outcome = world.status()["runs"][0]["outcome"]
    assert (outcome["succeeded"], outcome["reason"], outcome["endedBy"]) == (False, "Yielded", "Operator")
    assert "real pods need its room on n0" in outcome["message"]
    world.api.remove(f"{PODS}/{name}")
    world.sync()
    assert world.status()["running"] == 0
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "Yielded"
    assert not [path for path in world.api.objects if "/events/" in path], "it is no failure"


@pytest.mark.parametrize(
    "waiting",
    [
        real("small", "1"),
        real("large", "3"),
        real("elsewhere", "2", nodeSelector={"pool": "other"}),
        real("new", "2", is_reported=False),
        real("gated", "2", schedulingGates=[{"name": "quota"}]),
        real("unreadable", "1e99"),
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_nobody_gives_way_in_vain(world, waiting):
    world.api.put(REAL, waiting)
    assert not ends(world)


def test_for_room_that_a_probe_does_not_hold_nobody_waits(borrowing):
    borrowing.api.put(REAL, real("late", "2"))
    assert not ends(borrowing)


@pytest.mark.parametrize(("cpu", "makes_way"), [("1", False), ("1001m", True)])
def test_a_probe_ends_once_a_real_pod_has_come_into_the_room_that_it_stands_for(borrowing, cpu, makes_way):
    borrowing.api.put(REAL, real("late", cpu, on="n0"))
    assert ends(borrowing) is makes_way


def test_on_a_node_believed_dead_it_stays(borrowing):
    borrowing.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"state": "Dead"}})
    borrowing.api.put(REAL, real("late", "2", on="n0"))
    assert not ends(borrowing)


def test_a_place_among_the_pods_is_held_by_every_probe(borrowing):
    borrowing.api.touch(f"{NODES}/n0")["status"]["allocatable"]["pods"] = "2"
    borrowing.api.put(REAL, real("late", "500m"))
    assert ends(borrowing)


def test_the_places_of_pods_are_room_too(world):
    world.api.touch(f"{NODES}/n0")["status"]["allocatable"]["pods"] = "2"
    world.api.put(REAL, real("late", "500m"))
    assert ends(world)


def test_what_has_ended_holds_no_room(world):
    over = real("over", "2", on="n0")
    over["status"]["phase"] = "Succeeded"
    world.api.put(REAL, over)
    world.api.put(REAL, real("late", "2"))
    assert ends(world)


@pytest.mark.parametrize(("state", "given_up"), [("Dead", False), ("Suspect", True), ("Live", True)])
def test_a_node_believed_dead_goes_on_being_probed(world, state, given_up):
    world.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"state": state}})
    world.api.put(REAL, real("late", "2"))
    assert ends(world) is given_up


def test_a_probe_that_has_ended_meanwhile_is_in_nobodys_way():
    asks = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    there = read(node("n0"), kube.Node)
    probe = read({"metadata": {"uid": "p"}, "spec": asks, "status": {"phase": "Succeeded"}}, kube.Pod)
    late = read(real("late", "5"), kube.Pod)
    assert not blocks_any("p", there, [probe], [late]), "its room was given back already"


def test_a_node_that_is_gone_is_no_trouble(world):
    world.api.remove(f"{NODES}/n0")
    world.api.put(REAL, real("late", "2"))
    assert not ends(world)


def test_who_waits_is_looked_at_every_second_while_a_probe_runs_and_not_otherwise(world):
    assert world.sync() <= 1.0
    (name,) = world.api.pods()
    world.suspend()
    world.end(name)
    while world.api.pods():
        world.sync()
    assert world.sync() == world.settings.look_seconds
