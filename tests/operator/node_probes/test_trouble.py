"""Invalid objects, lost answers and rejections: each is reported, and affects nothing else."""

import pytest

from eclectus.kubeclient.api_errors import RejectedError, UnsureError
from eclectus_operator.node_probes.probe_pods import run_id
from fake_api import PODS, PROBES, PROFILES, fails_once
from probe_world import INSTANCE, ProbeWorld, created, node_probe, running_pod, world_with


def test_an_invalid_node_probe_is_reported_once_and_stops_no_other():
    world = ProbeWorld()
    bad = [{"name": "cpu", "run": {"image": "Not An Image"}}]
    world.api.put(PROBES, node_probe("bad", classes=bad))
    world.api.put(PROBES, node_probe("worse", classes="none at all"))
    world.api.put(PROBES, node_probe("good"))
    world.play(60)
    for name in ("bad", "worse"):
        assert world.condition("Ready", name)["status"] == "False"
        assert world.condition("Ready", name)["reason"] == "InvalidSpec"
    assert "classes[cpu]: run.image: image 'Not An Image'" in world.condition("Ready", "bad")["message"]
    assert "$.spec.classes" in world.condition("Ready", "worse")["message"]
    events = [each for path, each in world.api.objects.items() if "/events/" in path]
    assert sorted(each["regarding"]["name"] for each in events) == ["bad", "worse"]
    assert world.status("good")["nextNumber"] >= 1


ONE = {"name": "c", "image": "i"}


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"containers": [{**ONE, "securityContext": "none"}]}, "$.spec.containers[0].securityContext"),
        ({"containers": [{**ONE, "env": [1]}]}, "$.spec.containers[0].env[0]"),
        ({"containers": [{**ONE, "resources": {"requests": ["cpu"]}}]}, "resources.requests"),
        ({"containers": [ONE], "initContainers": [3]}, "$.spec.initContainers[0]"),
        ({"containers": [ONE], "volumes": "abc"}, "$.spec.volumes"),
        ({"containers": [ONE], "tolerations": "none"}, "$.spec.tolerations"),
        ({"containers": [ONE], "securityContext": 5}, "$.spec.securityContext"),
        ({"containers": [ONE], "topologySpreadConstraints": 5}, "$.spec.topologySpreadConstraints"),
        (
            {"containers": [{**ONE, "resources": {"limits": {"cpu": "fast"}}}]},
            "resources.requests.cpu: 'fast'",
        ),
    ],
)
def test_a_template_of_another_shape_is_reported_with_its_field_and_stops_no_other(spec, where):
    world = ProbeWorld()
    world.api.put(PROBES, node_probe("bad", classes=[{"name": "w", "template": {"spec": spec}}]))
    world.api.put(PROBES, node_probe("good"))
    world.play(60)
    assert world.condition("Ready", "bad")["reason"] == "InvalidSpec"
    assert where in world.condition("Ready", "bad")["message"]
    assert world.status("good")["nextNumber"] >= 1


def test_null_in_a_template_means_not_set():
    spec = {"containers": [{**ONE, "env": None, "resources": None}], "tolerations": None, "volumes": None}
    world = world_with(node_probe(classes=[{"name": "w", "template": {"metadata": None, "spec": spec}}]))
    world.play(60)
    assert world.condition("Ready")["status"] == "True"
    assert world.status()["succeeded"] >= 1


def test_runs_of_an_invalid_node_probe_still_end_and_those_of_an_unreadable_one_are_left_alone():
    world = world_with(node_probe(limits={"running": 1}), nodes=1)
    while not world.api.pods():
        world.sync()
        world.api.now += 1
    spec = world.api.touch(f"{PROBES}/batch")["spec"]
    good, spec["classes"] = spec["classes"], "none"
    world.api.now += 1000
    world.sync()
    assert world.api.pods(), "its runs cannot be read, so the pod may belong to one"
    spec["classes"] = good
    world.play(60)
    assert world.status()["running"] <= 1
    assert (
        world.status()["nextNumber"]
        == world.status()["succeeded"] + world.status()["failed"] + world.status()["running"]
    )


def test_a_node_probe_written_meanwhile_is_read_again():
    world = world_with()
    loads = []

    def scheduler_writes(method, path):
        if method == "PATCH" and "nodeprobes" in path and len(loads) < 3:
            loads.append(world.api.touch(f"{PROBES}/batch"))

    world.api.before = scheduler_writes
    world.play(60)
    assert len(loads) == 3
    assert world.status()["succeeded"] >= 1


