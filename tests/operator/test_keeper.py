"""What the operator does, and never does, look by look."""

import pytest

from eclectus_operator.api import RefusedError, UnsureError
from eclectus_operator.pods import CLASS, PROBE, run_id
from eclectus_operator.settings import Settings
from fake_api import NODES, PODS, PROBES, PROFILES, fails_once
from probe_world import INSTANCE, SETTINGS, ProbeWorld, driven, node, node_probe

REAL = "/api/v1/namespaces/default/pods"


def world_with(probe=None, **options):
    world = ProbeWorld(**options)
    world.api.put(PROBES, probe or node_probe())
    return world


def real(name="real", **fields):
    return {
        "metadata": {"name": name, "namespace": "default", "labels": fields.get("labels", {})},
        "spec": {"nodeName": fields.get("node", ""), "containers": [], **fields.get("spec", {})},
        "status": {"phase": "Pending", "conditions": fields.get("conditions", [])},
    }


def told(reason, message=""):
    return [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]


def running_pod(world):
    """Play until a probe runs; its pod's name."""
    while not any(pod.get("status", {}).get("phase") == "Running" for pod in world.api.pods().values()):
        world.cluster_step()
        world.look()
        world.api.now += 1
    (name,) = world.api.pods()
    return name


def made(world):
    return [path for path in world.api.created if path.startswith(PODS)]


# -- what it does ----------------------------------------------------------------------------------


def test_probes_run_on_the_nodes_of_the_pool_and_their_profiles_say_so():
    world = world_with()
    world.play(120)
    profiles = {path.rpartition("/")[2]: each for path, each in world.api.objects.items() if PROFILES in path}
    assert profiles.keys() == {"n0", "n1", "n2"}
    last = profiles["n0"]["status"]["lastProbe"]
    assert (last["probe"], last["class"], last["reason"]) == ("batch", "cpu", "Completed")
    assert (last["seconds"], last["rate"]) == (20.0, 12.5)
    assert profiles["n0"]["metadata"]["ownerReferences"][0]["kind"] == "Node"
    assert world.condition("Ready")["status"] == "True"


def test_no_node_probe_no_probe():
    world = ProbeWorld()
    world.play(120)
    assert made(world) == []
    assert {method for method, _ in world.api.calls} == {"GET"}


def test_a_calm_look_writes_nothing():
    world = world_with(node_probe(limits={"leastPerHour": 0, "perHour": 1}))
    world.look()
    before = len(world.api.calls)
    world.look()
    assert {method for method, _ in world.api.calls[before:]} == {"GET"}


def test_a_profile_of_the_scheduler_keeps_what_it_says():
    world = world_with(nodes=1)
    world.api.put(PROFILES, {"metadata": {"name": "n0"}, "status": {"speed": 2.0, "epoch": 7}})
    world.play(60)
    status = world.api.objects[f"{PROFILES}/n0"]["status"]
    assert (status["speed"], status["epoch"], status["lastProbe"]["reason"]) == (2.0, 7, "Completed")


def test_a_failed_benchmark_says_why_on_profile_and_in_an_event():
    world = world_with(nodes=1)
    name = running_pod(world)
    world.end(name, "out of paper\n", code=3, reason="Error")
    world.look()
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


def test_a_suspended_one_starts_nothing_and_lets_what_runs_end():
    world = world_with()
    while not made(world):
        world.look()
        world.api.now += 1
    world.suspend()
    count = len(made(world))
    world.play(100)
    assert len(made(world)) == count
    assert world.status()["succeeded"] == count
    assert world.condition("Ready")["reason"] == "Suspended"


# -- what it never does ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"unschedulable": True},
        {"ready": False},
        {"labels": {"pool": "batch", "eclectus.dev/no-probes": ""}},
        {"labels": {"pool": "other"}},
        {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    ],
    ids=["cordoned", "not ready", "excluded", "another pool", "tainted"],
)
@pytest.mark.parametrize("listed", [True, False], ids=["from the first", "since it was listed"])
def test_never_on_a_node_that_may_not_be_probed(fields, listed):
    world = ProbeWorld(nodes=0)
    world.api.put(NODES, node("n0", **(fields if listed else {})))
    if not listed:
        driven(world.keeper._means.pool.names({"pool": "batch"}))
        world.api.remove(f"{NODES}/n0")
        world.api.put(NODES, node("n0", **fields))
    world.api.put(PROBES, node_probe())
    world.play(40)
    assert made(world) == []
    assert world.condition("Probing")["reason"] in ("NoNode", "NoNodeNow")


