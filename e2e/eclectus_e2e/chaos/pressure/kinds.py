"""Kinds of objects that a tenant or a node makes, and how each may look, in small integers.

Objects are as the API server takes and sends them, and are read by the scheduler's own translation, so
that its limits count. Those of one kind are equal but for their names, except where `distinct` is 1.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import json

from eclectus.api.names import API_VERSION, DAG_JOB, STAGE_LABEL
from eclectus.kube import cluster_objects, dag_jobs, objects, translate
from eclectus.model import events
from eclectus.model.events import Event

TENANT, OTHER = "tenant", "other"
HOSTNAME = "kubernetes.io/hostname"
LABELS = 40  # of a pod that has many
NODE_MILLICORES = 32_000
PODS_MOST = 250  # on a node, as the largest of managed clusters: a bind looks at those of its node
_CREATED = "2026-01-01T00:00:00Z"
_NONE_TO_MANY = (0, 1, 8, 32)

Shape = Mapping[str, int]
Object = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """What the objects of a kind may vary in, and how so many of them are made."""

    shape: Mapping[str, tuple[int, ...]]
    make: Callable[[Shape, int], Iterator[Event]]
    order: str = "fifo"  # that the profile needs to read them


def plain_pod(name: str, namespace: str, millicores: int = 100, priority: int = 0) -> events.TaskSeen:
    """A pod that asks for nothing but room."""
    return _seen(_pod(name, {}, millicores, namespace=namespace, priority=priority))


def plain_node(at: int) -> Event:
    """A node of 32 cores in one of three zones; node 0 has one core, for pods of others."""
    return _node_seen(_node(f"n{at}", at, 1_000 if at == 0 else NODE_MILLICORES))


# -- pods ------------------------------------------------------------------------------------------------


def _meta(name: str, namespace: str = TENANT, labels: Mapping[str, str] | None = None) -> Object:
    uid = f"uid-{namespace}-{name}"
    found = {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": _CREATED}
    return {**found, "labels": dict(labels or {}), "resourceVersion": "1"}


def _pod(
    name: str, labels: Mapping[str, str], millicores: int, *, namespace: str = TENANT, **spec: Any
) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{millicores}m"}}}
    full = {"schedulerName": "eclectus", "containers": [container], **spec}
    phase = "Running" if "nodeName" in spec else "Pending"
    return {"metadata": _meta(name, namespace, labels), "spec": full, "status": {"phase": phase}}


def _seen(pod: Object) -> events.TaskSeen:
    return events.TaskSeen(translate.task_from(objects.decode_pod(json.encode(pod))))


def _labels(shape: Shape, at: int) -> dict[str, str]:
    labels = {f"l{each:02}": "v" for each in range(shape["labels"])}
    return {**labels, "own": f"v{at}"} if shape["distinct"] else labels


def _expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def _pod_terms(shape: Shape, count: int, at: int, operator: str) -> list[Object]:
    own = at if shape["distinct"] else 0
    everywhere: Object = {"namespaceSelector": {}} if shape["everywhere"] else {}
    return [
        {
            "topologyKey": HOSTNAME,
            "labelSelector": {"matchExpressions": [_expression("l00", operator, f"x{own}-{each}")]},
            **everywhere,
        }
        for each in range(count)
    ]


def _affinity(shape: Shape, at: int) -> Object:
    own = at if shape["distinct"] else 0
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    found: Object = {}
    nodes: Object = {}
    if shape["terms"]:
        terms = [
            {"matchExpressions": [_expression(HOSTNAME, "NotIn", f"x{own}-{each}")]}
            for each in range(shape["terms"])
        ]
        nodes[required] = {"nodeSelectorTerms": terms}
    if shape["preferences"]:
        nodes[preferred] = [
            {
                "weight": 1 + each,
                "preference": {"matchExpressions": [_expression("zone", "NotIn", f"z{own}-{each}")]},
            }
            for each in range(shape["preferences"])
        ]
    if nodes:
        found["nodeAffinity"] = nodes
    if shape["away"]:
        found["podAntiAffinity"] = {required: _pod_terms(shape, shape["away"], at, "NotIn")}
    if shape["near"]:
        found["podAffinity"] = {required: _pod_terms(shape, shape["near"], at, "NotIn")}
    return found


def _waiting(shape: Shape, count: int) -> Iterator[Event]:
    for at in range(count):
        own = at if shape["distinct"] else 0
        tolerations = [
            {"key": "t", "operator": "Equal", "value": f"x{own}-{each}"}
            for each in range(shape["tolerations"])
        ]
        spread = [
            {
                "maxSkew": 1 + each,
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"own": f"v{own}"}},
            }
            for each in range(shape["spread"])
        ]
        claims = [
            {
                "name": f"v{each}",
                "persistentVolumeClaim": {"claimName": f"claim-{at * shape['claims'] + each}"},
            }
            for each in range(shape["claims"])
        ]
        millicores = (1 if shape["fits"] else 2 * NODE_MILLICORES) + own
        yield _seen(
            _pod(
                f"waiting-{at}",
                _labels(shape, at),
                millicores,
                priority=10 * shape["priority"],
                affinity=_affinity(shape, at),
                tolerations=tolerations,
                topologySpreadConstraints=spread,
                volumes=claims,
                schedulingGates=[{"name": "g"}] * shape["gated"],
            )
        )


def _placed(shape: Shape, count: int) -> Iterator[Event]:
    """Pods that fill the nodes n1 to n31, so that others may make room there."""
    nodes = 31
    millicores = max(1, NODE_MILLICORES * nodes // max(count, nodes))
    for at in range(count):
        away = _pod_terms(shape, shape["away"], at, "NotIn")
        term = "requiredDuringSchedulingIgnoredDuringExecution"
        affinity = {"podAntiAffinity": {term: away}} if away else {}
        labels, node = _labels(shape, at), f"n{1 + at % nodes}"
        yield _seen(_pod(f"placed-{at}", labels, millicores, nodeName=node, affinity=affinity))


# -- what selects pods -------------------------------------------------------------------------------------


def _selector(keys: int, at: int) -> dict[str, str]:
    """Other labels for each object, of those that pods may have."""
    drawn = random.Random(at).sample(range(LABELS), keys)
    return {f"l{each:02}": "v" for each in sorted(drawn)}


def _services(shape: Shape, count: int) -> Iterator[Event]:
    for at in range(count):
        chosen, meta = _selector(shape["keys"], at), _meta(f"service-{at}")
        if shape["replicaset"]:
            raw = json.encode({"metadata": meta, "spec": {"selector": {"matchLabels": chosen}}})
            yield events.PodSelectorSeen(cluster_objects.selected_by_selector("ReplicaSet", raw))
        else:
            raw = json.encode({"metadata": meta, "spec": {"selector": chosen}})
            yield events.PodSelectorSeen(cluster_objects.selected_by_labels("Service", raw))


def _budgets(shape: Shape, count: int) -> Iterator[Event]:
    for at in range(count):
        selector = {"matchLabels": _selector(shape["keys"], at)}
        status = {"disruptionsAllowed": shape["allowed"]}
        raw = {"metadata": _meta(f"budget-{at}"), "spec": {"selector": selector}, "status": status}
        yield events.BudgetSeen(cluster_objects.budget_from(json.encode(raw)))


# -- groups, jobs and the rest -----------------------------------------------------------------------------


def _gangs(shape: Shape, count: int) -> Iterator[Event]:
    free = {**dict.fromkeys(("terms", "away", "near", "everywhere"), 0), **shape}
    for at in range(count):
        policy = {"schedulingPolicy": {"gang": {"minCount": shape["members"]}}}
        raw = json.encode({"metadata": _meta(f"gang-{at}"), "spec": policy})
        yield events.GangSeen(cluster_objects.gang_from(raw))
        for member in range(shape["members"]):
            number = at * shape["members"] + member
            own = number if shape["distinct"] else 0
            yield _seen(
                _pod(
                    f"member-{number}",
                    {},
                    (1 if shape["fits"] else 2 * NODE_MILLICORES) + own,
                    affinity=_affinity(free, number),
                    schedulingGroup={"podGroupName": f"gang-{at}"},
                )
            )


def _jobs(shape: Shape, count: int) -> Iterator[Event]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    for at in range(count):
        stages = [
            {
                "name": f"s{stage}",
                "tasks": shape["tasks"],
                "template": {"spec": {"containers": [container]}},
                "dependsOn": sorted({f"s{(7 * stage + each) % stage}" for each in range(shape["parents"])})
                if stage
                else [],
                "estimate": {"seconds": 1.0 + stage % 13},
            }
            for stage in range(shape["stages"])
        ]
        meta = _meta(f"job-{at}")
        job = dag_jobs.decode_dag_job(json.encode({"metadata": meta, "spec": {"stages": stages}}))
        yield events.JobSeen(dag_jobs.job_from(job, dag_jobs.shape_from(job)))
        if shape["started"]:
            pod = _pod(f"job-{at}-s0-0", {STAGE_LABEL: "s0"}, 1_000)
            owner = {"apiVersion": API_VERSION, "kind": DAG_JOB, "name": meta["name"], "uid": meta["uid"]}
            pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
            yield _seen(pod)


def _namespaces(shape: Shape, count: int) -> Iterator[Event]:
    labels = tuple((f"l{each:02}", "v") for each in range(shape["labels"]))
    for at in range(count):
        yield events.NamespaceSeen(f"namespace-{at}", labels)
        if shape["with_pod"]:
            yield plain_pod("p", f"namespace-{at}", 2 * NODE_MILLICORES)


def _claims(shape: Shape, count: int) -> Iterator[Event]:
    waits = {"metadata": {"name": "local"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}
    yield events.StorageClassSeen(cluster_objects.storage_class_from(json.encode(waits)))
    for at in range(count):
        size = {"storage": "1Gi"}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": size},
            "storageClassName": "local",
        }
        claim = {"metadata": _meta(f"claim-{at}"), "spec": spec}
        yield events.VolumeClaimSeen(cluster_objects.claim_from(json.encode(claim)))
        terms = [
            {"matchExpressions": [_expression(HOSTNAME, "In", f"n{at}-{each}")]}
            for each in range(shape["terms"])
        ]
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if terms else {}
        of_volume = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": size,
            "storageClassName": "local",
            **affinity,
        }
        volume = {"metadata": {"name": f"volume-{at}"}, "spec": of_volume, "status": {"phase": "Available"}}
        yield events.VolumeSeen(cluster_objects.volume_from(json.encode(volume)))


def _node(name: str, at: int, millicores: int) -> Object:
    labels = {HOSTNAME: name, "zone": f"z{at % 3}"}
    offered = {"cpu": f"{millicores}m", "memory": "64Gi", "pods": str(PODS_MOST)}
    meta = {"name": name, "labels": labels, "resourceVersion": "1"}
    return {"metadata": meta, "spec": {}, "status": {"allocatable": offered}}


def _node_seen(node: Object) -> Event:
    return events.NodeSeen(translate.node_from(objects.decode_node(json.encode(node))))


def _nodes(shape: Shape, count: int) -> Iterator[Event]:
    for at in range(count):
        node, own = _node(f"more-{at}", at, 1_000), at if shape["distinct"] else 0
        node["metadata"]["labels"] |= {f"l{each}": f"v{own}" for each in range(shape["labels"])}
        node["spec"]["taints"] = [
            {"key": f"t{each}", "value": f"x{own}", "effect": "PreferNoSchedule"}
            for each in range(shape["taints"])
        ]
        more = {f"vendor.io/r{own}-{each}": "1" for each in range(shape["resources"])}
        node["status"]["allocatable"] |= more
        yield _node_seen(node)


_ONE, _FEW = (0, 1), (0, 1, 8)
KINDS: Mapping[str, Kind] = {
    "nodes": Kind(
        {"labels": _NONE_TO_MANY, "taints": _NONE_TO_MANY, "resources": (0, 8, 64, 1_000), "distinct": _ONE},
        _nodes,
    ),
    "waiting": Kind(
        {
            "labels": (0, 1, LABELS),
            "distinct": _ONE,
            "fits": _ONE,
            "terms": _NONE_TO_MANY,
            "preferences": _NONE_TO_MANY,
            "tolerations": _NONE_TO_MANY,
            "spread": _FEW,
            "away": _FEW,
            "near": _FEW,
            "everywhere": _ONE,
            "priority": _ONE,
            "claims": _FEW,
            "gated": _ONE,
        },
        _waiting,
    ),
    "placed": Kind({"labels": (0, 1, LABELS), "distinct": _ONE, "away": _FEW, "everywhere": _ONE}, _placed),
    "services": Kind({"keys": (1, 8, 20), "replicaset": _ONE}, _services),
    "budgets": Kind({"keys": (0, 1, 8, 20), "allowed": _ONE}, _budgets),
    "gangs": Kind(
        {"members": (1, 4, 16, 64), "distinct": _ONE, "fits": _ONE, "preferences": _NONE_TO_MANY}, _gangs
    ),
    "jobs": Kind(
        {"stages": (1, 10, 100, 200), "parents": (0, 1, 10), "tasks": (1, 50), "started": _ONE},
        _jobs,
        "carbyne",
    ),
    "namespaces": Kind({"labels": _NONE_TO_MANY, "with_pod": _ONE}, _namespaces),
    "claims": Kind({"terms": _FEW}, _claims),
}
