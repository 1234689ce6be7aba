"""Objects of the API beside pods, nodes and jobs, in the model. Fields that no rule reads are skipped.

PodGroups have two APIs: Kubernetes' own (KEP-4671; since 1.36, behind the feature gate GenericWorkload), and
that of the coscheduling plug-in of kubernetes-sigs/scheduler-plugins, which many job operators use.

A Service or controller without a selector, or with an empty one, says nothing about pods, and one that wants
no pods has none that wait: a Deployment keeps ten ReplicaSets of its past. The selector of all these is empty
in the model.

A size of storage that cannot be read, or is not stated, is 0: any volume is large enough then, and a volume
of such a size is large enough for no other claim.
"""

from typing import Generic, TypeVar

from msgspec import Raw, field
from msgspec.json import Decoder

from eclectus.kube import objects
from eclectus.kube.constraints import label_selector, pairs, terms
from eclectus.kube.requests import MOST, FieldError, thousandths, units
from eclectus.model import volumes as model
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Budget, Gang, GangKey, PodSelector, Requirement, Term

# -- PodGroups -------------------------------------------------------------------------------------

KUBERNETES, COSCHEDULING = "scheduling.k8s.io", "scheduling.x-k8s.io"  # groups of the two APIs
KUBERNETES_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")  # newest first; one or more are served
COSCHEDULING_VERSIONS = ("v1alpha1",)
POD_GROUP, POD_GROUPS = "PodGroup", "podgroups"  # kind and resource

COSCHEDULING_LABEL = f"{COSCHEDULING}/pod-group"  # of a pod: the name of its PodGroup


class _GangPolicy(objects.ApiObject, frozen=True):
    min_count: int


class _SchedulingPolicy(objects.ApiObject, frozen=True):
    """Without `gang` it is the basic policy: each pod starts by itself."""

    gang: _GangPolicy | None = None


class _PodGroupSpec(objects.ApiObject, frozen=True):
    scheduling_policy: _SchedulingPolicy = _SchedulingPolicy()


class _CoschedulingSpec(objects.ApiObject, frozen=True):
    min_member: int = 1


_POD_GROUP = Decoder(objects.Specified[_PodGroupSpec])
_COSCHEDULING_POD_GROUP = Decoder(objects.Specified[_CoschedulingSpec])


def gang_from(raw: bytes | Raw) -> Gang:
    """Kubernetes' PodGroup. Raises MalformedError naming the object and the field."""
    group = objects.decode(_POD_GROUP, POD_GROUP, raw)
    meta, policy = group.metadata, (group.spec or _PodGroupSpec()).scheduling_policy.gang
    return Gang(GangKey(KUBERNETES, meta.namespace, meta.name), 1 if policy is None else policy.min_count)


def coscheduling_gang_from(raw: bytes | Raw) -> Gang:
    """Coscheduling's PodGroup. Raises MalformedError naming the object and the field."""
    group = objects.decode(_COSCHEDULING_POD_GROUP, POD_GROUP, raw)
    meta, spec = group.metadata, group.spec or _CoschedulingSpec()
    return Gang(GangKey(COSCHEDULING, meta.namespace, meta.name), spec.min_member)


# -- PodDisruptionBudgets --------------------------------------------------------------------------


_Selector = TypeVar("_Selector", dict[str, str], objects.LabelSelector)


class _Selecting(objects.ApiObject, Generic[_Selector], frozen=True):
    selector: _Selector | None = None
    replicas: int | None = None  # only controllers have it


class _BudgetStatus(objects.ApiObject, frozen=True):
    disruptions_allowed: int = 0
    # Pod name -> when its eviction was granted; null for the zero time.
    disrupted_pods: dict[str, str | None] = field(default_factory=dict)


class _PodDisruptionBudget(objects.Specified[_Selecting[objects.LabelSelector]], frozen=True):
    status: _BudgetStatus = _BudgetStatus()


_BUDGET = Decoder(_PodDisruptionBudget)


def budget_from(raw: bytes | Raw) -> Budget:
    """A PodDisruptionBudget. Raises MalformedError naming the object and the field."""
    budget = objects.decode(_BUDGET, "PodDisruptionBudget", raw)
    selector = None if budget.spec is None else budget.spec.selector
    return Budget(
        namespace=budget.metadata.namespace,
        name=budget.metadata.name,
        selector=() if selector is None else label_selector(selector),
        allowed=budget.status.disruptions_allowed,
        disrupted=tuple(sorted(budget.status.disrupted_pods)),
    )


# -- Services and controllers ----------------------------------------------------------------------

_BY_LABELS = Decoder(objects.Specified[_Selecting[dict[str, str]]])
_BY_SELECTOR = Decoder(objects.Specified[_Selecting[objects.LabelSelector]])


