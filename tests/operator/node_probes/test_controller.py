"""What the controller does sync by sync, and how many requests that takes."""

from dataclasses import replace

import pytest

from fake_api import NODES, PROFILES
from probe_world import ProbeWorld, created, node_probe, running_pod, world_with


def test_probes_run_on_the_selected_nodes_and_their_profiles_record_it():
    world = world_with()
    world.play(120)
    profiles = {path.rpartition("/")[2]: each for path, each in world.api.objects.items() if PROFILES in path}
    assert profiles.keys() == {"n0", "n1", "n2"}
    last = profiles["n0"]["status"]["lastProbe"]
    assert (last["probe"], last["class"], last["reason"]) == ("batch", "cpu", "Completed")
    assert (last["seconds"], last["rate"]) == (20.0, 12.5)
    assert profiles["n0"]["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert world.condition("Ready")["status"] == "True"


def test_without_a_node_probe_no_probe_runs():
    world = ProbeWorld()
    world.play(120)
    assert created(world) == []
    assert {method for method, _ in world.api.calls} == {"GET"}


def test_a_sync_without_changes_writes_nothing():
    world = world_with(node_probe(limits={"leastPerHour": 0, "perHour": 1}))
    world.sync()
    before = len(world.api.calls)
    world.sync()
    assert {method for method, _ in world.api.calls[before:]} == {"GET"}


def test_what_the_scheduler_wrote_into_a_profile_is_kept():
    world = world_with(nodes=1)
    world.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"speed": 2.0, "epoch": 7}})
    world.play(60)
    status = world.api.objects[f"{PROFILES}/n0"]["status"]
    assert (status["speed"], status["epoch"], status["lastProbe"]["reason"]) == (2.0, 7, "Completed")


def test_the_reason_of_a_failed_benchmark_is_in_the_profile_and_an_event():
    world = world_with(nodes=1)
    name = running_pod(world)
    world.end(name, "out of paper\n", code=3, reason="Error")
    world.sync()
    last = world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]
    assert (last["succeeded"], last["stage"], last["reason"], last["endedBy"]) == (
        False,
        "Running",
        "Error",
        "Pod",
    )
    assert "exit code 3; out of paper" in last["message"]
    (event,) = [each for path, each in world.api.objects.items() if "/events/" in path]
    assert (event["type"], event["regarding"]["name"]) == ("Warning", "batch")
    assert "out of paper" in event["note"]


def test_a_suspended_node_probe_starts_nothing_and_lets_its_runs_end():
    world = world_with()
    while not created(world):
        world.sync()
        world.api.now += 1
    world.suspend()
    count = len(created(world))
    world.play(100)
    assert len(created(world)) == count
    assert world.status()["succeeded"] == count
    assert world.condition("Ready")["reason"] == "Suspended"


def test_a_run_takes_seven_writes_however_many_nodes_there_are():
    counts = []
    for nodes in (3, 300):
        world = world_with(node_probe(limits={"running": 1, "nodeIntervalSeconds": 0}), nodes=nodes)
        for number in range(nodes):
            world.api.put(PROFILES, {"metadata": {"name": f"n{number}"}})
        world.play(120)
        world.suspend()
        world.play(60)
        before = len(world.api.calls)
        world.play(60)
        assert {method for method, _ in world.api.calls[before:]} == {"GET"}, "suspended, it writes nothing"
        # Two writes of the Ready condition (accepted, suspended), and one whenever Probing changes.
        flips = 2 * world.status()["nextNumber"]
        writes = sum(method != "GET" for method, _ in world.api.calls) - 2
        assert 7 * world.status()["nextNumber"] <= writes <= 7 * world.status()["nextNumber"] + flips
        counts.append(writes / world.status()["nextNumber"])
    assert counts[1] == pytest.approx(counts[0], rel=0.2)


def test_nodes_are_listed_once_a_minute_at_most():
    world = world_with()
    world.play(300, step=1.0)
    assert world.status()["nextNumber"] >= 5
    assert sum(call == ("GET", NODES) for call in world.api.calls) <= 300 / 60 + 1


def test_another_installation_that_takes_over_gives_up_what_the_first_has_begun_and_leaves_its_pods_alone():
    world = world_with(node_probe(limits={"running": 1}))
    theirs = running_pod(world)
    world.settings = replace(world.settings, instance="green")
    world.start()
    world.sync()
    assert (world.status()["failed"], theirs in world.api.pods()) == (1, True)
    assert world.api.pods()[theirs]["spec"]["activeDeadlineSeconds"] > 0, "it ends without an operator"
    world.play(120)
    assert world.status()["succeeded"] > 0
