"""The fields of a pod that restrict where it may run, as the API writes them."""

from __future__ import annotations

from msgspec import Struct


class ApiObject(Struct, frozen=True, gc=False, rename="camel"):
    """Base of all API objects: immutable, not tracked by the garbage collector, camelCase in JSON."""


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


class PreferredTerm(ApiObject, frozen=True):
    """A term of preferred node affinity."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(ApiObject, frozen=True):
    """spec.affinity.nodeAffinity."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTerm, ...] = ()


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


class Present(ApiObject, frozen=True):
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


class Toleration(ApiObject, frozen=True):
    """spec.tolerations[]."""

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


class SchedulingGate(ApiObject, frozen=True):
    """spec.schedulingGates[]."""

    name: str


class ClaimSource(ApiObject, frozen=True):
    """persistentVolumeClaim of a volume."""

    claim_name: str = ""


class PodResourceClaim(ApiObject, frozen=True):
    """spec.resourceClaims[]: what the pod calls a claim of Dynamic Resource Allocation."""

    name: str = ""


class Volume(ApiObject, frozen=True):
    """spec.volumes[]: the sources that can bind a pod to certain nodes."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    azure_file: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    iscsi: Present | None = None
    portworx_volume: Present | None = None
    rbd: Present | None = None
    vsphere_volume: Present | None = None