@pytest.mark.parametrize(
    ("method", "part"),
    [
        ("POST", "/pods"),
        ("PATCH", "nodeprobes"),
        ("PATCH", "nodeprofiles"),
        ("DELETE", "/pods"),
        ("GET", "/nodes/"),
    ],
)
def test_a_lost_answer_costs_only_time(method, part):
    world = world_with()
    world.api.before = fails_once(method, part, UnsureError("no answer"))
    world.play(120)
    world.suspend()
    world.play(80)
    assert world.api.pods() == {}
    assert world.status()["failed"] == 0
    assert world.status()["succeeded"] == world.status()["nextNumber"] >= 2
    assert {world.api.created[path] for path in created(world)} == {1}


def test_a_pod_that_the_api_server_rejects_ends_its_run_with_the_servers_message():
    world = world_with(nodes=1)
    world.api.before = fails_once("POST", PODS, RejectedError("403 exceeded quota: probes"))
    world.play(20)
    assert world.status()["failed"] == 1
    (event,) = [each for path, each in world.api.objects.items() if "/events/" in path]
    assert "exceeded quota" in event["note"]


def test_a_foreign_pod_with_the_name_of_a_run_is_left_alone():
    world = world_with(node_probe(limits={"nodeIntervalSeconds": 86400}), nodes=1)

    def take_name(method, path):
        if (method, path) == ("POST", PODS) and not world.api.pods():
            run = run_id(world.api.probe("batch")["metadata"]["uid"])
            # Labels by which it is listed, but not those of a run.
            labels = {"app.kubernetes.io/managed-by": "eclectus", "eclectus.dev/instance": INSTANCE}
            meta = {"name": f"eclectus-probe-{INSTANCE}-{run}-0", "namespace": "probes", "uid": "theirs"}
            theirs = {"metadata": {**meta, "labels": labels}, "spec": {"nodeName": "n9"}}
            world.api.put(PODS, {**theirs, "status": {"phase": "Unknown"}})

    world.api.before = take_name
    world.play(60)
    (pod,) = world.api.pods().values()
    assert pod["metadata"]["uid"] == "theirs"
    assert world.status()["failed"] == 1
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "NameTaken"


def test_a_pod_whose_node_does_not_confirm_is_deleted_without_it():
    world = world_with(
        node_probe(limits={"nodeIntervalSeconds": 86400}, deadlines={"runningSeconds": 30}), nodes=1
    )
    name = running_pod(world)
    for _ in range(20):
        world.sync()
        world.api.now += 5
    assert world.api.pods()[name]["metadata"]["deletionTimestamp"], "deleted, but not confirmed by its node"
    world.api.now += 200
    world.sync()
    assert world.api.pods() == {}
    last = world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]
    assert (last["stage"], last["reason"], last["endedBy"]) == ("Running", "DeadlineExceeded", "Operator")
    (note,) = [
        each["note"]
        for path, each in world.api.objects.items()
        if "/events/" in path and each["reason"] == "PodsForced"
    ]
    assert f"pod {name}: still being deleted after 120 s (node n0)" in note


def test_an_orphan_whose_node_does_not_confirm_is_deleted_without_it():
    world = world_with(nodes=1)
    name = running_pod(world)
    world.api.remove(f"{PROBES}/batch")  # its pods are left to the garbage collector, which a pod waits for
    for _ in range(30):
        world.sync()
        world.api.now += 5
    assert world.api.pods()[name]["metadata"]["deletionTimestamp"]
    world.api.now += 130
    world.sync()
    assert world.api.pods() == {}


def test_a_list_that_fails_fails_the_sync():
    world = world_with()
    world.api.before = fails_once("GET", PODS, UnsureError("no answer"))
    with pytest.raises(UnsureError):
        world.sync()
    world.sync()


def test_a_run_that_cannot_advance_delays_no_other():
    world = world_with(node_probe(limits={"running": 2, "nodeIntervalSeconds": 86400}), nodes=2)
    blocked = []

    def never_created(method, path):
        if (method, path) == ("POST", PODS) and (not blocked or len(world.status()["runs"]) == 1):
            blocked.append(path)
            raise UnsureError("no answer")

    world.api.before = never_created
    world.play(90)
    assert len(blocked) > 2, "the first is tried in every sync"
    last = [
        each["status"]["lastProbe"]["reason"] for path, each in world.api.objects.items() if PROFILES in path
    ]
    assert "Completed" in last, "and the second runs to its end beside it"


def test_a_profile_that_may_not_be_written_keeps_no_run():
    world = world_with(nodes=1)

    def forbidden(method, path):
        if method == "PATCH" and "nodeprofiles" in path:
            raise RejectedError("403 forbidden")

    world.api.before = forbidden
    world.play(60)
    assert world.status()["succeeded"] >= 1
    assert all(each["number"] >= world.status()["succeeded"] for each in world.status()["runs"])
