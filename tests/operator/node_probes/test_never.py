"""What the operator never does: runs in the wrong place, at the wrong time, too many, or twice."""

import pytest

from eclectus.api.names import CLASS_LABEL, PROBE_LABEL
from eclectus.model.objects import UNSUPPORTED
from eclectus_operator.room import UNREPORTED_SECONDS, WAITING_SECONDS
from eclectus_operator.settings import Settings
from fake_api import NODES, PROBES, PROFILES
from probe_world import SETTINGS, ProbeWorld, created, driven, node, node_probe, world_with
from probe_world import real as placed_pod

REAL = "/api/v1/namespaces/default/pods"


def real(name="real", **fields):
    return {
        "metadata": {"name": name, "namespace": "default", "labels": fields.get("labels", {})},
        "spec": {"nodeName": fields.get("node", ""), "containers": [], **fields.get("spec", {})},
        "status": {"phase": "Pending", "conditions": fields.get("conditions", [])},
    }


def unschedulable(reason, message=""):
    return [{"type": "PodScheduled", "status": "False", "reason": reason, "message": message}]


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
        driven(world.controller._context.pool.names({"pool": "batch"}))
        world.api.remove(f"{NODES}/n0")
        world.api.put(NODES, node("n0", **fields))
    world.api.put(PROBES, node_probe())
    world.play(40)
    assert created(world) == []
    assert world.condition("Probing")["reason"] in ("NoNode", "NoNodeNow")


def test_a_tainted_pool_is_probed_with_the_toleration():
    world = ProbeWorld(nodes=0)
    world.api.put(NODES, node("n0", taints=[{"key": "gpu", "value": "a", "effect": "NoSchedule"}]))
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    world.api.put(PROBES, node_probe(tolerations=[toleration]))
    world.play(20)
    (path,) = created(world)
    assert toleration in world.api.objects[path]["spec"]["tolerations"]


@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        (real(), "RealPodsWait"),
        (
            real(conditions=unschedulable("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")),
            "RealPodsWait",
        ),
        (real(conditions=unschedulable("WaitingForNode")), "RealPodsWait"),
        (real(conditions=unschedulable("SchedulerError", "binding was refused")), "RealPodsWait"),
        (real(conditions=unschedulable("SchedulerError", f"pod asks for claims, {UNSUPPORTED}")), ""),
        (real(node="n0", labels={CLASS_LABEL: "cpu"}), "RealPodStarts"),
        (
            real(
                conditions=unschedulable(
                    "Unschedulable", "0/3 nodes: 3 node(s) didn't match Pod's node affinity"
                )
            ),
            "",
        ),
        (real(spec={"schedulingGates": [{"name": "quota"}]}), ""),
        (real(node="n9"), ""),
    ],
    ids=[
        "new",
        "no room",
        "for a faster node",
        "tried again",
        "unsupported",
        "starts there",
        "fits nowhere",
        "gated",
        "elsewhere",
    ],
)
def test_never_while_a_real_pod_waits_for_room_or_starts_there(waiting, reason):
    world = world_with(nodes=1)
    world.api.put(REAL, waiting)
    world.play(20)
    assert len(created(world)) == (0 if reason else 1)
    if reason:
        assert world.condition("Probing")["reason"] == reason
        assert "default/real" in world.condition("Probing")["message"]
        world.api.remove(f"{REAL}/real")
        world.play(20)
        assert len(created(world)) == 1, "and it continues when no pod waits"


NO_ROOM = unschedulable("Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")


@pytest.mark.parametrize(
    ("waiting", "seconds"),
    [
        (real(spec={"schedulerName": "no-such-scheduler"}), UNREPORTED_SECONDS),
        (real(conditions=NO_ROOM), WAITING_SECONDS),
        (real(conditions=unschedulable("WaitingForNode")), WAITING_SECONDS),
        (real(conditions=unschedulable("SchedulerError", "a webhook does not answer")), WAITING_SECONDS),
    ],
    ids=["of an unknown scheduler", "no room", "for a faster node", "tried again"],
)
def test_a_pod_that_waits_for_ever_does_not_stop_probes_for_ever(waiting, seconds):
    world = world_with(nodes=1)
    world.api.put(REAL, waiting)
    world.play(seconds - 60, step=30)
    assert created(world) == []
    world.play(180, step=30)
    assert created(world)


