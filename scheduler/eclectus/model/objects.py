"""Tasks (pods) and nodes as frozen values, reduced to what scheduling needs.

Amounts are whole numbers in the smallest unit of their resource: `cpu` in thousandths of a core,
everything else in units or bytes. They stay whole from the API to the last comparison, so there is no
rounding where a node is exactly full.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Literal

from msgspec import Struct


# What a node gives a pod that is placed there, beside room: chosen with the node, and given back with it.
class Grant(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which devices of its node a pod gets; none for a pod that requests none, or before they are chosen."""

    devices: tuple[int, ...] = ()  # indices of them: whole ones first, then the one that it shares


NO_GRANT = Grant()


def contains(names: Sequence[str], name: str) -> bool:
    """Whether the name is one of these, which are sorted; there may be thousands."""
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


# Gangs: pods that start together or not at all, because a PodGroup of the cluster says so.
class GangKey(Struct, frozen=True, gc=False, cache_hash=True):
    """The PodGroup that a pod names; it need not exist."""

    api: str  # group of its API: there are two, and a name may exist in both
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"PodGroup {self.namespace}/{self.name}"


class Gang(Struct, frozen=True, gc=False):
    """A PodGroup, as last seen."""

    key: GangKey
    min_count: int = 1  # pods that must be on nodes before any of them starts; with 1 each starts by itself


Amounts = tuple[tuple[str, int], ...]
"""(resource name, amount), sorted by name, no zero amounts."""

Pairs = tuple[tuple[str, str], ...]
"""(key, value), sorted by key: labels and node selectors."""

Images = tuple[tuple[str, int], ...]
"""(name, bytes) of container images on a node."""

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]
ENDED: Final = frozenset({"Succeeded", "Failed"})