def test_a_tainted_pool_is_probed_with_the_toleration():
    world = ProbeWorld(nodes=0)
    world.api.put(NODES, node("n0", taints=[{"key": "gpu", "value": "a", "effect": "NoSchedule"}]))
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    world.api.put(PROBES, node_probe(tolerations=[toleration]))
    world.play(20)
    (path,) = made(world)
    assert toleration in world.api.objects[path]["spec"]["tolerations"]


@pytest.mark.parametrize(
    ("waiting", "held"),
    [
        (real(), "RealPodsWait"),
        (
            real(conditions=told("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")),
            "RealPodsWait",
        ),
        (real(conditions=told("WaitingForNode")), "RealPodsWait"),
        (real(node="n0", labels={CLASS: "cpu"}), "RealPodStarts"),
        (real(conditions=told("Unschedulable", "0/3 nodes: 3 node(s) didn't match Pod's node affinity")), ""),
        (real(spec={"schedulingGates": [{"name": "quota"}]}), ""),
        (real(node="n9"), ""),
    ],
    ids=["new", "no room", "for a faster node", "about to start there", "fits nowhere", "gated", "elsewhere"],
)
def test_never_while_a_real_pod_waits_for_room_or_starts_there(waiting, held):
    world = world_with(nodes=1)
    world.api.put(REAL, waiting)
    world.play(20)
    assert len(made(world)) == (0 if held else 1)
    if held:
        assert world.condition("Probing")["reason"] == held
        assert "default/real" in world.condition("Probing")["message"]
        world.api.remove(f"{REAL}/real")
        world.play(20)
        assert len(made(world)) == 1, "and goes on when it waits no more"


def test_never_more_than_the_limits_of_its_own_and_of_all():
    world = ProbeWorld(nodes=20, settings=Settings(**{**vars(SETTINGS), "most_running": 3}))
    world.api.put(PROBES, node_probe("one", limits={"running": 2}))
    world.api.put(PROBES, node_probe("two", limits={"running": 2}))
    seen = []

    def count():
        labels = [pod["metadata"]["labels"][PROBE] for pod in world.api.pods().values()]
        seen.append((labels.count("one"), labels.count("two")))
        nodes = [pod["metadata"]["annotations"]["eclectus.dev/node"] for pod in world.api.pods().values()]
        assert len(set(nodes)) == len(nodes), "one probe a node"

    world.play(150, each=count)
    assert max(one for one, _ in seen) == 2
    assert 1 <= max(two for _, two in seen) <= 2
    assert max(one + two for one, two in seen) == 3


def test_a_node_rests_between_two_probes_over_restarts():
    world = world_with(node_probe(limits={"nodeIntervalSeconds": 600}), nodes=2)
    for _ in range(5):
        world.play(60)
        world.start()
    assert len(made(world)) == 2
    world.play(400)
    assert len(made(world)) > 2


def test_a_pod_that_somebody_deleted_is_lost_and_not_made_again():
    world = world_with(node_probe(limits={"nodeIntervalSeconds": 86400}), nodes=1)
    while not made(world):
        world.look()
        world.api.now += 1
    (path,) = made(world)
    world.api.remove(path)
    world.play(60)
    assert world.api.created[path] == 1
    assert world.status()["failed"] == 1
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "PodDeleted"


# -- trouble ---------------------------------------------------------------------------------------


def test_a_bad_node_probe_says_so_once_and_stops_nobody():
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


def test_runs_of_one_that_has_become_bad_still_end_and_of_one_unreadable_are_left_alone():
    world = world_with(node_probe(limits={"running": 1}), nodes=1)
    while not world.api.pods():
        world.look()
        world.api.now += 1
    spec = world.api.touch(f"{PROBES}/batch")["spec"]
    good, spec["classes"] = spec["classes"], "none"
    world.api.now += 1000
    world.look()
    assert world.api.pods(), "its runs cannot be read, so nobody knows that this is no run"
    spec["classes"] = good
    world.play(60)
    assert world.status()["running"] <= 1
    assert (
        world.status()["nextNumber"]
        == world.status()["succeeded"] + world.status()["failed"] + world.status()["running"]
    )


