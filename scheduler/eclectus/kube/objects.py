"""The fields of API objects that a scheduler reads, and their decoding, with errors that name the field.

Every other field is skipped while parsing. Objects inside of lists and watch events stay raw and are decoded
one by one, so that a malformed object is reported by name and does not affect the others.
"""

from functools import partial
from typing import Generic, TypeVar

from msgspec import Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from eclectus.api.common import NOT_JSON, ListMeta, read_json, time_seconds
from eclectus.model.errors import MalformedError

_T = TypeVar("_T")


class ApiObject(Struct, frozen=True, gc=False, rename="camel"):
    """Base of all API objects: immutable, not tracked by the garbage collector, camelCase in JSON."""


# -- what restricts where a pod may run --------------------------------------------------------------


class Expression(ApiObject, frozen=True):
    """An entry of matchExpressions or matchFields."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiObject, frozen=True):
    """A term of node affinity."""

    match_expressions: tuple[Expression, ...] = ()
    match_fields: tuple[Expression, ...] = ()


class NodeSelector(ApiObject, frozen=True):
    """Required node affinity."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class _PreferredTerm(ApiObject, frozen=True):
    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(ApiObject, frozen=True):
    """spec.affinity.nodeAffinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[_PreferredTerm, ...] = ()


class LabelSelector(ApiObject, frozen=True):
    """A selector on the labels of pods or namespaces."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[Expression, ...] = ()


class PodAffinityTerm(ApiObject, frozen=True):
    """A term of inter-pod affinity or anti-affinity."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(ApiObject, frozen=True):
    """A term of preferred inter-pod affinity or anti-affinity."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class _Present(ApiObject, frozen=True):
    """A field of which only the presence is read."""


class PodAffinity(ApiObject, frozen=True):
    """spec.affinity.podAffinity or podAntiAffinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiObject, frozen=True):
    """spec.affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class _Toleration(ApiObject, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class SpreadConstraint(ApiObject, frozen=True):
    """spec.topologySpreadConstraints[]."""

    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    max_skew: int = 1
    min_domains: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class _SchedulingGate(ApiObject, frozen=True):
    name: str


class _ClaimSource(ApiObject, frozen=True):
    claim_name: str = ""


class _PodResourceClaim(ApiObject, frozen=True):
    name: str = ""


class _ImageSource(ApiObject, frozen=True):
    reference: str = ""


class Volume(ApiObject, frozen=True):
    """spec.volumes[], with the types of volumes that no rule knows."""

    name: str = ""
    persistent_volume_claim: _ClaimSource | None = None
    ephemeral: _Present | None = None
    image: _ImageSource | None = None
    aws_elastic_block_store: _Present | None = None
    azure_disk: _Present | None = None
    azure_file: _Present | None = None
    cinder: _Present | None = None
    gce_persistent_disk: _Present | None = None
    iscsi: _Present | None = None
    portworx_volume: _Present | None = None
    rbd: _Present | None = None
    vsphere_volume: _Present | None = None


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


class _Port(ApiObject, frozen=True):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = field(name="hostIP", default="")


class _RestartRule(ApiObject, frozen=True):
    action: str = ""


class Container(ApiObject, frozen=True):
    """spec.containers[] and spec.initContainers[]."""

    name: str
    image: str = ""
    resources: Requirements = Requirements()
    ports: tuple[_Port, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[_RestartRule, ...] = ()

    @property
    def sidecar(self) -> bool:
        """Whether an init container runs beside the app containers until the end (KEP-753)."""
        return self.restart_policy == "Always"


class _SchedulingGroup(ApiObject, frozen=True):
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
    scheduling_gates: tuple[_SchedulingGate, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[_Toleration, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resources: Requirements | None = None
    overhead: Resources = field(default_factory=dict)
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()
    resource_claims: tuple[_PodResourceClaim, ...] = ()
    scheduling_group: _SchedulingGroup | None = None
    workload_ref: _Present | None = None  # of Kubernetes 1.35 alone
    host_network: bool = False
    host_users: bool | None = None


class _Run(ApiObject, frozen=True):
    started_at: Time | None = None
    finished_at: Time | None = None


class _ContainerState(ApiObject, frozen=True):  # at most one of the fields is set
    running: _Run | None = None
    terminated: _Run | None = None


class ContainerStatus(ApiObject, frozen=True):
    """status.containerStatuses[]."""

    name: str
    state: _ContainerState = _ContainerState()
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


class _NodeStatus(ApiObject, frozen=True):
    allocatable: Resources = field(default_factory=dict)


class Node(ApiObject, frozen=True):
    """v1 Node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: _NodeStatus = _NodeStatus()


# -- what objects arrive in --------------------------------------------------------------------------


class ObjectList(ApiObject, frozen=True):
    """A page of a list, its items still raw."""

    metadata: ListMeta
    items: list[Raw] | None = None  # an empty list may arrive as null


class WatchEvent(ApiObject, frozen=True):
    """One line of a watch, its object still raw: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: Raw


class Status(ApiObject, frozen=True):
    """v1 Status: the object of an ERROR event, and the body of an error response."""

    code: int = 0
    reason: str = ""
    message: str = ""


class Head(ApiObject, frozen=True):
    """The metadata of any object; that of a BOOKMARK has a resourceVersion only."""

    metadata: Metadata


class Specified(ApiObject, Generic[_T], frozen=True):
    """An object of which nothing is read but its metadata and its spec."""

    metadata: Metadata
    spec: _T | None = None


# -- decoding ----------------------------------------------------------------------------------------


class _Name(ApiObject, frozen=True):
    name: str = "?"
    namespace: str = ""


class _Named(ApiObject, frozen=True):
    metadata: _Name = _Name()


_NAMED = Decoder(_Named)


def decode(decoder: Decoder[_T], kind: str, raw: bytes | Raw) -> _T:
    """An object of this kind. Raises MalformedError naming the object and the field."""
    try:
        return read_json(decoder.decode, raw)
    except ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise MalformedError(kind, _name_of(raw), path.rstrip("`").lstrip("."), problem) from error
    except NOT_JSON as error:
        raise MalformedError(kind, "?", "", f"not valid JSON: {error}") from error


def _name_of(raw: bytes | Raw) -> str:
    try:
        metadata = read_json(_NAMED.decode, raw).metadata
    except NOT_JSON:  # the name is malformed too; the caller raises the error of the object
        return "?"
    return full_name(metadata.namespace, metadata.name)


# Each takes the JSON of one object, a page of a list or a line of a watch, and raises what `decode` raises.
decode_pod = partial(decode, Decoder(Pod), "Pod")
decode_node = partial(decode, Decoder(Node), "Node")
decode_list = partial(decode, Decoder(ObjectList), "List")
decode_event = partial(decode, Decoder(WatchEvent), "WatchEvent")
decode_status = partial(decode, Decoder(Status), "Status")
decode_head = partial(decode, Decoder(Head), "Object")
