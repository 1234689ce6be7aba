"""Probes make way for real pods: at once, for those that it helps, and never on a node believed dead."""

from __future__ import annotations

import pytest

from fake_api import NODES, PODS, PROFILES
from probe_world import REAL, ProbeWorld, node, real, running_pod, world_with


@pytest.fixture
def world() -> ProbeWorld:
    """One node of four cores, two of them used by a real pod and one by a probe that runs."""
    world = world_with(nodes=0)
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    there = node("n0")
    there["status"]["allocatable"] = room
    world.api.put(NODES, there)
    world.api.put(REAL, real("resident", "2", on="n0"))
    running_pod(world)
    return world


def ends(world: ProbeWorld) -> bool:
    """Whether the probe is told to go by the next look."""
    world.look()
    (probe,) = world.api.pods().values()
    return "deletionTimestamp" in probe["metadata"]


def test_the_room_that_a_real_pod_waits_for_is_given_up_at_once(world):
    world.api.put(REAL, real("late", "2"))
    assert ends(world)
    (name,) = world.api.pods()
    assert world.api.pods()[name]["spec"]["terminationGracePeriodSeconds"] == 1
    outcome = world.status()["runs"][0]["outcome"]
    assert (outcome["succeeded"], outcome["reason"], outcome["endedBy"]) == (False, "MadeWay", "Operator")
    assert "a real pod waits for its room on n0" in outcome["message"]
    world.api.remove(f"{PODS}/{name}")
    world.look()
    assert world.status()["running"] == 0
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "MadeWay"
    assert not [path for path in world.api.objects if "/events/" in path], "it is no failure"


@pytest.mark.parametrize(
    "waiting",
    [
        real("small", "1"),
        real("large", "3"),
        real("elsewhere", "2", nodeSelector={"pool": "other"}),
        real("new", "2", told=False),
        real("gated", "2", schedulingGates=[{"name": "quota"}]),
        real("unreadable", "1e99"),
    ],
    ids=lambda each: each["metadata"]["name"],
)
def test_nobody_gives_way_in_vain(world, waiting):
    world.api.put(REAL, waiting)
    assert not ends(world)


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


def test_a_node_that_is_gone_is_no_trouble(world):
    world.api.remove(f"{NODES}/n0")
    world.api.put(REAL, real("late", "2"))
    assert not ends(world)


def test_who_waits_is_looked_at_every_second_while_a_probe_runs_and_not_otherwise(world):
    assert world.look() <= 1.0
    (name,) = world.api.pods()
    world.suspend()
    world.end(name)
    while world.api.pods():
        world.look()
    assert world.look() == world.settings.look_seconds