def selected_by_labels(kind: str, raw: bytes | Raw) -> PodSelector:
    """A Service or a ReplicationController. Raises MalformedError naming the object and the field."""
    found = objects.decode(_BY_LABELS, kind, raw)
    spec = found.spec or _Selecting[dict[str, str]]()
    return _pod_selector(kind, found.metadata, objects.LabelSelector(spec.selector or {}), spec.replicas)


def selected_by_selector(kind: str, raw: bytes | Raw) -> PodSelector:
    """A ReplicaSet or a StatefulSet. Raises MalformedError naming the object and the field."""
    found = objects.decode(_BY_SELECTOR, kind, raw)
    spec = found.spec or _Selecting[objects.LabelSelector]()
    return _pod_selector(kind, found.metadata, spec.selector or objects.LabelSelector(), spec.replicas)


def _pod_selector(
    kind: str, meta: objects.Metadata, selector: objects.LabelSelector, replicas: int | None
) -> PodSelector:
    return PodSelector(kind, meta.namespace, meta.name, () if replicas == 0 else label_selector(selector))


# -- storage ---------------------------------------------------------------------------------------

_T = TypeVar("_T")


class _Phase(objects.ApiObject, frozen=True):
    phase: str = ""


class _Phased(objects.Specified[_T], Generic[_T], frozen=True):
    status: _Phase = _Phase()


class _ClaimSpec(objects.ApiObject, frozen=True):
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    resources: objects.Requirements = objects.Requirements()
    selector: objects.LabelSelector | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None


