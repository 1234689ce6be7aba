"""Pods, nodes and profiles as the operator sees them: only the fields it asks about, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from eclectus.api.names import NO_PROBES_LABEL, RUN_ID_LABEL
from eclectus.api.node_probe import Toleration


class PodMeta(Struct, frozen=True, rename="camel"):
    """Of a pod's metadata."""

    name: str
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class Waiting(Struct, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Started(Struct, frozen=True, rename="camel"):
    """A container that runs."""

    started_at: str | None = None


class Ended(Struct, frozen=True, rename="camel"):
    """A container that has run. `message` is what it said at its end."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Struct, frozen=True):
    """One of the three, or none."""

    waiting: Waiting | None = None
    running: Started | None = None
    terminated: Ended | None = None


class ContainerStatus(Struct, frozen=True):
    """One container."""

    name: str
    image: str = ""
    state: ContainerState = ContainerState()


class Container(Struct, frozen=True):
    """A container of the spec."""

    name: str
    image: str = ""


class PodCondition(Struct, frozen=True, rename="camel"):
    """A condition of a pod or a node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodSpec(Struct, frozen=True, rename="camel"):
    """Of a pod's spec."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    scheduling_gates: tuple[dict[str, str], ...] | None = None


class PodStatus(Struct, frozen=True, rename="camel"):
    """Of a pod's status."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(Struct, frozen=True):
    """A pod."""

    metadata: PodMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_probe(self) -> bool:
        """Whether it bears the label of a probe, whoever's."""
        return RUN_ID_LABEL in (self.metadata.labels or {})

    def condition(self, kind: str) -> PodCondition | None:
        """Its condition of a type."""
        return _of_type(self.status.conditions, kind)


class PodEvent(Struct, frozen=True, rename="camel"):
    """A Kubernetes event about a pod. Times stand in different fields, by who wrote it."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None
    first_timestamp: str | None = None

    @property
    def moment(self) -> str:
        """When it was seen last."""
        return self.last_timestamp or self.event_time or self.first_timestamp or ""


class Taint(Struct, frozen=True):
    """A node's reason to keep pods away."""

    key: str
    effect: str
    value: str = ""


class NodeMeta(Struct, frozen=True):
    """Of a node's metadata."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] | None = None


class NodeHead(Struct, frozen=True):
    """A node without spec and status."""

    metadata: NodeMeta


class NodeSpec(Struct, frozen=True):
    """Of a node's spec."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeStatus(Struct, frozen=True):
    """Of a node's status."""

    conditions: tuple[PodCondition, ...] | None = None


class Node(Struct, frozen=True):
    """A node."""

    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def unfit(self, selector: Mapping[str, str], tolerations: Iterable[Toleration]) -> str:
        """Why no probe may run here; empty when one may."""
        labels = self.metadata.labels or {}
        ready = _of_type(self.status.conditions, "Ready")
        if any(labels.get(key) != value for key, value in selector.items()):
            return "the node selector does not match"
        if NO_PROBES_LABEL in labels:
            return f"it has the label {NO_PROBES_LABEL}"
        if self.spec.unschedulable:
            return "it is cordoned"
        if ready is None or ready.status != "True":
            return "it is not ready"
        kept_away = [taint for taint in self.spec.taints or () if not _tolerated(taint, tolerations)]
        return f"it has the taint {kept_away[0].key}" if kept_away else ""


def _of_type(conditions: Iterable[PodCondition] | None, kind: str) -> PodCondition | None:
    return next((each for each in conditions or () if each.type == kind), None)


def _tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Whether a taint keeps no pod with these tolerations away.

    `Lt` and `Gt` are taken as not tolerating: then a probe less is made, and never one too many.
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
