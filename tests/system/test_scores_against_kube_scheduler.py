"""The node that `place: kube` takes compared with that of a real kube-scheduler, where one node is the best.

Each case has nodes of its own, which its pods select by a label, so all share one cluster. Our policy is
asked in process, with the objects as the API server gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from builders import make_engine
from eclectus.kube.cluster_objects import (
    claim_from,
    free_storage_from,
    selected_by_labels,
    storage_class_from,
    storage_driver_from,
    volume_from,
)
from eclectus.kube.objects import decode_node, decode_pod
from eclectus.kube.translate import images_of_node, images_of_pod, node_from, task_from
from eclectus.model.commands import Bind
from eclectus.model.events import (
    Event,
    FreeStorageSeen,
    NodeSeen,
    PodSelectorSeen,
    Resumed,
    StorageClassSeen,
    StorageDriverSeen,
    TaskSeen,
    VolumeClaimSeen,
    VolumeSeen,
)
from eclectus.model.objects import Node, Task
from eclectus.model.volumes import Volume
from eclectus.policies.place.kube import KubeScores
from eclectus_e2e.testbed.controlplane.plane import ControlPlane, PlaneOptions
from live_cluster import Admin, wait

pytestmark = pytest.mark.live

MIB = 2**20
SEEDS = range(4)  # of the draw among equal nodes: the best is one alone


def case_of(name: str) -> str:
    """Names are those of a case, or begin with it and a dash."""
    return name.partition("-")[0]


def node(name: str, cpu: str = "4", memory: str = "8Gi", **fields: Any) -> dict[str, Any]:
    labels = {"case": case_of(name), "kubernetes.io/hostname": name, **fields.pop("labels", {})}
    room = {"cpu": cpu, "memory": memory, "pods": "20"}
    status = {"allocatable": room, "capacity": room, "images": fields.pop("images", [])}
    return {"metadata": {"name": name, "labels": labels}, "spec": fields, "status": status}


def zones(case: str, *names: str) -> list[dict[str, Any]]:
    """Nodes `case-1`, …, each in the zone of this name."""
    return [node(f"{case}-{at}", labels={"zone": f"{case}-{name}"}) for at, name in enumerate(names, start=1)]


def pod(name: str, app: str = "", cpu: str = "", memory: str = "", **spec: Any) -> dict[str, Any]:
    requests = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value}
    container = {"name": "main", "image": spec.pop("image", "pause"), "resources": {"requests": requests}}
    spec.setdefault("nodeSelector", {"case": case_of(name)})
    labels = {"app": app} if app else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container], **spec}}


def there(node_name: str, number: int, app: str = "", **fields: Any) -> list[dict[str, Any]]:
    """So many pods on a node."""
    name = f"{node_name}-{app or 'any'}"
    return [pod(f"{name}{at}", app, nodeName=node_name, **fields) for at in range(number)]


PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(app: str, key: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def prefers(kind: str, *terms: tuple[int, str, str]) -> dict[str, Any]:
    weighted = [{"weight": weight, "podAffinityTerm": term(app, key)} for weight, app, key in terms]
    return {"affinity": {kind: {PREFERRED: weighted}}}


def spread(app: str, *keys: str, **fields: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **fields}
    by_label = {"labelSelector": {"matchLabels": {"app": app}}}
    return {"topologySpreadConstraints": [{**constraint, **by_label, "topologyKey": key} for key in keys]}


HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = "web"
BY_DEFAULT = ("service", "partly")  # cases whose pods a Service of this name selects, by their label `app`
SOFT = {"key": "soft", "value": "x", "effect": "PreferNoSchedule"}
LABEL = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
NODE_AFFINITY = {"nodeAffinity": {PREFERRED: [{"weight": 10, "preference": LABEL}]}}
REQUIRED_NEAR = {
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term("itself", "zone")]}}
}
CASES: dict[str, tuple[list[Any], list[Any], dict[str, Any]]] = {  # nodes, pods on them, the pod that asks
    "room": (
        [node("room-1"), node("room-2"), node("room-3")],
        [*there("room-1", 3, cpu="1"), *there("room-2", 1, cpu="1"), *there("room-3", 2, cpu="1")],
        pod("room", cpu="500m", memory="100Mi"),
    ),
    "balance": (
        [node("balance-1"), node("balance-2")],
        [*there("balance-1", 1, cpu="2", memory="1Gi"), *there("balance-2", 1, cpu="1", memory="3Gi")],
        pod("balance", cpu="1"),
    ),
    "taint": (
        [node("taint-1"), node("taint-2", cpu="64", memory="128Gi", taints=[SOFT])],
        [],
        pod("taint", cpu="1"),
    ),
    "affinity": (
        [node("affinity-1", labels={"disk": "ssd"}), node("affinity-2", cpu="64"), node("affinity-3")],
        there("affinity-1", 2, cpu="1"),
        pod("affinity", cpu="1", affinity=NODE_AFFINITY),
    ),
    "near": (
        zones("near", "a", "b", "b", "c"),
        [*there("near-2", 2, WEB), *there("near-3", 1, cpu="1"), *there("near-1", 1, WEB)],
        pod("near", cpu="1", **prefers("podAffinity", (50, WEB, "zone"))),
    ),
    "apart": (
        zones("apart", "a", "b", "c"),
        [*there("apart-1", 2, WEB), *there("apart-2", 1, WEB), *there("apart-3", 1, cpu="3")],
        pod("apart", cpu="500m", **prefers("podAntiAffinity", (100, WEB, HOST))),
    ),
    "attracted": (
        zones("attracted", "a", "b", "c"),
        [
            *there("attracted-1", 3, **REQUIRED_NEAR),
            *there("attracted-2", 1, **prefers("podAffinity", (5, "itself", "zone"))),
            *there("attracted-3", 1, **prefers("podAntiAffinity", (5, "itself", "zone"))),
        ],
        pod("attracted", "itself", cpu="500m"),
    ),
    "spread": (
        zones("spread", "a", "a", "b", "b"),
        [*there("spread-1", 2, WEB), *there("spread-3", 1, WEB), *there("spread-4", 1, cpu="1")],
        pod("spread", WEB, cpu="500m", **spread(WEB, "zone")),
    ),
    "hosts": (
        [*zones("hosts", "a", "a", "b"), node("hosts-4")],
        [*there("hosts-1", 1, WEB), *there("hosts-3", 2, WEB), *there("hosts-2", 1, cpu="2")],
        pod("hosts", WEB, cpu="500m", **spread(WEB, "zone", HOST)),
    ),
    "service": (
        [node(f"service-{at}", labels={ZONE: f"service-{zone}"}) for at, zone in enumerate("aab", start=1)],
        [*there("service-1", 1, "service"), *there("service-3", 1, cpu="500m")],
        pod("service", "service", cpu="500m"),
    ),
    "partly": (
        [node("partly-1", labels={ZONE: "partly-a"}), node("partly-2")],
        there("partly-2", 1, "partly", cpu="500m"),
        pod("partly", "partly", cpu="500m"),
    ),
    "image": (
        [
            node("image-1", images=[{"names": ["large:1", "large@sha256:a"], "sizeBytes": 9000 * MIB}]),
            node("image-2", images=[{"names": ["large:1"], "sizeBytes": 4000 * MIB}]),
            node("image-3"),
        ],
        there("image-2", 1, cpu="100m"),
        pod("image", cpu="100m", image="large:1"),
    ),
    "volume": (
        [node("volume-1"), node("volume-2")],
        there("volume-2", 1, cpu="1"),
        pod(
            "volume", cpu="100m", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "volume"}}]
        ),
    ),
    "storage": (
        [node("storage-1"), node("storage-2")],
        there("storage-2", 1, cpu="1"),
        pod(
            "storage",
            cpu="100m",
            volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "storage"}}],
        ),
    ),
}

# -- storage: for one claim there are volumes, and for the other what its driver says is free ------------

STORAGE, DRIVER = "/apis/storage.k8s.io/v1", "scores.example.com"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def on_node(name: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [name]}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def create_storage(admin: Admin) -> None:
    """Of both the fuller node has more: 100Gi instead of 2Gi for 1Gi."""
    for name, provisioner in (("volume", "kubernetes.io/no-provisioner"), ("storage", DRIVER)):
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        admin.send("POST", f"{STORAGE}/storageclasses", {"metadata": {"name": name}, **mode})
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        body = {"metadata": {"name": name}, "spec": {"storageClassName": name, **asked}}
        admin.send("POST", f"/api/v1/namespaces/{admin.namespace}/persistentvolumeclaims", body)
    spec = {"attachRequired": False, "podInfoOnMount": False, "storageCapacity": True}
    admin.send("POST", f"{STORAGE}/csidrivers", {"metadata": {"name": DRIVER}, "spec": spec})
    for at, amount in ((1, "2Gi"), (2, "100Gi")):
        labels = {"nodeTopology": {"matchLabels": {HOST: f"storage-{at}"}}, "storageClassName": "storage"}
        body = {"metadata": {"name": f"free-{at}"}, "capacity": amount, **labels}
        admin.send("POST", f"{STORAGE}/namespaces/{admin.namespace}/csistoragecapacities", body)
        spec = {
            "storageClassName": "volume",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": amount},
            "local": {"path": "/data"},
            "nodeAffinity": on_node(f"volume-{at}"),
        }
        admin.send("POST", "/api/v1/persistentvolumes", {"metadata": {"name": f"v-{at}"}, "spec": spec})
    wait("volumes are free", lambda: all(each.is_available for each in volumes_of(admin)))


def volumes_of(admin: Admin) -> list[Volume]:
    return [volume_from(each) for each in listed(admin, "/api/v1/persistentvolumes")]


def storage_of(admin: Admin) -> list[Event]:
    """What there is of storage now."""
    namespaced = f"namespaces/{admin.namespace}"
    claims = listed(admin, f"/api/v1/{namespaced}/persistentvolumeclaims")
    capacities = map(free_storage_from, listed(admin, f"{STORAGE}/{namespaced}/csistoragecapacities"))
    return [
        *(StorageClassSeen(storage_class_from(each)) for each in listed(admin, f"{STORAGE}/storageclasses")),
        *(StorageDriverSeen(*storage_driver_from(each)) for each in listed(admin, f"{STORAGE}/csidrivers")),
        *map(VolumeSeen, volumes_of(admin)),
        *(VolumeClaimSeen(claim_from(each)) for each in claims),
        *(FreeStorageSeen(each) for each in capacities if each is not None),
    ]


def listed(admin: Admin, path: str) -> list[Raw]:
    return [Raw(json.encode(each)) for each in admin.send("GET", path)["items"]]


class Compared:
    """kube-scheduler's nodes, and what our policy is given: the same objects, without its binds."""

    def __init__(self, plane: ControlPlane, admin: Admin) -> None:
        for nodes, _, _ in CASES.values():
            for each in nodes:
                admin.send("POST", "/api/v1/nodes", each)
        for name in BY_DEFAULT:
            spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
            body = {"metadata": {"name": name}, "spec": spec}
            admin.send("POST", f"/api/v1/namespaces/{admin.namespace}/services", body)
        create_storage(admin)
        self.storage = storage_of(admin)
        admin.create([pod for _, placed, _ in CASES.values() for pod in placed])
        plane.start_kube_scheduler()
        admin.create([asks for _, _, asks in CASES.values()])
        wait("kube-scheduler has bound all", lambda: all(_node_of(admin, name) for name in CASES))
        self.theirs = {name: _node_of(admin, name) for name in CASES}
        self.nodes = [_node_from(each) for each in listed(admin, "/api/v1/nodes")]
        self.pods = {name: _task_from(each) for name, each in admin.pods().items()}
        services = listed(admin, f"/api/v1/namespaces/{admin.namespace}/services")
        self.services = [PodSelectorSeen(selected_by_labels("Service", each)) for each in services]

    def ours(self, name: str) -> set[str]:
        """Our nodes with several draws among equals."""
        placed = [TaskSeen(task) for other, task in self.pods.items() if other not in CASES]
        asks = replace(self.pods[name], node="", nominated="", profile="eclectus", phase="Pending")
        found = set()
        for seed in SEEDS:
            engine = make_engine(KubeScores(), seed=seed)
            before = [*map(NodeSeen, self.nodes), *self.services, *self.storage, *placed]
            commands = engine.step([*before, TaskSeen(asks), Resumed()], 0.0)
            found |= {each.node for each in commands if isinstance(each, Bind)}
        return found


def _node_of(admin: Admin, name: str) -> str:
    if name == "storage":  # nobody provisions, so the pod is never bound
        claim = admin.send("GET", f"/api/v1/namespaces/{admin.namespace}/persistentvolumeclaims/{name}")
        return str(claim["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))
    return str(admin.pods()[name]["spec"].get("nodeName", ""))


def _node_from(raw: Raw) -> Node:
    return replace(node_from(decode_node(raw)), images=images_of_node(raw))


def _task_from(each: Any) -> Task:
    decoded = decode_pod(Raw(json.encode(each)))
    task = task_from(decoded)
    return replace(task, spec=replace(task.spec, images=images_of_pod(decoded)))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compared]:
    options = PlaneOptions(taint_nodes_by_condition=False)  # there are no kubelets to remove the taints
    with (
        ControlPlane.started(tmp_path_factory.mktemp("plane") / "cluster", options) as plane,
        Admin(plane.kubeconfig, "scores") as admin,
    ):
        yield Compared(plane, admin)


@pytest.mark.parametrize("name", CASES)
def test_the_best_node_is_kube_schedulers_own(compared: Compared, name: str) -> None:
    assert compared.ours(name) == {compared.theirs[name]}
