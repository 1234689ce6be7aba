"""Recovery cases that every job manager must handle in the same way."""

import pytest

from eclectus.api.common import time_text
from eclectus.api.node_probe import PREFIX, ProbeId, SingleContainer
from eclectus_operator.node_probes.probe_pods import container, run_id
from fake_api import PODS, PROBES, Crash
from probe_world import INSTANCE, ProbeWorld, node_probe

LATE = 200.0  # older than any grace period


def begun(world, *numbers):
    """A NodeProbe whose status records these runs as begun and seen."""
    probe = world.api.put(PROBES, node_probe(limits={"running": 10, "leastPerHour": 0, "perHour": 1}))
    runs = [
        {"number": number, "node": "n0", "class": "cpu", "begunTime": stamp(world), "podUID": f"pod-{number}"}
        for number in numbers
    ]
    probe["status"] = {"runs": runs, "running": len(runs), "nextNumber": max(numbers) + 1}
    return run_id(probe["metadata"]["uid"])


def stamp(world):
    return time_text(world.api.now)


def there(world, name, labels, uid):
    world.api.put(
        PODS,
        {
            "metadata": {"name": name, "namespace": "probes", "labels": labels, "uid": uid},
            "spec": {"nodeName": "n0", "containers": [{"name": "unit"}]},
            "status": {"phase": "Running", "containerStatuses": [running(world)]},
        },
    )


def running(world):
    return {"name": "unit", "state": {"running": {"startedAt": stamp(world)}}}


def test_c1_what_a_restart_finds_is_adopted_lost_deleted_or_left_alone():
    world = ProbeWorld()
    run = begun(world, 1, 2, 3)
    a, b, d = (ProbeId(INSTANCE, run, number) for number in (1, 2, 4))
    f = ProbeId("green", run, 6)
    for number, one in ((1, a), (2, b), (4, d), (6, f)):
        there(world, one.name, one.labels, f"pod-{number}")
    there(world, f"{PREFIX}-{INSTANCE}-{run}-5", {}, "pod-5")  # e: the prefix alone
    world.api.now += LATE
    world.sync()
    left = world.api.pods()
    assert not left[a.name]["metadata"].get("deletionTimestamp")
    assert not left[b.name]["metadata"].get("deletionTimestamp")
    assert left[d.name]["metadata"]["deletionTimestamp"]
    assert not left[f"{PREFIX}-{INSTANCE}-{run}-5"]["metadata"].get("deletionTimestamp")
    assert not left[f.name]["metadata"].get("deletionTimestamp")
    status = world.status()
    assert [each["number"] for each in status["runs"]] == [1, 2]
    assert status["failed"] == 1, "run 3 is lost"
    assert not world.api.created[f"{PODS}/{ProbeId(INSTANCE, run, 3).name}"], "and is never created again"


def test_c2_a_crash_between_create_and_record_gives_one_pod():
    world = ProbeWorld()
    world.api.put(PROBES, node_probe())

    def crash_after_create(method, path, _):
        if method == "POST" and path.startswith(PODS):
            world.api.crash_at = (len(world.api.calls) - 1, True)

    world.api.watchers.append(crash_after_create)
    with pytest.raises(Crash):
        world.play(60)
    (run,) = world.status()["runs"]
    assert run["podUID"] == "", "it crashed before it could record the pod"
    world.start()
    world.sync()
    (name,) = world.api.pods()
    assert world.api.created[f"{PODS}/{name}"] == 1
    assert world.status()["runs"][0]["podUID"] == world.api.pods()[name]["metadata"]["uid"]


def test_c2_a_pod_that_exists_already_is_adopted():
    world = ProbeWorld()
    run = begun(world, 0)
    world.api.probe("batch")["status"]["runs"][0]["podUID"] = ""
    one = ProbeId(INSTANCE, run, 0)
    lists = []

    def created_concurrently(method, path):
        if (method, path) == ("GET", PODS):
            lists.append(path)
        if (method, path) == ("POST", PODS) and len(lists) == 1:
            there(world, one.name, one.labels, "pod-0")

    world.api.before = created_concurrently
    world.sync()  # finds no pod, creates it, and gets a 409
    assert world.status()["runs"][0]["podUID"] == ""
    world.sync()
    assert world.status()["runs"][0]["podUID"] == "pod-0"
    assert world.api.created[f"{PODS}/{one.name}"] == 1


def one_probe(world, **deadlines):
    """A NodeProbe whose first pod is bound; its name."""
    world.api.put(PROBES, node_probe(limits={"running": 1}, deadlines=deadlines))
    while not world.api.pods():
        world.sync()
        world.api.now += 1
    world.suspend()
    (name,) = world.api.pods()
    return name


def test_c3_an_image_that_is_never_pulled_fails_in_the_stage_pulling():
    world = ProbeWorld()
    name = one_probe(world, pullingSeconds=30)
    world.bind(name)
    world.waits(name, "ImagePullBackOff", "Back-off pulling image")
    for _ in range(5):
        world.sync()
        assert world.status()["runs"][0].get("outcome") is None
        world.api.now += 5
    world.api.now += 5
    world.sync()
    outcome = world.status()["runs"][0]["outcome"]
    assert (outcome["succeeded"], outcome["stage"], outcome["reason"]) == (
        False,
        "Pulling",
        "ImagePullBackOff",
    )
    assert "eclectus-unit:1" in outcome["message"]
    assert world.status()["runs"][0]["node"] in outcome["message"]
    assert "after 30 s" in outcome["message"]
    for _ in range(2):
        world.cluster_step()
        world.sync()
    assert world.api.pods() == {}
    assert (world.status()["runs"], world.status()["failed"]) == ([], 1)
    (event,) = [each for path, each in world.api.objects.items() if "/events/" in path]
    assert "Pulling" in event["note"]


def test_c4_an_unschedulable_pod_fails_with_the_schedulers_message():
    world = ProbeWorld()
    name = one_probe(world, schedulingSeconds=60)
    message = (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
    )
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    world.api.touch(f"{PODS}/{name}")["status"] = {"phase": "Pending", "conditions": [condition]}
    world.api.now += 60
    world.sync()
    world.sync()
    (profile,) = [each for path, each in world.api.objects.items() if "/nodeprofiles/" in path]
    last = profile["status"]["lastProbe"]
    assert (last["stage"], last["reason"], last["endedBy"]) == ("Scheduling", "Unschedulable", "Operator")
    assert message in last["message"]
    assert world.api.pods() == {}


def test_c6_deleting_twice_is_no_error():
    world = ProbeWorld()
    name = one_probe(world, schedulingSeconds=30)
    world.api.now += 30

    def gone_already(method, path):
        if method == "DELETE":
            world.api.objects.pop(f"{PODS}/{name}", None)

    world.api.before = gone_already
    world.sync()
    world.sync()
    assert [call for call in world.api.calls if call == ("DELETE", f"{PODS}/{name}")]
    assert world.status()["runs"] == []


def test_c8_an_absent_command_is_the_images_and_only_shell_wraps():
    assert container(SingleContainer("i")) == {"name": "main", "image": "i"}
    wrapped = container(SingleContainer("i", command=("a | b",), shell=True))  # noqa: S604 - no shell of ours
    assert wrapped["command"] == ["/bin/sh", "-c", "a | b"]
    assert container(SingleContainer("i", command=("a", "b")))["command"] == ["a", "b"]
    assert container(SingleContainer("i", args=("x",))) == {"name": "main", "image": "i", "args": ["x"]}
