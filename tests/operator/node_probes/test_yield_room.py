"""Probes yield to real pods: at once, only where that helps, and never on a node believed dead.

A probe with zero requests yields when real pods use what it notionally requests; one that reserves room
yields when a real pod waits for that room.
"""

from __future__ import annotations

import pytest

from eclectus.api.common import time_text
from eclectus.kube import objects as kube
from eclectus_operator.convert import read
from eclectus_operator.room import probe_room
from fake_api import NODES, PODS, PROFILES
from probe_world import REAL, ProbeWorld, node, node_probe, real, running_pod, world_with


def probed(reserve_room: bool) -> ProbeWorld:
    """One node of four cores: a real pod uses two, and a probe of one core runs."""
    world = world_with(node_probe(reserveRoom=reserve_room), nodes=0)
    world.api.put(NODES, node("n0"))
    world.api.put(REAL, real("placed", "2", on="n0"))
    running_pod(world)
    return world


@pytest.fixture
def world() -> ProbeWorld:
    """The probe reserves its room."""
    return probed(reserve_room=True)


@pytest.fixture
def zero_requests() -> ProbeWorld:
    """The probe has zero requests."""
    return probed(reserve_room=False)


def yields(world: ProbeWorld) -> bool:
    """Whether the next sync deletes the probe pod."""
    world.sync()
    (probe,) = world.api.pods().values()
    return "deletionTimestamp" in probe["metadata"]


def test_reserved_room_is_yielded_at_once_to_a_waiting_pod(world):
    world.api.put(REAL, real("late", "2"))
    assert yields(world)
    (name,) = world.api.pods()
    assert world.api.pods()[name]["spec"]["terminationGracePeriodSeconds"] == 1
    outcome = world.status()["runs"][0]["outcome"]
    assert (outcome["succeeded"], outcome["reason"], outcome["endedBy"]) == (False, "Yielded", "Operator")
    assert "real pods need its room on n0" in outcome["message"]
    world.api.remove(f"{PODS}/{name}")
    world.sync()
    assert world.status()["running"] == 0
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "Yielded"
    assert not [path for path in world.api.objects if "/events/" in path], "yielding is no failure"


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
def test_a_probe_does_not_yield_in_vain(world, waiting):
    world.api.put(REAL, waiting)
    assert not yields(world)


def test_a_probe_with_zero_requests_blocks_no_waiting_pod(zero_requests):
    zero_requests.api.put(REAL, real("late", "2"))
    assert not yields(zero_requests)


@pytest.mark.parametrize(("cpu", "expected"), [("1", False), ("1001m", True)])
def test_a_probe_yields_once_a_real_pod_uses_its_notional_requests(zero_requests, cpu, expected):
    zero_requests.api.put(REAL, real("late", cpu, on="n0"))
    assert yields(zero_requests) is expected


def test_with_zero_requests_it_stays_on_a_node_believed_dead(zero_requests):
    zero_requests.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"state": "Dead"}})
    zero_requests.api.put(REAL, real("late", "2", on="n0"))
    assert not yields(zero_requests)


# -- a probe that the scheduler has deleted ----------------------------------------------------------


def outcome_after_deletion(world: ProbeWorld, *, is_gone: bool) -> str:
    """The reason of the outcome once the probe pod has been deleted by somebody else."""
    (name,) = world.api.pods()
    if is_gone:
        world.api.remove(f"{PODS}/{name}")
    else:
        world.api.touch(f"{PODS}/{name}")["metadata"]["deletionTimestamp"] = time_text(world.api.now + 1.0)
    world.sync()
    (run,) = world.status()["runs"] or [{}]
    reason: str = run.get("outcome", {}).get("reason", "") if run else last_reason(world)
    return reason


def last_reason(world: ProbeWorld) -> str:
    return world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"]


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("state", ["Live", "Dead"])
def test_deleted_by_the_scheduler_for_a_real_pod_it_has_yielded(zero_requests, is_gone, state):
    zero_requests.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"state": state}})
    zero_requests.api.put(REAL, real("late", "2", on="n0"))
    assert outcome_after_deletion(zero_requests, is_gone=is_gone) == "Yielded"
    assert not [path for path in zero_requests.api.objects if "/events/" in path], "yielding is no failure"


def test_deleted_while_its_room_is_free_it_is_lost(zero_requests):
    assert outcome_after_deletion(zero_requests, is_gone=True) == "PodDeleted"


def test_whether_it_has_yielded_is_decided_when_it_is_gone(zero_requests):
    """The scheduler deletes it before the bind, which may be seen later."""
    assert outcome_after_deletion(zero_requests, is_gone=False) == ""
    zero_requests.api.put(REAL, real("late", "2", on="n0"))
    assert outcome_after_deletion(zero_requests, is_gone=True) == "Yielded"


def test_a_pod_that_is_not_gone_in_time_is_lost(zero_requests):
    outcome_after_deletion(zero_requests, is_gone=False)
    zero_requests.api.now += 600.0
    zero_requests.sync()
    assert last_reason(zero_requests) == "PodDeleted"


# -- every probe takes a place --------------------------------------------------------------------------


def test_every_probe_takes_one_of_the_nodes_pods(zero_requests):
    zero_requests.api.touch(f"{NODES}/n0")["status"]["allocatable"]["pods"] = "2"
    zero_requests.api.put(REAL, real("late", "500m"))
    assert yields(zero_requests)


def test_a_nodes_pods_count_as_room(world):
    world.api.touch(f"{NODES}/n0")["status"]["allocatable"]["pods"] = "2"
    world.api.put(REAL, real("late", "500m"))
    assert yields(world)


def test_an_ended_pod_takes_no_room(world):
    over = real("over", "2", on="n0")
    over["status"]["phase"] = "Succeeded"
    world.api.put(REAL, over)
    world.api.put(REAL, real("late", "2"))
    assert yields(world)


@pytest.mark.parametrize(("state", "expected"), [("Dead", False), ("Suspect", True), ("Live", True)])
def test_a_reserving_probe_stays_on_a_node_believed_dead(world, state, expected):
    world.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"state": state}})
    world.api.put(REAL, real("late", "2"))
    assert yields(world) is expected


def test_an_ended_probe_blocks_nobody():
    asks = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    there = read(node("n0"), kube.Node)
    probe = read({"metadata": {"uid": "p"}, "spec": asks, "status": {"phase": "Succeeded"}}, kube.Pod)
    assert probe_room("p", there, [probe]) is None, "its room is free already"


def test_a_node_that_is_gone_is_no_trouble(world):
    world.api.remove(f"{NODES}/n0")
    world.api.put(REAL, real("late", "2"))
    assert not yields(world)


def test_there_is_a_sync_every_second_while_a_probe_runs_and_not_otherwise(world):
    assert world.sync() <= 1.0
    (name,) = world.api.pods()
    world.suspend()
    world.end(name)
    while world.api.pods():
        world.sync()
    assert world.sync() == world.settings.look_seconds