class Requirement(Struct, frozen=True, gc=False):
    """One expression on a node label or field: `key op values`."""

    key: str
    op: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True, gc=False):
    """A node selector term: every expression and every field must hold; an empty term holds on no node."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Preference(Struct, frozen=True, gc=False):
    """A preferred node selector term and its weight, 1..100."""

    weight: int
    term: Term


class Taint(Struct, frozen=True, gc=False):
    """A taint of a node."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Toleration(Struct, frozen=True, gc=False):
    """A toleration of a pod; an empty key or effect matches all."""

    key: str = ""
    op: Literal["Equal", "Exists", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: str = ""


class HostPort(Struct, frozen=True, gc=False):
    """A port of the node itself; `0.0.0.0` is every address."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 — Kubernetes' word for any address, nothing is bound to it


class PodAffinityTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """A required term of pod affinity or anti-affinity: which pods it matches, and what a domain is."""

    topology_key: str  # nodes with an equal value of this label are one topology domain
    selector: tuple[Requirement, ...] = ()  # on pod labels, all must hold; an empty one matches every pod
    namespaces: tuple[str, ...] | None = None  # sorted; None is every namespace
    # On the labels of further namespaces; the engine replaces it by their names (engine/pod_specs/).
    namespace_selector: tuple[Requirement, ...] | None = None

    def covers(self, namespace: str) -> bool:
        """Whether it may match pods of this namespace."""
        return self.namespaces is None or contains(self.namespaces, namespace)


class WeightedTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """A preferred term of pod affinity (weight 1..100) or anti-affinity (-100..-1)."""

    weight: int
    term: PodAffinityTerm


class SpreadConstraint(Struct, frozen=True, gc=False, cache_hash=True):
    """A topology spread constraint: how unequally pods may, or should, be spread over domains."""

    topology_key: str
    namespace: str  # of the pods that count
    selector: tuple[Requirement, ...] | None  # on the labels of the pods that count; None is no pod
    counts_itself: bool  # whether the pod that is placed is one of them
    max_skew: int = 1
    min_domains: int = 1  # with fewer domains the least count is 0
    honors_affinity: bool = True  # domains are of nodes that match the pod's node affinity alone…
    honors_taints: bool = False  # …and, with this, of nodes whose taints it tolerates
    is_default: bool = False  # of the pod's profile; the pod states none
    needs_all_keys: bool = True  # nodes count that have the label of each constraint of the pod


class UsedClaim(Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim of the pod's namespace that one of its volumes names."""

    name: str
    is_own: bool = False  # made for a generic ephemeral volume: the pod must be its controlling owner


class Input(Struct, frozen=True, gc=False):
    """Data that a pod reads, and where they are, as the pod says itself."""

    name: str
    size: int  # bytes
    nodes: tuple[str, ...] = ()  # names of nodes that have all of it; those that do not exist mean nothing
    node_label: str = ""  # by which `nodes` are found: they carry it with the value `true`


class UnboundClaim(Struct, frozen=True, gc=False, cache_hash=True):
    """A PersistentVolumeClaim that gets its volume when the first pod that uses it is placed."""

    storage_class: str
    size: int = 0  # bytes
    access_modes: tuple[str, ...] = ()
    volume_mode: str = "Filesystem"
    selector: tuple[Requirement, ...] | None = None  # on labels of PersistentVolumes
    attributes_class: str = ""
    selected_node: str = ""  # where its volume is to be provisioned
    volume: str = ""  # the PersistentVolume that is reserved for it
    shared: str = ""  # its key if other pods use it too: what is decided for them counts for all


class VolumeNeeds(Struct, frozen=True, gc=False, cache_hash=True):
    """Which nodes reach the volumes of a pod. Pods whose claims differ in name alone have equal ones."""

    is_blocked: bool = False  # no node will do before a claim or its volume changes
    affinity: tuple[tuple[Term, ...], ...] = ()  # of each bound volume at least one term must hold
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (zone or region label, its values) of bound volumes
    drivers: tuple[str, ...] = ()  # of CSI, that must be installed on the node; sorted
    unbound: tuple[UnboundClaim, ...] = ()  # the smallest first
    reach: int = -1  # number under which the cluster keeps where all of `unbound` can get volumes


class VolumeUse(Struct, frozen=True, gc=False, cache_hash=True):
    """What a pod's volumes take that other pods' volumes may have taken already."""

    exclusive: tuple[str, ...] = ()  # keys of ReadWriteOncePod claims that other pods use too
    attached: tuple[tuple[str, int], ...] = ()  # (CSI driver, volumes to attach that no other pod uses)
    attached_shared: tuple[tuple[str, str], ...] = ()  # (CSI driver, key of the claim) that other pods use


NO_VOLUMES, NO_VOLUME_USE = VolumeNeeds(), VolumeUse()

UNSUPPORTED = "which Eclectus does not support yet"
"""Ends the message of a pod that asks for an unsupported feature; the operator recognises it."""


class NodeQuota(Struct, frozen=True, gc=False, cache_hash=True):
    """What a pool of the pod may hold of a resource on the nodes with this value of a label.

    `amount`: what the pod would add. `most`: None for no bound. `least`: what the pool gets there first, of
    pods that ask for such nodes; 0 of others.
    """

    pool: str  # path
    key: str
    value: str
    resource: str
    amount: int
    most: int | None = None
    least: int = 0


class Spec(Struct, frozen=True, gc=False, cache_hash=True):
    """All that rules and policies see of a pod; pods with equal specs are treated alike."""

    requests: Amounts = ()
    score_requests: tuple[int, int] = (0, 0)  # cpu, memory; Kubernetes' defaults for best-effort containers
    node_name: str = ""
    node_selector: Pairs = ()
    affinity: tuple[Term, ...] | None = None  # at least one term must hold; None is no requirement
    preferences: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    long_running: bool = False  # a service: it does not end by itself, so no task should wait for it
    probe: bool = False  # a NodeProbe's pod: measures how fast a node is, whatever is learned of it
    unsupported: tuple[str, ...] = ()  # requested features that no rule implements
    # Anti-affinity terms of other pods, on nodes or pending, that match this pod: cluster/anti_affinity/.
    matched_terms: tuple[PodAffinityTerm, ...] = ()
    topology_keys: tuple[str, ...] = ()  # labels that a node must have, of any value: of the next two
    spread: tuple[SpreadConstraint, ...] = ()
    affinity_terms: tuple[PodAffinityTerm, ...] = ()  # required pod affinity
    matches_itself: bool = False  # whether all of `affinity_terms` match the pod itself
    own_anti_affinity: tuple[PodAffinityTerm, ...] = ()  # the terms of its required anti-affinity
    volumes: VolumeNeeds = NO_VOLUMES  # of its claims, as they are now: engine/volumes/
    volume_use: VolumeUse = NO_VOLUME_USE  # likewise
    preferred_terms: tuple[WeightedTerm, ...] = ()  # its preferred pod affinity and anti-affinity
    preferred_spread: tuple[SpreadConstraint, ...] = ()  # its topology spread with ScheduleAnyway
    # Terms of other pods, preferred ones and those of required pod affinity, that match this pod.
    matched_preferences: tuple[PodAffinityTerm, ...] = ()
    enforced_affinity: tuple[Term, ...] | None = None  # of its profile: at least one must hold as well
    slow_nodes: tuple[str, ...] = ()  # of a copy: the nodes that are too slow for it
    images: tuple[str, ...] = ()  # also of volumes, where its profile weighs them; with tag or digest
    quotas: tuple[NodeQuota, ...] = ()  # of its pools, of what it requests: engine/quota.py

    @property
    def prefers_by_pods(self) -> bool:
        """Whether pods elsewhere make one node preferable to another."""
        return bool(self.preferred_terms or self.preferred_spread or self.matched_preferences)

    @property
    def has_pod_rules(self) -> bool:
        """Whether pods elsewhere decide about a node: those of its topology domains."""
        about_pods = self.matched_terms or self.spread or self.affinity_terms or self.own_anti_affinity
        return bool(about_pods or self.quotas)


class Task(Struct, frozen=True, gc=False):
    """One pod, as last seen. Seeing an equal one again changes nothing."""

    uid: str
    namespace: str
    name: str
    profile: str = "eclectus"  # spec.schedulerName
    spec: Spec = Spec()
    priority: int = 0
    preempts: bool = True  # spec.preemptionPolicy: whether pods of lower priority may be evicted for it
    created: float = 0.0  # seconds since the epoch
    workload: str = ""  # the kind of work: what is learned from a task holds for tasks of the same workload
    job: str = ""  # the controlling owner's uid, shared by the tasks of a job
    controller: str = ""  # kind/name of that owner, of kinds with a selector; while the pod has no node
    stage: str = ""  # of a DAG job: which stage the pod says it belongs to
    gates: tuple[str, ...] = ()
    labels: Pairs = ()
    asked_pool: str = ""  # the name of the Pool that it asks for; whether it may is for the engine to say
    pool: str = ""  # the path of its pool, `research/vision`: set by the engine; empty where it has none
    anti_affinity_terms: tuple[PodAffinityTerm, ...] = ()  # of pods that it keeps out of its domains
    claims: tuple[UsedClaim, ...] = ()
    gang: GangKey | None = None  # the PodGroup with whose other pods it starts
    node: str = ""
    nominated: str = ""
    phase: Phase = "Pending"
    deleting: bool = False
    held: Amounts | None = None  # what it holds on its node, if not spec.requests (resize)
    started: float | None = None  # container start, seconds on the caller's clock
    finished: float | None = None
    accepted: float | None = None  # by the kubelet (status.startTime): no restart of a container changes it
    copy_of: str = ""  # the uid of the pod whose work it does a second time
    speculative: bool = False  # whether it may have a copy: it opted in
    restartable: bool = False  # whether a Job controls it, which may do its work anew in another pod
    straggling: bool = False  # whether its condition says that it is late
    progress: float | None = None  # the part of its work that is done, as it says itself, 0..1
    unread_progress: str = ""  # what of that cannot be read, and why, of a task that may have a copy
    reported: str = ""  # message of the pod's condition PodScheduled=False
    estimate: float | None = None  # expected run time, given by the submitter, seconds
    path: float | None = None  # critical path from its start to the end of its job, given likewise, seconds
    job_work: float | None = None  # of its job, not started when it was submitted, itself included, seconds
    inputs: tuple[Input, ...] = ()  # never part of its class, so tasks with data of their own share one
    notional_requests: Amounts = ()  # of a probe with zero requests: must stay free beside it
    grant: Grant = NO_GRANT  # of its node

    @property
    def ended(self) -> bool:
        """Whether it has ended and so holds nothing."""
        return self.phase in ENDED

    @property
    def has_terms(self) -> bool:
        """Whether it has terms about other pods, required or preferred; nearly none has."""
        spec = self.spec
        required = self.anti_affinity_terms or spec.affinity_terms or spec.own_anti_affinity
        return bool(required or spec.preferred_terms)

    @property
    def holding(self) -> Amounts:
        """What it holds on its node."""
        return self.spec.requests if self.held is None else self.held

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Node(Struct, frozen=True, gc=False):
    """One node, as last seen."""

    name: str
    allocatable: Amounts = ()
    labels: Pairs = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: Images = ()  # that it has pulled, where a profile weighs them


class Budget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget, as last seen."""

    namespace: str
    name: str
    selector: tuple[Requirement, ...] = ()  # on pod labels, all must hold; an empty one matches no pod
    allowed: int = 0  # status.disruptionsAllowed
    disrupted: tuple[str, ...] = ()  # names of pods whose eviction `allowed` counts already


def amount_of(amounts: Amounts, resource: str) -> int:
    """The amount of one resource; 0 if it is not among them."""
    return next((amount for name, amount in amounts if name == resource), 0)


# Label selectors: whether all requirements of a selector hold for the labels of a pod.

Selector = tuple[Requirement, ...]


class PodSelector(Struct, frozen=True, gc=False):
    """The pods of its namespace that a Service or a controller selects."""

    kind: str  # Service, ReplicationController, ReplicaSet or StatefulSet
    namespace: str
    name: str
    selector: Selector  # empty: it selects none


def selects(selector: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether every requirement holds. A selector without requirements selects every pod."""
    for each in selector:  # most are `In`; a call for each of them takes twice as long
        value = labels.get(each.key)
        if value not in each.values if each.op == "In" else not _label_holds(each, value):
            return False
    return True


def _label_holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.op:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            raise AssertionError(f"a selector on pod labels has no operators on numbers: {requirement}")


# Which pod gives way to which, in one place: evictions, room held for a pod, and explanations follow it.
def outranks(task: Task, other: Task) -> bool:
    """Whether the other pod may have to give up its node, or room that is held for it, for the task.

    Priorities count inside a pool; those of pods that are in none, the system's own, count for all.
    """
    return other.priority < task.priority and (not task.pool or task.pool == other.pool)


def may_outrank(priority: float, lowest: float) -> bool:
    """Whether a task of this priority at most may outrank a pod, if no pod has less than `lowest`."""
    return lowest < priority


# Names of workloads: what is learned of a task holds for the tasks of its namespace, or of a shared class.
#
# A name is `namespace/class` or `namespace/image,…`. Classes that the admin shares keep their bare name: they
# belong to no namespace, and every pod with their label teaches them. Neither a namespace nor a class
# contains a slash, so the first slash always ends the namespace.

EVERYBODY = ""
"""Stands for the namespace where there is none: shared classes, and workloads of simulations."""


def workload_name(namespace: str, kind: str, shared: AbstractSet[str] = frozenset()) -> str:
    """The name of a kind of work (a class, or images); bare if it is one of the `shared` classes."""
    return kind if kind in shared else f"{namespace}/{kind}"


def namespace_of(workload: str) -> str:
    """Whose workload it is; EVERYBODY of a shared one."""
    return workload.partition("/")[0] if "/" in workload else EVERYBODY


def kind_of(workload: str) -> str:
    """The name without the namespace: the class, as in the label."""
    return workload.partition("/")[2] if "/" in workload else workload


def concerns(workload: str, namespace: str) -> bool:
    """Whether pods of this namespace may do such work: it is the namespace's own or shared."""
    return namespace_of(workload) in (namespace, EVERYBODY)


def in_namespace_of(workload: str, kind: str) -> str:
    """The name of another kind of work in the same namespace."""
    namespace = namespace_of(workload)
    return workload_name(namespace, kind) if namespace else kind


ClassKey = tuple[Spec, str]
"""What defines a class: spec and workload."""


class Reservation:
    """Tasks that wait, and the nodes in whose queues they wait. Written by NodeQueues only.

    Usually one task in the queue of one node; in Sparrow (SOSP 2013), the tasks of a job with reservations in
    the queues of many nodes (late binding): whichever node dispatches first starts the next of the tasks. It
    is the same object in every queue, so a policy may remember things about it.
    """

    __slots__ = ("__weakref__", "class_key", "is_tentative", "profile", "rows", "since", "sticky", "tasks")

    def __init__(
        self,
        tasks: list[Task],
        rows: list[int],
        since: float,
        *,
        sticky: bool = False,
        is_tentative: bool = False,
    ) -> None:
        first = tasks[0]
        self.class_key: ClassKey = (first.spec, first.workload)  # of all its tasks
        self.profile = first.profile  # of all its tasks
        self.tasks = tasks  # not started yet, in order; never empty while it is in any queue
        self.rows = rows  # in whose queues it is; a row drawn twice is here twice
        self.since = since  # when it was enqueued, seconds on the caller's clock
        self.sticky = sticky  # keeps its place in a queue until all its tasks have started
        self.is_tentative = is_tentative  # its task counts as tentative on its node; only with one of each

    @property
    def head(self) -> Task:
        """The task that starts next."""
        return self.tasks[0]
