"""The nodes and pods of a run, as the API server is given them.

Sizes are those of kube-scheduler's own benchmark (node-default, pod-default in scheduler_perf): 4
cores, 32 GiB and 110 pods to a node; 100m and 500Mi to a pod.
"""

from typing import Any

Object = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")


def node(index: int) -> Object:
    """A Ready node; its status goes in with the same POST."""
    name = f"bench-{index:05}"
    amounts = {"cpu": "4", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str, scheduler: str) -> Object:
    """A pod that asks for cpu and memory and nothing else."""
    requests = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0},
    }
