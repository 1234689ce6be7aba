"""The nouns: what a scheduler talks about, as frozen values.

Amounts are whole numbers in the smallest unit of their resource: `cpu` in thousandths of a core,
everything else in units or bytes. They stay integers from the API to the last comparison, so that a
node filled to the brim is full exactly, never almost.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Amounts = tuple[tuple[str, int], ...]
"""(resource name, amount), sorted by name, no zero amounts."""

Pairs = tuple[tuple[str, str], ...]
"""(key, value), sorted by key: labels and node selectors."""

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]

DEVICE_MILLI = "gpu-milli"
"""The one resource that comes in devices, of 1000 each, which tasks may share: core/devices.py."""


class Requirement(Struct, frozen=True, gc=False):
    """One expression on a node label or field: `key op values`."""

    key: str
    op: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()


class Term(Struct, frozen=True, gc=False):
    """A node selector term: every expression and every field must hold; an empty term holds nowhere."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class Preference(Struct, frozen=True, gc=False):
    """A soft node selector term and its weight, 1..100."""

    weight: int
    term: Term


class Taint(Struct, frozen=True, gc=False):
    """A node's reason to keep pods away."""

    key: str
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Toleration(Struct, frozen=True, gc=False):
    """A pod's answer to taints; an empty key or effect stands for all."""

    key: str = ""
    op: Literal["Equal", "Exists", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: str = ""


class HostPort(Struct, frozen=True, gc=False):
    """A port taken on the node itself; `0.0.0.0` stands for every address."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 — Kubernetes' word for any address, nothing is bound to it


class AntiAffinityTerm(Struct, frozen=True, gc=False, cache_hash=True):
    """A resident pod's required anti-affinity: it keeps matching pods out of its topology domain."""

    topology_key: str
    selector: tuple[Requirement, ...] = ()  # on pod labels, all must hold; none at all match every pod
    namespaces: tuple[str, ...] | None = None  # None stands for every namespace


class Spec(Struct, frozen=True, gc=False, cache_hash=True):
    """All that the rules and policies may look at. Pods of equal specs cannot be told apart."""

    requests: Amounts = ()
    score_requests: tuple[int, int] = (
        0,
        0,
    )  # cpu, memory with Kubernetes' defaults for best-effort containers
    node_name: str = ""
    node_selector: Pairs = ()
    affinity: tuple[Term, ...] | None = None  # any one term must hold; None asks for nothing
    preferences: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    long_running: bool = False  # a service: it has no end of its own, so nobody should wait for it to end
    probe: bool = False  # it goes to find out how fast a node is: what is believed of nodes is not asked
    unsupported: tuple[str, ...] = ()  # features this pod asks for that no rule here can honour
    matched_terms: tuple[
        AntiAffinityTerm, ...
    ] = ()  # guards of residents that this pod matches, from core/guards.py


class Task(Struct, frozen=True, gc=False):
    """One pod, as last seen. Its level counts, not how it came there: seeing it twice changes nothing."""

    uid: str
    namespace: str
    name: str
    profile: str = "eclectus"  # spec.schedulerName
    spec: Spec = Spec()
    priority: int = 0
    created: float = 0.0  # seconds since the epoch
    workload: str = ""  # what kind of work it is: tasks of one workload teach us about each other
    job: str = ""  # the controlling owner's uid: tasks that belong together
    gates: tuple[str, ...] = ()
    labels: Pairs = ()
    anti_affinity_terms: tuple[AntiAffinityTerm, ...] = ()  # what it keeps away from its own node's domains
    node: str = ""
    nominated: str = ""
    phase: Phase = "Pending"
    deleting: bool = False
    held: Amounts | None = None  # what it holds on its node where that differs from spec.requests (resize)
    started: float | None = None  # container start, seconds on the shell's clock
    finished: float | None = None
    reported: str = ""  # message of PodScheduled=False as it stands on the pod
    estimate: float | None = None  # how long it will run, as whoever submitted it believes, seconds
    path: float | None = None  # critical path from its start to the end of its job, likewise, seconds
    job_work: float | None = None  # of its job, not begun when it was submitted, itself included, seconds
    notional_requests: Amounts = ()  # of a probe with zero requests: room that must stay free beside it
    devices: tuple[int, ...] = ()  # those it has been given on its node: whole ones, then that of its share

    @property
    def ended(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

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


def amount_of(amounts: Amounts, resource: str) -> int:
    """How much of one resource; 0 if it is not among them."""
    return next((amount for name, amount in amounts if name == resource), 0)