def test_one_that_was_written_meanwhile_is_read_again():
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
def test_an_answer_that_never_came_costs_time_and_nothing_else(method, part):
    world = world_with()
    world.api.before = fails_once(method, part, UnsureError("no answer"))
    world.play(120)
    world.suspend()
    world.play(80)
    assert world.api.pods() == {}
    assert world.status()["failed"] == 0
    assert world.status()["succeeded"] == world.status()["nextNumber"] >= 2
    assert {world.api.created[path] for path in made(world)} == {1}


def test_a_pod_the_api_server_refuses_ends_its_run_with_the_servers_words():
    world = world_with(nodes=1)
    world.api.before = fails_once("POST", PODS, RefusedError("403 exceeded quota: probes"))
    world.play(20)
    assert world.status()["failed"] == 1
    (event,) = [each for path, each in world.api.objects.items() if "/events/" in path]
    assert "exceeded quota" in event["note"]


def test_a_name_that_somebody_else_bears_is_left_alone():
    world = world_with(node_probe(limits={"nodeIntervalSeconds": 86400}), nodes=1)

    def squat(method, path):
        if (method, path) == ("POST", PODS) and not world.api.pods():
            run = run_id(world.api.probe("batch")["metadata"]["uid"])
            # Labels by which it is listed, but which are not those of a run.
            labels = {"app.kubernetes.io/managed-by": "eclectus", "eclectus.dev/instance": INSTANCE}
            meta = {"name": f"eclectus-probe-{INSTANCE}-{run}-0", "namespace": "probes", "uid": "theirs"}
            theirs = {"metadata": {**meta, "labels": labels}, "spec": {"nodeName": "n9"}}
            world.api.put(PODS, {**theirs, "status": {"phase": "Unknown"}})

    world.api.before = squat
    world.play(60)
    (pod,) = world.api.pods().values()
    assert pod["metadata"]["uid"] == "theirs"
    assert world.status()["failed"] == 1
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "NameTaken"


def test_a_pod_that_will_not_go_is_deleted_without_its_node():
    world = world_with(
        node_probe(limits={"nodeIntervalSeconds": 86400}, deadlines={"runningSeconds": 30}), nodes=1
    )
    name = running_pod(world)
    for _ in range(20):
        world.look()
        world.api.now += 5
    assert world.api.pods()[name]["metadata"]["deletionTimestamp"], "told to go, and its node is silent"
    world.api.now += 200
    world.look()
    assert world.api.pods() == {}
    last = world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]
    assert (last["stage"], last["reason"], last["endedBy"]) == ("Running", "DeadlineExceeded", "Operator")


def test_a_list_that_fails_fails_the_look():
    world = world_with()
    world.api.before = fails_once("GET", PODS, UnsureError("no answer"))
    with pytest.raises(UnsureError):
        world.look()
    world.look()


def test_a_run_that_cannot_go_on_keeps_no_other_back():
    world = world_with(node_probe(limits={"running": 2, "nodeIntervalSeconds": 86400}), nodes=2)
    blocked = []

    def never_created(method, path):
        if (method, path) == ("POST", PODS) and (not blocked or len(world.status()["runs"]) == 1):
            blocked.append(path)
            raise UnsureError("no answer")

    world.api.before = never_created
    world.play(90)
    assert len(blocked) > 2, "the first is tried at every look"
    last = [
        each["status"]["lastProbe"]["reason"] for path, each in world.api.objects.items() if PROFILES in path
    ]
    assert "Completed" in last, "and the second runs to its end beside it"


def test_a_profile_that_must_not_be_written_keeps_no_run():
    world = world_with(nodes=1)

    def forbidden(method, path):
        if method == "PATCH" and "nodeprofiles" in path:
            raise RefusedError("403 forbidden")

    world.api.before = forbidden
    world.play(60)
    assert world.status()["succeeded"] >= 1
    assert all(each["number"] >= world.status()["succeeded"] for each in world.status()["runs"])


# -- what it costs ---------------------------------------------------------------------------------


def test_a_probe_costs_seven_writes_however_many_nodes_there_are():
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
        assert {method for method, _ in world.api.calls[before:]} == {"GET"}, "at rest it writes nothing"
        # Two words about the spec (obeyed, suspended), and one whenever a due probe is held back or no more.
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
