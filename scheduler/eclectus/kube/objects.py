"""The fields of Pod and Node that a scheduler reads, and the envelopes they arrive in.

Every other field is skipped while parsing. Objects inside lists and watch events stay raw bytes until
asked for one by one, so that a malformed object is reported by name and costs nobody else anything.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from msgspec import DecodeError, Raw, ValidationError, field
from msgspec.json import Decoder

from eclectus.core.errors import MalformedError
from eclectus.kube.placement import (
    Affinity,
    ApiObject,
    Present,
    SchedulingGate,
    SpreadConstraint,
    Toleration,
    Volume,
)

Resources = dict[str, str | int | float]
"""Resource name -> quantity. The API server always writes text; hand-made objects may hold numbers."""


# -- metadata --------------------------------------------------------------------------------------


class OwnerReference(ApiObject, frozen=True):
    """metadata.ownerReferences[]."""

    uid: str
    controller: bool | None = None


class Metadata(ApiObject, frozen=True):
    """metadata of any object; only a bookmark has no name."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None


# -- pods ------------------------------------------------------------------------------------------


class Requirements(ApiObject, frozen=True):
    """resources of a container, a pod or their status: the requests."""

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
        """Whether it runs beside the app containers until the end (meaningful for init containers)."""
        return self.restart_policy == "Always"


class PodSpec(ApiObject, frozen=True):
    """spec of a pod."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    scheduler_name: str = "default-scheduler"
    node_name: str = ""
    priority: int = 0
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resources: Requirements | None = None
    overhead: Resources = field(default_factory=dict)
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    resource_claims: tuple[Present, ...] = ()
    scheduling_group: Present | None = None
    host_network: bool = False
    host_users: bool | None = None


class Running(ApiObject, frozen=True):
    """state.running."""

    started_at: datetime | None = None


class Terminated(ApiObject, frozen=True):
    """state.terminated."""

    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(ApiObject, frozen=True):
    """state of a container: at most one is there."""

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


# -- envelopes -------------------------------------------------------------------------------------


class ListMeta(ApiObject, frozen=True):
    """metadata of a list; `continue_` is the token of the next page, empty on the last."""

    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class ObjectList(ApiObject, frozen=True):
    """A page of a list, its items still raw."""

    metadata: ListMeta
    items: list[Raw] | None = None  # an empty list may arrive as null


class WatchEvent(ApiObject, frozen=True):
    """One line of a watch, its object still raw: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: Raw


class Status(ApiObject, frozen=True):
    """v1 Status: the object of an ERROR event and the body of a refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""


class Head(ApiObject, frozen=True):
    """Any object, its metadata alone; the object of a BOOKMARK has nothing but a resourceVersion."""

    metadata: Metadata


# -- decoding --------------------------------------------------------------------------------------

_T = TypeVar("_T")


def decode_pod(raw: bytes | Raw) -> Pod:
    """A Pod. Raises MalformedError naming the pod and the field."""
    return _decode(_POD, "Pod", raw)


def decode_node(raw: bytes | Raw) -> Node:
    """A Node. Raises MalformedError naming the node and the field."""
    return _decode(_NODE, "Node", raw)


def decode_list(raw: bytes) -> ObjectList:
    """A page of a list. Raises MalformedError when the page itself is broken."""
    return _decode(_LIST, "List", raw)


def decode_event(line: bytes) -> WatchEvent:
    """A line of a watch. Raises MalformedError when the line itself is broken."""
    return _decode(_EVENT, "WatchEvent", line)


def decode_status(raw: bytes | Raw) -> Status:
    """A Status. Raises MalformedError when it is none."""
    return _decode(_STATUS, "Status", raw)


def decode_head(raw: bytes | Raw) -> Head:
    """The metadata of any object. Raises MalformedError naming the field."""
    return _decode(_HEAD, "Object", raw)


_POD, _NODE, _LIST = Decoder(Pod), Decoder(Node), Decoder(ObjectList)
_EVENT, _STATUS, _HEAD = Decoder(WatchEvent), Decoder(Status), Decoder(Head)


class _Name(ApiObject, frozen=True):
    name: str = "?"
    namespace: str = ""


class _Named(ApiObject, frozen=True):
    metadata: _Name = _Name()


_NAMED = Decoder(_Named)


def _decode(decoder: Decoder[_T], kind: str, raw: bytes | Raw) -> _T:
    try:
        return decoder.decode(raw)
    except ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise MalformedError(kind, _name_of(raw), path.rstrip("`").lstrip("."), problem) from error
    except DecodeError as error:
        raise MalformedError(kind, "?", "", f"not valid JSON: {error}") from error


def _name_of(raw: bytes | Raw) -> str:
    try:
        metadata = _NAMED.decode(raw).metadata
    except DecodeError:  # not even a name: the caller's error says what is wrong
        return "?"
    return full_name(metadata.namespace, metadata.name)


def full_name(namespace: str, name: str) -> str:
    """`namespace/name`, or the name alone of what has no namespace."""
    return f"{namespace}/{name}" if namespace else name
