"""Pods as the API server gets them: pure translation of arrivals."""

from typing import Any

from eclectus.api.names import CLASS_LABEL, WORK_SECONDS
from eclectus_e2e.demo.stream import Arrival, Wish

Json = dict[str, Any]
NAMESPACE = "default"  # it is there from the start, with the account that every pod must have
SOFT_WEIGHT = 50  # of 100


def pod_name(arrival: Arrival) -> str:
    """The pod's name, by which its arrival is found again."""
    return f"pod-{arrival.number:05d}"


def pod_object(arrival: Arrival, scheduler: str) -> Json:
    """The pod of an arrival, for one scheduler."""
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
            "annotations": {WORK_SECONDS: f"{arrival.work_seconds:.6f}"},
        },
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            **_placement(arrival.wish),
        },
    }


def _placement(wish: Wish | None) -> Json:
    if wish is None:
        return {}
    if wish.hard and len(wish.allowed) == 1:
        return {"nodeSelector": {wish.key: wish.allowed[0]}}
    term = {"matchExpressions": [{"key": wish.key, "operator": "In", "values": list(wish.allowed)}]}
    if wish.hard:
        return {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}}
    return {"affinity": {"nodeAffinity": {_PREFERRED: [{"weight": SOFT_WEIGHT, "preference": term}]}}}


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
