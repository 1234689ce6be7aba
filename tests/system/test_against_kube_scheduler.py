"""Filters and messages compared with those of a real kube-scheduler, for the same pods and nodes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit_error import fit_error
from eclectus.feasibility.task_class import TaskClass
from eclectus.kube.objects import decode_list, decode_node, decode_pod
from eclectus.kube.translate import node_from, task_from
from eclectus.model.objects import Task
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from eclectus_e2e.testbed.processes import wait_for

pytestmark = pytest.mark.live

WAIT_SECONDS = 120.0  # the machine may be busy
POST_FILTER = re.compile(r" (?:preemption: .*|not found)$")
"""What PostFilter plugins append in kube-scheduler; Eclectus has no preemption and appends nothing.

`not found` comes from the resource-claim plugin, which has no state if a pod was refused before it ran.
"""

# -- the cluster -----------------------------------------------------------------------------------

ROOM = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "3"}


def node(name: str, zone: str = "", nic: str = "", room: dict[str, str] | None = None, **spec: Any) -> Any:
    labels = {key: value for key, value in (("zone", zone), ("nic", nic)) if value}
    allocatable = {**ROOM, **(room or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def taint(key: str, value: str, effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


NODES = [
    node("cordoned", unschedulable=True),
    node("tainted-1", taints=[taint("team", "a")]),
    node("tainted-2", taints=[taint("team", "b"), taint("soft", "x", "PreferNoSchedule")]),
    *(node(f"east-{i}", "east", str(10 * i)) for i in (1, 2, 3)),
    *(node(f"west-{i}", "west", "100") for i in range(1, 9)),
    node("gpu", "west", room={"example.com/gpu": "2", "hugepages-2Mi": "64Mi"}),
    node("full", "south"),
    node("tiny", "south", room={"pods": "0", "cpu": "100m"}),
]


def box(asked: dict[str, str] | None = None, name: str = "main", **fields: Any) -> Any:
    return {
        "name": name,
        "image": "pause",
        "resources": {"requests": asked or {}, "limits": asked or {}},
        **fields,
    }


def sidecar(asked: dict[str, str], name: str = "sidecar") -> Any:
    return box(asked, name, restartPolicy="Always")


def pod(name: str, asked: dict[str, str] | None = None, app: str = "", **spec: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app} if app else {}},
        "spec": {"containers": [box(asked)], **spec},
    }


def name_of(thing: Any) -> str:
    return str(thing["metadata"]["name"])


def on_port(ip: str = "", asked: dict[str, str] | None = None) -> list[Any]:
    return [box(asked, ports=[{"containerPort": 80, "hostPort": 8080, "hostIP": ip}])]


ALONE = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "lonely"}}}
KEEPS_AWAY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ALONE]}}
BOUND = [
    pod("r1", {"cpu": "3"}, nodeName="full"),
    pod("r2", nodeName="full", containers=on_port()),
    pod("r3", nodeName="full"),
    pod("r4", nodeName="gpu", containers=on_port("10.0.0.1")),
    pod("r5", {"cpu": "2"}, nodeName="east-1"),
    pod("r6", {"cpu": "100m"}, "lonely", nodeName="east-2", affinity=KEEPS_AWAY),
    pod("r7", nodeName="east-3", initContainers=[sidecar({"cpu": "1"}), box({"cpu": "2"}, "init")]),
    pod("r8", app="even", nodeName="east-1"),
    pod("r9", app="even", nodeName="east-3"),
]

# -- pods that fit no node -------------------------------------------------------------------------


def needs(*terms: Any) -> Any:
    return {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    }


def label(key: str, operator: str, *values: str) -> Any:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def between(key: str, low: str, high: str) -> Any:
    return {
        "matchExpressions": label(key, "Gt", low)["matchExpressions"]
        + label(key, "Lt", high)["matchExpressions"]
    }


def named(*names: str) -> Any:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in names]}


def spread(app: str, key: str = "zone", **fields: Any) -> Any:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **fields}
    return [{**constraint, "labelSelector": {"matchLabels": {"app": app}}}]


def near(app: str, key: str = "zone") -> Any:
    return {"podAffinity": {REQUIRED: [by_label(app, key)]}}


def apart(app: str, key: str = "zone") -> Any:
    return {"podAntiAffinity": {REQUIRED: [by_label(app, key)]}}


def by_label(app: str, key: str) -> Any:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TWO = [by_label("lonely", "zone"), by_label("even", "zone")]
EAST, SOUTH, WEST = ({"zone": zone} for zone in ("east", "south", "west"))
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
REFUSED = [
    pod("too-large", {"cpu": "64"}),
    pod("too-large-twice", {"cpu": "64", "memory": "1Ti"}),
    pod("storage", {"ephemeral-storage": "11Gi"}),
    pod("gpus", {"example.com/gpu": "3"}),
    pod("huge-pages", {"hugepages-2Mi": "128Mi", "cpu": "1", "memory": "1Gi"}),
    pod("nowhere", nodeSelector={"zone": "north"}),
    pod("no-room-in-the-east", {"cpu": "3950m"}, nodeSelector=EAST),
    pod("faster-than-any", affinity=needs(label("nic", "Gt", "100"))),
    pod("slower-than-any", affinity=needs(label("nic", "Lt", "10"), label("zone", "In", "north"))),
    pod("without-zone", affinity=needs(label("zone", "DoesNotExist"))),
    pod("not-these-zones", affinity=needs(label("zone", "NotIn", "east", "west", "south"))),
    pod("pinned", {"cpu": "3"}, affinity=needs(named("east-1"), named("tainted-1"))),
    pod("pinned-to-nothing", affinity=needs(named("gone"))),
    pod("pinned-in-conflict", affinity=needs(named("east-1", "east-2"))),
    pod("cordon-tolerated", {"cpu": "64"}, tolerations=[CORDON]),
    pod("all-tolerated", {"cpu": "64"}, tolerations=[{"operator": "Exists"}]),
    pod(
        "one-team-tolerated",
        {"cpu": "64"},
        tolerations=[{"key": "team", "value": "a", "effect": "NoSchedule"}],
    ),
    pod("port", nodeSelector=SOUTH, containers=on_port()),
    pod("port-on-one-address", affinity=needs(named("gpu"), named("full")), containers=on_port("10.0.0.1")),
    pod("no-places", nodeSelector=SOUTH),
    pod("kept-away", app="lonely", nodeSelector=EAST),
    pod("kept-away-or-too-large", {"cpu": "3"}, "lonely", nodeSelector=EAST),
    pod(
        "sidecars",
        {"cpu": "1"},
        nodeSelector=WEST,
        initContainers=[sidecar({"cpu": "2"}), box({"cpu": "2500m"}, "init")],
    ),
    pod("near-nobody", affinity=near("absent")),
    pod("near-by-a-label-that-no-node-has", app="self", affinity=near("self", "rack")),
    pod("near-in-another-zone", nodeSelector=WEST, affinity=near("lonely")),
    pod("near-two-that-no-pod-is", affinity={"podAffinity": {REQUIRED: [*TWO]}}),
    pod("apart-in-the-east", nodeSelector=EAST, affinity=apart("even")),
    pod("apart-and-kept-away", app="lonely", nodeSelector=EAST, affinity=apart("even")),
    pod("apart-or-too-large", {"cpu": "3"}, nodeSelector=EAST, affinity=apart("even")),
    pod("spread-by-a-label-that-no-node-has", topologySpreadConstraints=spread("even", "rack")),
    pod(
        "spread-over-all-zones",
        app="even",
        nodeSelector=EAST,
        topologySpreadConstraints=spread("even", nodeAffinityPolicy="Ignore"),
    ),
    pod(
        "spread-with-a-greater-skew",
        app="even",
        nodeSelector=EAST,
        topologySpreadConstraints=spread("even", nodeAffinityPolicy="Ignore", maxSkew=2),
    ),
    pod(
        "spread-over-more-zones-than-there-are",
        app="even",
        nodeSelector=EAST,
        topologySpreadConstraints=spread("even", minDomains=4),
    ),
    pod(
        "spread-of-others",
        app="odd",
        nodeSelector=EAST,
        topologySpreadConstraints=spread("even", minDomains=4),
    ),
    pod(
        "spread-by-two-labels",
        app="even",
        nodeSelector=EAST,
        topologySpreadConstraints=spread("even", minDomains=4) + spread("even", "rack"),
    ),
    pod("pod-level", {"cpu": "1"}, resources={"requests": {"cpu": "5"}, "limits": {"cpu": "5"}}),
]

# -- pods that fit exactly one node ----------------------------------------------------------------

ACCEPTED = {  # one pod per node, and none that would change the messages of the refused pods
    "cordoned": pod("cordon-tolerated-here", affinity=needs(named("cordoned")), tolerations=[CORDON]),
    "tainted-1": pod(
        "team-a",
        affinity=needs(label("zone", "DoesNotExist")),
        tolerations=[{"key": "team", "value": "a", "effect": "NoSchedule"}],
    ),
    "tainted-2": pod(
        "team-b-despite-a-soft-taint",
        affinity=needs(label("zone", "NotIn", "east", "west", "south")),
        tolerations=[{"key": "team", "value": "b"}],
    ),
    "east-3": pod("between", affinity=needs(between("nic", "20", "100"))),
    "west-1": pod("exact-room", {"cpu": "4", "memory": "8Gi"}, affinity=needs(named("west-1"))),
    "west-2": pod("elsewhere", app="lonely", affinity=needs(label("zone", "In", "east"), named("west-2"))),
    "west-3": pod(
        "exact-start",
        {"cpu": "1"},
        affinity=needs(named("west-3")),
        initContainers=[box({"cpu": "3"}, "first"), sidecar({"cpu": "2"}), box({"cpu": "2"}, "second")],
    ),
    "west-4": pod(
        "pod-level-below-its-containers",
        {"cpu": "2"},
        affinity=needs(named("west-4")),
        resources={"requests": {"cpu": "4"}, "limits": {"cpu": "4"}},
    ),
    "east-1": pod(
        "spread-where-only-the-east-counts",
        app="even",
        affinity=needs(named("east-1")),
        topologySpreadConstraints=spread("even", nodeTaintsPolicy="Honor"),
    ),
    "east-2": pod("near-the-lonely", affinity=near("lonely") | needs(named("east-2"))),
    "west-5": pod("near-itself", app="first", affinity=near("first") | needs(named("west-5"))),
    "west-6": pod(
        "apart-from-the-east", affinity=apart("even") | needs(named("west-6", "east-2"), named("west-6"))
    ),
    "west-7": pod(
        "spread-to-the-least",
        affinity=needs(label("zone", "In", "east"), named("west-7")),
        topologySpreadConstraints=spread("even"),
    ),
    "gpu": pod("all-gpus", containers=on_port("10.0.0.2", {"example.com/gpu": "2"})),
}


class Compared:
    """The API's objects, kube-scheduler's message for each refused pod, and the same cluster in our model."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._create(NODES)
        self._create([*BOUND, *REFUSED])
        plane.start_kube_scheduler()  # only now, so that its first list has everything
        self.pods = self._pods_settled()
        # Later, because bound pods take room, which would appear in the messages of the refused pods.
        self._create([*ACCEPTED.values()])
        accepted = {name_of(each) for each in ACCEPTED.values()}
        self.pods |= {name: task for name, task in self._pods_settled().items() if name in accepted}
        self.cluster = Cluster()
        for raw in self._list("nodes"):
            self.cluster.set_node(node_from(decode_node(raw)))
        for name in map(name_of, BOUND):
            task = self.pods[name]
            self.cluster.hold(self.cluster.rows[task.node], task)

    def tasks(self) -> list[Task]:
        return [task_from(decode_pod(raw)) for raw in self._list("namespaces/default/pods")]

    def theirs(self, name: str) -> str:
        return POST_FILTER.sub("", self.pods[name].reported)

    def ours(self, name: str) -> str:
        return fit_error(self._class(name), self.cluster).message

    def our_nodes(self, name: str) -> list[str]:
        return [self.cluster.names[row] for row in self._class(name).fits_now_rows]

    def _class(self, name: str) -> TaskClass:
        task = self.pods[name]
        matched = self.cluster.anti_affinity.matching(task.namespace, task.labels)
        return TaskClass(self.cluster, replace(task.spec, matched_terms=matched), task.workload)

    def _create(self, items: list[dict[str, Any]]) -> None:
        self._kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items})

    def _pods_settled(self) -> dict[str, Task]:
        assert wait_for(self._settled, WAIT_SECONDS), self._unsettled()
        return {task.name: task for task in self.tasks()}

    def _settled(self) -> bool:
        return not self._unsettled()

    def _unsettled(self) -> list[str]:
        """Pods that kube-scheduler has neither bound nor refused."""
        return [task.name for task in self.tasks() if not task.node and not task.reported]

    def _list(self, what: str) -> list[Any]:
        return decode_list(self._kubectl("get", "--raw", f"/api/v1/{what}")).items or []

    def _kubectl(self, *arguments: str, given: Any = None) -> bytes:
        program = [str(self._plane.binaries / "kubectl"), "--kubeconfig", str(self._plane.kubeconfig)]
        text = None if given is None else json.dumps(given).encode()
        done = subprocess.run([*program, *arguments], input=text, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compared]:
    options = PlaneOptions(taint_nodes_by_condition=False)  # there are no kubelets to remove the taints
    with ControlPlane.started(tmp_path_factory.mktemp("plane") / "cluster", options) as plane:
        yield Compared(plane)


@pytest.mark.parametrize("name", [name_of(each) for each in REFUSED])
def test_the_message_is_kube_schedulers_own(compared: Compared, name: str) -> None:
    assert compared.ours(name) == compared.theirs(name)


@pytest.mark.parametrize(("node", "name"), [(node, name_of(each)) for node, each in ACCEPTED.items()])
def test_the_only_node_is_kube_schedulers_own(compared: Compared, node: str, name: str) -> None:
    assert compared.pods[name].node == node
    assert compared.our_nodes(name) == [node]
