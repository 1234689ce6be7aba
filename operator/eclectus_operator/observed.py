"""Pods, events and nodes as typed values, with only the fields that the operator reads."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from eclectus.api.common import time_seconds
from eclectus.api.names import API_VERSION, NO_PROBES_LABEL, RUN_ID_LABEL
from eclectus.api.node_probe import Toleration
from eclectus.kube import objects as kube

ALL_PODS_PATH = "/api/v1/pods"
DISRUPTION = "DisruptionTarget"  # the condition of a pod whose end is no failure of its own
PULL_REASONS = (  # of a container that waits because its image could not be had
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
)


class Metadata(kube.Metadata, frozen=True):
    """Metadata of a pod or a node."""

    deletion_grace_period_seconds: int | None = None


class _Waiting(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _Started(Struct, frozen=True, rename="camel"):
    started_at: str | None = None


class Ended(Struct, frozen=True, rename="camel"):
    """The state of a container that has ended. `message` is its termination message."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class _ContainerState(Struct, frozen=True):  # at most one of the three is set
    waiting: _Waiting | None = None
    running: _Started | None = None
    terminated: Ended | None = None


class ContainerStatus(Struct, frozen=True):
    """The status of a container."""

    name: str
    image: str = ""
    state: _ContainerState = _ContainerState()


class _Container(Struct, frozen=True):
    name: str
    image: str = ""


class PodCondition(kube.Condition, frozen=True):
    """A condition of a pod or a node."""

    last_transition_time: str | None = None


class _Volume(Struct, frozen=True, rename="camel"):
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class _PodSpec(Struct, frozen=True, rename="camel"):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()
    scheduling_gates: tuple[dict[str, str], ...] | None = None
    volumes: tuple[_Volume, ...] | None = None
    resource_claims: tuple[dict[str, Any], ...] | None = None


class _PodStatus(Struct, frozen=True, rename="camel"):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(Struct, frozen=True):
    """A pod."""

    metadata: Metadata
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def is_real(self) -> bool:
        """Whether it is neither a probe, of whatever operator, nor terminating."""
        return RUN_ID_LABEL not in self.metadata.labels and not self.metadata.deletion_timestamp

    @property
    def container_statuses(self) -> tuple[ContainerStatus, ...]:
        """The statuses of its containers and then of its init containers."""
        return (*(self.status.container_statuses or ()), *(self.status.init_container_statuses or ()))

    @property
    def has_claims(self) -> bool:
        """Whether it has claims, of volumes or devices, that are not to be used by two nodes at a time."""
        volumes = self.spec.volumes or ()
        return bool(self.spec.resource_claims) or any(
            each.persistent_volume_claim is not None or each.ephemeral is not None for each in volumes
        )

    @property
    def began(self) -> float | None:
        """When the first of its containers began to run, seconds since the epoch; None before that."""
        states = (each.state.running or each.state.terminated for each in self.container_statuses)
        starts = (time_seconds(each.started_at) for each in states if each is not None and each.started_at)
        return min(starts, default=None)

    @property
    def created(self) -> float:
        """When it was created, seconds since the epoch."""
        text = self.metadata.creation_timestamp
        return time_seconds(text) if text else 0.0

    def condition(self, kind: str) -> PodCondition | None:
        """Its condition of this type."""
        return _of_type(self.status.conditions, kind)


class PodEvent(Struct, frozen=True, rename="camel"):
    """A Kubernetes event about a pod. Which field has the time depends on the API that wrote it."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None

    @property
    def moment(self) -> str:
        """When it happened last; empty if no field says so."""
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


class _NodeStatus(Struct, frozen=True):
    conditions: tuple[PodCondition, ...] | None = None


class Node(Struct, frozen=True):
    """A node."""

    metadata: Metadata
    spec: kube.NodeSpec = kube.NodeSpec()
    status: _NodeStatus = _NodeStatus()

    def why_unfit(self, selector: Mapping[str, str], tolerations: Iterable[Toleration]) -> str:
        """Why no probe may run here; empty if one may."""
        labels = self.metadata.labels
        ready = _of_type(self.status.conditions, "Ready")
        if any(labels.get(key) != value for key, value in selector.items()):
            return "the node selector does not match"
        if NO_PROBES_LABEL in labels:
            return f"it has the label {NO_PROBES_LABEL}"
        if self.spec.unschedulable:
            return "it is cordoned"
        if ready is None or ready.status != "True":
            return "it is not ready"
        untolerated = [taint for taint in self.spec.taints if not _is_tolerated(taint, tolerations)]
        return f"it has the taint {untolerated[0].key}" if untolerated else ""


def run_seconds(ends: Iterable[Ended]) -> float | None:
    """From the first start of a container to the last end; None where no times are known."""
    known = [(each.started_at, each.finished_at) for each in ends if each.started_at and each.finished_at]
    if not known:
        return None
    starts, finishes = zip(*known, strict=True)
    return max(0.0, max(map(time_seconds, finishes)) - min(map(time_seconds, starts)))


def controlled_by(kind: str, name: str, uid: str) -> dict[str, Any]:
    """The ownerReference of a pod, by which Kubernetes deletes it together with its NodeProbe or DagJob.

    It has no blockOwnerDeletion, which would take the right to change its owner's finalizers.
    """
    return {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": uid, "controller": True}


def _of_type(conditions: Iterable[PodCondition] | None, kind: str) -> PodCondition | None:
    return next((each for each in conditions or () if each.type == kind), None)


def _is_tolerated(taint: kube.Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether pods with these tolerations may run on a node with the taint.

    `Lt` and `Gt` count as not tolerating: better no probe than one on a forbidden node.
    """
    if taint.effect == "PreferNoSchedule":
        return True
    return any(
        each.effect in ("", taint.effect)
        and (
            (each.operator == "Exists" and each.key in ("", taint.key))
            or (each.operator == "Equal" and (each.key, each.value) == (taint.key, taint.value))
        )
        for each in tolerations
    )
