"""What is created on real nodes: the chart's values, the NodeProbe, and pods that do real work."""

from typing import Any

from eclectus.api.names import API_VERSION, CLASS_LABEL
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.testbed.images.archives import references

Json = dict[str, Any]
CLASS = "unit"
POOL = "pool"
WORKERS = "batch"
_ON_SYSTEM = {"image": {"pullPolicy": "Never"}, "nodeSelector": {POOL: "system"}}
# What was learned is written to NodeProfiles every second, because the experiment is short. Probes run in a
# namespace of their own, so the class that they teach is shared.
VALUES: Json = {
    "scheduler": {**_ON_SYSTEM, "replicas": 1},
    "operator": {"enabled": True, **_ON_SYSTEM},
    "config": {"nodeProfiles": {"interval": "1s"}, "tenancy": {"sharedWorkloads": [CLASS]}},
}
# To learn: a probe wherever there is room for one. During streams: one in 45 s, or fewer where that is more
# than the operator's share of the spare capacity.
LEARNING_LIMITS = {"perHour": 3600, "leastPerHour": 3600, "running": 4, "nodeIntervalSeconds": 0}
STREAM_LIMITS = {"perHour": 80, "leastPerHour": 6, "running": 1, "nodeIntervalSeconds": 0}


def node_probe(name: str, klass: str, units: int, node: str = "") -> Json:
    """Probes with the work of the pods, so that they are samples of its class; of one node, or of all."""
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeProbe",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": _selector(node),
            "classes": [{"name": klass, "unit": {"kind": "cpu", "units": units}}],
            "limits": LEARNING_LIMITS,
        },
    }


def _selector(node: str) -> Json:
    return {POOL: WORKERS, **({"kubernetes.io/hostname": node} if node else {})}


def work_pod(name: str, scheduler: str, cpu: str, units: int, *, klass: str = CLASS, node: str = "") -> Json:
    """The built-in benchmark as an ordinary pod that asks for all `cpu` of a node.

    So one pod runs on a node at a time, and its time depends on the node's quota alone.
    """
    container = {
        "name": "unit",
        "image": references()["unit"],
        "imagePullPolicy": "Never",
        "args": ["cpu", "--units", str(units)],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {CLASS_LABEL: klass}},
        "spec": {
            "schedulerName": scheduler,
            "nodeSelector": _selector(node),
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [container],
        },
    }
