"""Pods, nodes and Leases as the fake kubelet reads and writes them. No I/O."""

import random
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from eclectus.api.names import (
    ATTEMPT_LABEL,
    CLASS_LABEL,
    COPY_OF_LABEL,
    DAG_JOB_LABEL,
    INPUTS,
    KERNEL_LABEL,
    REMOTE_FACTOR,
    STAGE_LABEL,
    STRAGGLERS,
    TASK_INDEX_LABEL,
    WORK_SECONDS,
)
from eclectus.kube.data import inputs
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

Json = dict[str, Any]
UNIT_WORK_SECONDS = 0.1  # of the operator's built-in benchmark: a unit takes about 0.1 s of one core
LEASE_SECONDS = 40
VERSION = "v1.37.2"


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """The part of an object's metadata that is used here."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a pod's status that is used here."""

    phase: str = "Pending"
    start_time: str | None = None


class Pod(msgspec.Struct, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: Json = {}
    status: PodStatus = PodStatus()

    @property
    def node(self) -> str:
        """The node that the pod is bound to; empty when it is not bound."""
        return str(self.spec.get("nodeName", ""))

    @property
    def awaits_confirmation(self) -> bool:
        """Whether the API server keeps the object until the kubelet confirms that the pod has ended.

        With grace period 0 that is confirmed, and only finalizers keep it.
        """
        meta = self.metadata
        return meta.deletion_timestamp is not None and meta.deletion_grace_period_seconds != 0

    @property
    def klass(self) -> str:
        """The class of the pod, by label or annotation; empty without either."""
        meta = self.metadata
        return meta.labels.get(CLASS_LABEL) or meta.annotations.get(CLASS_LABEL, "")

    def work_seconds(self) -> float | None:
        """Seconds of work at speed 1 on its node; None: the pod never ends by itself.

        Raises ValueError for an annotation that cannot be read.
        """
        text = self.metadata.annotations.get(WORK_SECONDS)
        if text is None:
            return _benchmark_seconds(self.spec)
        return self._remote_factor * self._straggler_factor * _number(WORK_SECONDS, text)

    @property
    def _remote_factor(self) -> float:
        """How much longer it takes on its node than beside its inputs."""
        found = self.metadata.annotations
        text, read = found.get(REMOTE_FACTOR), inputs(found.get(INPUTS, "[]"), self.metadata.namespace)
        if text is None or any(self.node in each.nodes for each in read):
            return 1.0
        return _number(REMOTE_FACTOR, text)

    @property
    def _straggler_factor(self) -> float:
        """How much longer this attempt takes than most of its task.

        Drawn for each attempt and for its copy by themselves; the same wherever the same job runs again.
        """
        text = self.metadata.annotations.get(STRAGGLERS)
        if text is None:
            return 1.0
        if len(parts := text.split()) != 3:
            raise ValueError(f"{STRAGGLERS}: {text!r} is not a share, a factor and a seed")
        share, factor = (_number(STRAGGLERS, part) for part in parts[:2])
        labels = self.metadata.labels
        task = [labels.get(name) for name in (DAG_JOB_LABEL, STAGE_LABEL, TASK_INDEX_LABEL, ATTEMPT_LABEL)]
        drawn = random.Random(f"{parts[2]} {task} {COPY_OF_LABEL in labels}").random()
        return factor if drawn < share else 1.0


def _number(annotation: str, text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{annotation}: {text!r} is not a number from 0 on")
    return value


def _benchmark_seconds(spec: Json) -> float | None:
    """Seconds of the operator's built-in benchmark at speed 1; None for any other pod."""
    arguments = spec.get("containers", [{}])[0].get("args", [])
    if "--units" not in arguments:
        return None
    return UNIT_WORK_SECONDS * int(arguments[arguments.index("--units") + 1])


class NodeStatus(msgspec.Struct, frozen=True):
    """A node's status: the part that others may change."""

    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: list[Json] = []


class NodeFields(msgspec.Struct, frozen=True):
    """The part of a node's spec that is used here."""

    taints: list[Json] = []


class Node(msgspec.Struct, frozen=True):
    """A node."""

    metadata: Metadata
    spec: NodeFields = NodeFields()
    status: NodeStatus = NodeStatus()

    @property
    def unlisted(self) -> dict[str, str]:
        """Extended resources that were added to `capacity` and not to `allocatable`."""
        listed = self.status.allocatable.keys()
        capacity = self.status.capacity.items()
        return {name: value for name, value in capacity if "/" in name and name not in listed}

    @property
    def ready(self) -> bool:
        """Whether the condition Ready is True."""
        return any(one["type"] == "Ready" and one["status"] == "True" for one in self.status.conditions)


def timestamp(unix_seconds: float) -> str:
    """A `metav1.Time`: whole seconds, UTC."""
    return _second(int(unix_seconds))


@lru_cache(maxsize=64)  # one status holds the same second six times, and strftime is slow
def _second(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(unix_seconds: float) -> str:
    """A `metav1.MicroTime`, as in Leases."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def unix_seconds(text: str) -> float:
    """The inverse of `timestamp`."""
    return datetime.fromisoformat(text).timestamp()


def node_object(spec: NodeSpec, address: str, now: float) -> Json:
    """A Node object with its status, for one POST."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": spec.labels},
        "spec": {"taints": spec.taints} if spec.taints else {},
        "status": {
            "capacity": spec.allocatable,
            "allocatable": spec.allocatable,
            "addresses": [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": spec.name},
            ],
            "conditions": node_conditions(now),
            "nodeInfo": {
                "architecture": spec.labels.get("kubernetes.io/arch", "amd64"),
                "operatingSystem": "linux",
                "kernelVersion": spec.labels.get(KERNEL_LABEL, ""),
                "osImage": "fake",
                "containerRuntimeVersion": "fake://1",
                "kubeletVersion": VERSION,
                "kubeProxyVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        },
    }


def node_conditions(now: float) -> list[Json]:
    """Ready, and no pressure condition. A strategic merge patch merges them by type."""
    stamp = timestamp(now)
    ready = ("Ready", "True", "KubeletReady", "the fake kubelet is posting ready status")
    pressures = [
        (f"{kind}Pressure", "False", f"KubeletHasNo{kind}Pressure", "") for kind in ("Memory", "Disk", "PID")
    ]
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
        }
        for kind, status, reason, message in [ready, *pressures]
    ]


def lease_object(node: str, node_uid: str, now: float) -> Json:
    """A node's heartbeat Lease, owned by the Node object and garbage collected with it."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": lease_spec(node, now),
    }


def lease_spec(node: str, now: float) -> Json:
    """The spec of a heartbeat Lease renewed at `now`."""
    return {
        "holderIdentity": node,
        "leaseDurationSeconds": LEASE_SECONDS,
        "renewTime": micro_timestamp(now),
    }
