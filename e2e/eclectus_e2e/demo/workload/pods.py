"""Pod objects of arrivals. Pure."""

import json
from typing import Any

from eclectus.api.names import CLASS_LABEL, INPUTS, REMOTE_FACTOR, WORK_SECONDS
from eclectus_e2e.demo.workload.arrivals import Arrival, NodeConstraint

Json = dict[str, Any]
NAMESPACE = "default"  # exists from the start, with the ServiceAccount that every pod must have
DATA_BYTES = 2**30
PREFERENCE_WEIGHT = 50  # of 100


def pod_name(arrival: Arrival) -> str:
    """The name of the arrival's pod; unique in a stream."""
    return f"pod-{arrival.number:05d}"


def pod_object(arrival: Arrival, scheduler: str) -> Json:
    """The pod of an arrival, to be placed by `scheduler`."""
    kind = arrival.kind
    requests = {"cpu": f"{kind.cpu_millicores}m", "memory": "64Mi"}
    limits = {"nvidia.com/gpu": str(kind.gpus)} if kind.gpus else {}
    container = {
        "name": "work",
        "image": kind.name,
        "resources": {"requests": requests | limits, "limits": limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(arrival),
            "namespace": NAMESPACE,
            "labels": {CLASS_LABEL: kind.name},
            "annotations": {WORK_SECONDS: f"{arrival.work_seconds:.6f}", **_inputs(arrival)},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **_placement(arrival.constraint),
        },
    }


def _inputs(arrival: Arrival) -> dict[str, str]:
    """The annotations of a pod that reads data."""
    if not arrival.data:
        return {}
    read = {"name": f"data-{arrival.number}", "bytes": DATA_BYTES, "nodes": arrival.data}
    return {INPUTS: json.dumps([read]), REMOTE_FACTOR: f"{arrival.remote:g}"}


def _placement(constraint: NodeConstraint | None) -> Json:
    """The fields of the pod's spec that state a constraint: nodeSelector or node affinity."""
    if constraint is None:
        return {}
    if constraint.is_hard and len(constraint.allowed) == 1:
        return {"nodeSelector": {constraint.key: constraint.allowed[0]}}
    requirement = {"key": constraint.key, "operator": "In", "values": list(constraint.allowed)}
    term = {"matchExpressions": [requirement]}
    if constraint.is_hard:
        return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}}
    return {"affinity": {"nodeAffinity": {_PREFERRED: [{"weight": PREFERENCE_WEIGHT, "preference": term}]}}}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