@pytest.mark.parametrize(("cpu", "blocks"), [("4", True), ("4001m", False), ("1000", False)])
def test_a_pod_that_no_node_could_ever_hold_stops_no_probe(cpu, blocks):
    """The nodes have four cores. The message of the scheduler is the same for both pods."""
    world = world_with(nodes=3)
    world.api.put(REAL, placed_pod("waiting", cpu))
    world.play(20)
    assert bool(created(world)) is not blocks


def test_a_pod_that_a_larger_node_could_hold_stops_probes_once_it_is_there():
    world = world_with(nodes=1)
    world.api.put(REAL, placed_pod("waiting", "8"))
    large = node("large")
    large["status"]["allocatable"]["cpu"] = "64"
    world.api.put(NODES, large)
    world.play(20)
    assert created(world) == []


@pytest.mark.parametrize(
    ("taken", "reserve", "reason"),
    [("3001m", False, "NoRoom"), ("3", False, ""), ("4", True, ""), ("much", False, "RoomUnknown")],
    ids=["too much", "just enough", "reserved room is the scheduler's to find", "unreadable"],
)
def test_never_where_its_notional_requests_do_not_fit(taken, reserve, reason):
    world = world_with(node_probe(reserveRoom=reserve), nodes=1)
    world.api.put(REAL, placed_pod("placed", taken, on="n0"))
    world.play(20)
    assert len(created(world)) == (0 if reason else 1)
    if reason:
        assert world.condition("Probing")["reason"] == reason
        assert "n0" in world.condition("Probing")["message"]


@pytest.mark.parametrize(("state", "probed"), [("Dead", ["n1"]), ("Suspect", []), ("Live", [])])
def test_while_real_pods_wait_only_a_node_believed_dead_is_probed(state, probed):
    world = world_with(nodes=3)
    world.api.put(PROFILES, {"metadata": {"name": "n1"}, "status": {"state": state}})
    world.api.put(REAL, real())
    world.play(20)
    nodes = [pod["metadata"]["annotations"]["eclectus.dev/node"] for pod in world.api.pods().values()]
    assert nodes == probed


def test_never_more_than_the_limits_of_its_own_and_of_all():
    world = ProbeWorld(nodes=20, settings=Settings(**{**vars(SETTINGS), "most_running": 3}))
    world.api.put(PROBES, node_probe("one", limits={"running": 2}))
    world.api.put(PROBES, node_probe("two", limits={"running": 2}))
    seen = []

    def count():
        labels = [pod["metadata"]["labels"][PROBE_LABEL] for pod in world.api.pods().values()]
        seen.append((labels.count("one"), labels.count("two")))
        nodes = [pod["metadata"]["annotations"]["eclectus.dev/node"] for pod in world.api.pods().values()]
        assert len(set(nodes)) == len(nodes), "one probe per node"

    world.play(150, each=count)
    assert max(one for one, _ in seen) == 2
    assert 1 <= max(two for _, two in seen) <= 2
    assert max(one + two for one, two in seen) == 3


def test_a_node_rests_between_two_probes_over_restarts():
    world = world_with(node_probe(limits={"nodeIntervalSeconds": 600}), nodes=2)
    for _ in range(5):
        world.play(60)
        world.start()
    assert len(created(world)) == 2
    world.play(400)
    assert len(created(world)) > 2


def test_a_deleted_pod_is_lost_and_not_created_again():
    world = world_with(node_probe(limits={"nodeIntervalSeconds": 86400}), nodes=1)
    while not created(world):
        world.sync()
        world.api.now += 1
    (path,) = created(world)
    world.api.remove(path)
    world.play(60)
    assert world.api.created[path] == 1
    assert world.status()["failed"] == 1
    assert world.api.objects[f"{PROFILES}/n0"]["status"]["lastProbe"]["reason"] == "PodDeleted"
