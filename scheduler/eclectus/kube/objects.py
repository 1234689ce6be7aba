"""The fields of Pod and Node that a scheduler reads. Every other field is skipped while parsing."""

from __future__ import annotations

from msgspec import field

from eclectus.api.common import time_seconds
from eclectus.kube.placement import (
    Affinity,
    ApiObject,
    PodResourceClaim,
    Present,
    SchedulingGate,
    SpreadConstraint,
    Toleration,
    Volume,
)

Resources = dict[str, str | int | float]
"""Resource name -> quantity. The API server always writes text; hand-written objects may have numbers."""

Time = str
"""A time as the API writes it. It stays text: a pod with a time that cannot be read still counts."""


def seconds(at: Time | None) -> float | None:
    """A time in seconds since the epoch; None without one, or if it cannot be read."""
    if at is None:
        return None
    try:
        return time_seconds(at)
    except (ValueError, OverflowError):
        return None


# -- metadata --------------------------------------------------------------------------------------


class OwnerReference(ApiObject, frozen=True):
    """metadata.ownerReferences[]."""

    uid: str
    controller: bool | None = None
    api_version: str = ""
    kind: str = ""
    name: str = ""


class Metadata(ApiObject, frozen=True):
    """metadata of any object; that of a bookmark has no name."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None


def full_name(namespace: str, name: str) -> str:
    """`namespace/name`, or the name alone if there is no namespace."""
    return f"{namespace}/{name}" if namespace else name


# -- pods ------------------------------------------------------------------------------------------


class Requirements(ApiObject, frozen=True):
    """resources of a container, a pod or their status: the requests alone."""

    requests: Resources = field(default_factory=dict)


class Port(ApiObject, frozen=True):
    """ports[] of a container."""

    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(name="hostIP", default="")


class RestartRule(ApiObject, frozen=True):
    """restartPolicyRules[] of a container."""

    action: str = ""


class Container(ApiObject, frozen=True):
    """spec.containers[] and spec.initContainers[]."""

    name: str
    image: str = ""
    resources: Requirements = Requirements()
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()

    @property
    def sidecar(self) -> bool:
        """Whether an init container runs beside the app containers until the end (KEP-753)."""
        return self.restart_policy == "Always"


class SchedulingGroup(ApiObject, frozen=True):
    """spec.schedulingGroup of a pod (KEP-4671)."""

    pod_group_name: str = ""


class PodSpec(ApiObject, frozen=True):
    """spec of a pod."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    scheduler_name: str = "default-scheduler"
    node_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resources: Requirements | None = None
    overhead: Resources = field(default_factory=dict)
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    workload_ref: Present | None = None  # of Kubernetes 1.35 alone
    host_network: bool = False
    host_users: bool | None = None


class Running(ApiObject, frozen=True):
    """state.running."""

    started_at: Time | None = None


class Terminated(ApiObject, frozen=True):
    """state.terminated."""

    started_at: Time | None = None
    finished_at: Time | None = None


class ContainerState(ApiObject, frozen=True):
    """state of a container: at most one of the fields is set."""

    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(ApiObject, frozen=True):
    """status.containerStatuses[] and status.initContainerStatuses[]."""

    name: str
    state: ContainerState = ContainerState()
    resources: Requirements | None = None
    allocated_resources: Resources = field(default_factory=dict)


class Condition(ApiObject, frozen=True):
    """status.conditions[]."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class PodStatus(ApiObject, frozen=True):
    """status of a pod."""

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: Time | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: Requirements | None = None
    allocated_resources: Resources = field(default_factory=dict)


class Pod(ApiObject, frozen=True):
    """v1 Pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = PodStatus()


# -- nodes -----------------------------------------------------------------------------------------


class Taint(ApiObject, frozen=True):
    """spec.taints[]."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(ApiObject, frozen=True):
    """spec of a node."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeStatus(ApiObject, frozen=True):
    """status of a node."""

    allocatable: Resources = field(default_factory=dict)


class Node(ApiObject, frozen=True):
    """v1 Node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