class _ObjectReference(objects.ApiObject, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeNodeAffinity(objects.ApiObject, frozen=True):
    required: objects.NodeSelector | None = None


class _CsiSource(objects.ApiObject, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class _VolumeSpec(objects.ApiObject, frozen=True):
    storage_class_name: str = ""
    capacity: objects.Resources = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: _ObjectReference | None = None
    node_affinity: _VolumeNodeAffinity | None = None
    csi: _CsiSource | None = None


class _TopologyExpression(objects.ApiObject, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class _TopologyTerm(objects.ApiObject, frozen=True):
    match_label_expressions: tuple[_TopologyExpression, ...] = ()


class _StorageClass(objects.ApiObject, frozen=True):
    metadata: objects.Metadata
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[_TopologyTerm, ...] = ()


class _Attachable(objects.ApiObject, frozen=True):
    count: int | None = None


class _Driver(objects.ApiObject, frozen=True):
    name: str
    allocatable: _Attachable | None = None


class _CsiNodeSpec(objects.ApiObject, frozen=True):
    drivers: tuple[_Driver, ...] = ()


class _AttachmentSource(objects.ApiObject, frozen=True):
    persistent_volume_name: str | None = None


class _AttachmentSpec(objects.ApiObject, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: _AttachmentSource = _AttachmentSource()


class _StorageCapacity(objects.ApiObject, frozen=True):
    metadata: objects.Metadata
    storage_class_name: str = ""
    node_topology: objects.LabelSelector | None = None
    capacity: str | float | None = None
    maximum_volume_size: str | float | None = None


class _CsiDriverSpec(objects.ApiObject, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


FILESYSTEM = "Filesystem"

# Annotations of Kubernetes.
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"  # where it is set, it is the class
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"  # claim and volume name each other
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # for which a volume is to be provisioned
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"  # the volume was not reserved by a person


def claim_from(raw: bytes | Raw) -> model.VolumeClaim:
    """A PersistentVolumeClaim. Raises MalformedError naming the object and the field."""
    claim = objects.decode(_CLAIM, "PersistentVolumeClaim", raw)
    meta, spec = claim.metadata, claim.spec or _ClaimSpec()
    return model.VolumeClaim(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        storage_class=meta.annotations.get(BETA_STORAGE_CLASS, spec.storage_class_name or ""),
        size=_size(spec.resources.requests),
        access_modes=tuple(sorted(spec.access_modes)),
        volume_mode=spec.volume_mode or FILESYSTEM,
        selector=None if spec.selector is None else label_selector(spec.selector),
        attributes_class=spec.volume_attributes_class_name or "",
        volume=spec.volume_name,
        is_bound=bool(spec.volume_name) and BIND_COMPLETED in meta.annotations,
        is_lost=claim.status.phase == "Lost",
        deleting=meta.deletion_timestamp is not None,
        selected_node=meta.annotations.get(SELECTED_NODE, ""),
        owner=next((owner.uid for owner in meta.owner_references if owner.controller), ""),
    )


def volume_from(raw: bytes | Raw) -> model.Volume:
    """A PersistentVolume. Raises MalformedError naming the object and the field."""
    volume = objects.decode(_VOLUME, "PersistentVolume", raw)
    meta, spec = volume.metadata, volume.spec or _VolumeSpec()
    claim = spec.claim_ref
    return model.Volume(
        name=meta.name,
        storage_class=meta.annotations.get(BETA_STORAGE_CLASS, spec.storage_class_name),
        size=_size(spec.capacity),
        access_modes=tuple(sorted(spec.access_modes)),
        volume_mode=spec.volume_mode or FILESYSTEM,
        attributes_class=spec.volume_attributes_class_name or "",
        labels=pairs(meta.labels),
        affinity=_affinity(meta.name, spec.node_affinity),
        driver="" if spec.csi is None else spec.csi.driver,
        handle="" if spec.csi is None else spec.csi.volume_handle,
        is_available=volume.status.phase == "Available",
        deleting=meta.deletion_timestamp is not None,
        claim="" if claim is None else objects.full_name(claim.namespace, claim.name),
        claim_uid="" if claim is None else claim.uid,
    )


def storage_class_from(raw: bytes | Raw) -> model.StorageClass:
    """A StorageClass. Raises MalformedError naming the object and the field."""
    each = objects.decode(_STORAGE_CLASS, "StorageClass", raw)
    topologies = (
        Term(tuple(Requirement(one.key, "In", one.values) for one in term.match_label_expressions))
        for term in each.allowed_topologies
    )
    return model.StorageClass(
        name=each.metadata.name,
        provisioner=each.provisioner,
        waits_for_consumer=each.volume_binding_mode == "WaitForFirstConsumer",
        topologies=tuple(topologies),
    )


def attach_limits_from(raw: bytes | Raw) -> model.AttachLimits:
    """The drivers and limits that a CSINode states. Raises MalformedError naming the object and the field."""
    node = objects.decode(_CSI_NODE, "CSINode", raw)
    drivers = (node.spec or _CsiNodeSpec()).drivers
    limits = (
        (driver.name, driver.allocatable.count)
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    )
    names = (driver.name for driver in drivers)
    return model.AttachLimits(node.metadata.name, tuple(sorted(limits)), tuple(sorted(names)))


def attachment_from(raw: bytes | Raw) -> model.Attachment | None:
    """A VolumeAttachment; None if it names no PersistentVolume.

    Whether it is attached already is not read: what is about to be counts too, as in kube-scheduler. Raises
    MalformedError likewise.
    """
    each = objects.decode(_ATTACHMENT, "VolumeAttachment", raw)
    spec = each.spec or _AttachmentSpec()
    volume = spec.source.persistent_volume_name
    if volume is None or not spec.attacher:
        return None
    return model.Attachment(each.metadata.name, spec.node_name, volume, spec.attacher)


def free_storage_from(raw: bytes | Raw) -> model.FreeStorage | None:
    """What a CSIStorageCapacity says; None if that is nothing of any node.

    The greatest volume counts, if it is stated, and else all that is free. Raises MalformedError.
    """
    each = objects.decode(_STORAGE_CAPACITY, "CSIStorageCapacity", raw)
    stated = each.capacity if each.maximum_volume_size is None else each.maximum_volume_size
    largest = None if stated is None else _bytes(stated)
    total = (None if each.capacity is None else _bytes(each.capacity)) or 0
    if largest is None or each.node_topology is None:
        return None
    key = objects.full_name(each.metadata.namespace, each.metadata.name)
    nodes = label_selector(each.node_topology)
    return model.FreeStorage(key, each.storage_class_name, min(largest, MOST), nodes, min(total, MOST))


def storage_driver_from(raw: bytes | Raw) -> tuple[str, bool, bool]:
    """The name of a CSIDriver, whether it publishes how much storage is free, and whether nodes must have it.

    Raises MalformedError.
    """
    driver = objects.decode(_CSI_DRIVER, "CSIDriver", raw)
    spec = driver.spec or _CsiDriverSpec()
    return driver.metadata.name, bool(spec.storage_capacity), bool(spec.prevent_pod_scheduling_if_missing)


def _size(resources: objects.Resources) -> int:
    return _bytes(resources.get("storage", "0")) or 0


def _bytes(stated: str | float) -> int | None:
    try:
        return units(thousandths(str(stated)))
    except ValueError:
        return None


def _affinity(name: str, affinity: _VolumeNodeAffinity | None) -> tuple[Term, ...] | None:
    if affinity is None or affinity.required is None:
        return None
    try:
        return terms(affinity.required, "spec.nodeAffinity")
    except FieldError as error:
        raise MalformedError("PersistentVolume", name, error.field, error.problem) from error


_CLAIM, _VOLUME = Decoder(_Phased[_ClaimSpec]), Decoder(_Phased[_VolumeSpec])
_STORAGE_CLASS, _STORAGE_CAPACITY = Decoder(_StorageClass), Decoder(_StorageCapacity)
_CSI_NODE, _CSI_DRIVER = Decoder(objects.Specified[_CsiNodeSpec]), Decoder(objects.Specified[_CsiDriverSpec])
_ATTACHMENT = Decoder(objects.Specified[_AttachmentSpec])
