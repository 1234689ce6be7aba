"""Storage objects of the API in the model. Fields that no rule reads are skipped while parsing.

A size that cannot be read, or is not stated, is 0: any volume is large enough then, and a volume of such a
size is large enough for no other claim.
"""

from __future__ import annotations

from msgspec import Raw, field
from msgspec.json import Decoder

from eclectus.kube.constraints import label_selector, pairs, terms
from eclectus.kube.decoding import decode
from eclectus.kube.objects import Metadata, Requirements, Resources, full_name
from eclectus.kube.placement import ApiObject, LabelSelector, NodeSelector
from eclectus.kube.requests import MOST, FieldError, thousandths, units
from eclectus.model import volumes as model
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Requirement, Term


class ClaimSpec(ApiObject, frozen=True):
    """spec of a PersistentVolumeClaim."""

    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    resources: Requirements = Requirements()
    selector: LabelSelector | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None


class ClaimStatus(ApiObject, frozen=True):
    """status of a PersistentVolumeClaim."""

    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True):
    """v1 PersistentVolumeClaim."""

    metadata: Metadata
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ObjectReference(ApiObject, frozen=True):
    """spec.claimRef of a PersistentVolume."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(ApiObject, frozen=True):
    """spec.nodeAffinity of a PersistentVolume."""

    required: NodeSelector | None = None


class CsiSource(ApiObject, frozen=True):
    """spec.csi of a PersistentVolume."""

    driver: str = ""
    volume_handle: str = ""


class VolumeSpec(ApiObject, frozen=True):
    """spec of a PersistentVolume."""

    storage_class_name: str = ""
    capacity: Resources = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiSource | None = None


class VolumeStatus(ApiObject, frozen=True):
    """status of a PersistentVolume."""

    phase: str = ""


class PersistentVolume(ApiObject, frozen=True):
    """v1 PersistentVolume."""

    metadata: Metadata
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class TopologyExpression(ApiObject, frozen=True):
    """A label of which a node must have one of the values."""

    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(ApiObject, frozen=True):
    """allowedTopologies[] of a StorageClass."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(ApiObject, frozen=True):
    """storage.k8s.io/v1 StorageClass."""

    metadata: Metadata
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class Attachable(ApiObject, frozen=True):
    """allocatable of a CSI driver on a node."""

    count: int | None = None


class Driver(ApiObject, frozen=True):
    """spec.drivers[] of a CSINode."""

    name: str
    allocatable: Attachable | None = None


class CsiNodeSpec(ApiObject, frozen=True):
    """spec of a CSINode."""

    drivers: tuple[Driver, ...] = ()


class CsiNode(ApiObject, frozen=True):
    """storage.k8s.io/v1 CSINode."""

    metadata: Metadata
    spec: CsiNodeSpec = CsiNodeSpec()


class AttachmentSource(ApiObject, frozen=True):
    """spec.source of a VolumeAttachment."""

    persistent_volume_name: str | None = None


class AttachmentSpec(ApiObject, frozen=True):
    """spec of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(ApiObject, frozen=True):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata: Metadata
    spec: AttachmentSpec = AttachmentSpec()


class StorageCapacity(ApiObject, frozen=True):
    """storage.k8s.io/v1 CSIStorageCapacity."""

    metadata: Metadata
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: str | float | None = None
    maximum_volume_size: str | float | None = None


class CsiDriverSpec(ApiObject, frozen=True):
    """spec of a CSIDriver."""

    storage_capacity: bool | None = None


class CsiDriver(ApiObject, frozen=True):
    """storage.k8s.io/v1 CSIDriver."""

    metadata: Metadata
    spec: CsiDriverSpec = CsiDriverSpec()


FILESYSTEM = "Filesystem"

# Annotations of Kubernetes.
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"  # where it is set, it is the class
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"  # claim and volume name each other
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # for which a volume is to be provisioned
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"  # the volume was not reserved by a person


def claim_from(raw: bytes | Raw) -> tuple[model.VolumeClaim, str]:
    """A PersistentVolumeClaim and its resourceVersion. Raises MalformedError naming object and field."""
    claim = decode(_CLAIM, "PersistentVolumeClaim", raw)
    meta, spec = claim.metadata, claim.spec
    found = model.VolumeClaim(
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
    return found, meta.resource_version


def volume_from(raw: bytes | Raw) -> tuple[model.Volume, str]:
    """A PersistentVolume and its resourceVersion. Raises MalformedError naming the object and the field."""
    volume = decode(_VOLUME, "PersistentVolume", raw)
    meta, spec, claim = volume.metadata, volume.spec, volume.spec.claim_ref
    found = model.Volume(
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
        claim="" if claim is None else full_name(claim.namespace, claim.name),
        claim_uid="" if claim is None else claim.uid,
    )
    return found, meta.resource_version


def storage_class_from(raw: bytes | Raw) -> tuple[model.StorageClass, str]:
    """A StorageClass and its resourceVersion. Raises MalformedError naming the object and the field."""
    each = decode(_STORAGE_CLASS, "StorageClass", raw)
    topologies = (
        Term(tuple(Requirement(one.key, "In", one.values) for one in term.match_label_expressions))
        for term in each.allowed_topologies
    )
    found = model.StorageClass(
        name=each.metadata.name,
        provisioner=each.provisioner,
        waits_for_consumer=each.volume_binding_mode == "WaitForFirstConsumer",
        topologies=tuple(topologies),
    )
    return found, each.metadata.resource_version


def attach_limits_from(raw: bytes | Raw) -> tuple[model.AttachLimits, str]:
    """The limits that a CSINode states, and its resourceVersion. Raises MalformedError likewise."""
    node = decode(_CSI_NODE, "CSINode", raw)
    limits = (
        (driver.name, driver.allocatable.count)
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    )
    return model.AttachLimits(node.metadata.name, tuple(sorted(limits))), node.metadata.resource_version


def attachment_from(raw: bytes | Raw) -> tuple[model.Attachment | None, str, str]:
    """A VolumeAttachment, None if it names no PersistentVolume; its name and its resourceVersion.

    Whether it is attached already is not read: what is about to be counts too, as in kube-scheduler. Raises
    MalformedError likewise.
    """
    each = decode(_ATTACHMENT, "VolumeAttachment", raw)
    meta, spec = each.metadata, each.spec
    volume = spec.source.persistent_volume_name
    if volume is None or not spec.attacher:
        return None, meta.name, meta.resource_version
    found = model.Attachment(meta.name, spec.node_name, volume, spec.attacher)
    return found, meta.name, meta.resource_version


def free_storage_from(raw: bytes | Raw) -> tuple[model.FreeStorage | None, str, str]:
    """What a CSIStorageCapacity says, None if that is nothing of any node; its key and its resourceVersion.

    The greatest volume counts, if it is stated, and else all that is free. Raises MalformedError likewise.
    """
    each = decode(_STORAGE_CAPACITY, "CSIStorageCapacity", raw)
    meta = each.metadata
    key = full_name(meta.namespace, meta.name)
    stated = each.capacity if each.maximum_volume_size is None else each.maximum_volume_size
    largest = None if stated is None else _bytes(stated)
    if largest is None or each.node_topology is None:
        return None, key, meta.resource_version
    nodes = label_selector(each.node_topology)
    free = model.FreeStorage(key, each.storage_class_name, min(largest, MOST), nodes)
    return free, key, meta.resource_version


def storage_driver_from(raw: bytes | Raw) -> tuple[str, bool, str]:
    """The name of a CSIDriver, whether it publishes how much storage is free, and its resourceVersion.

    Raises MalformedError likewise.
    """
    driver = decode(_CSI_DRIVER, "CSIDriver", raw)
    return driver.metadata.name, bool(driver.spec.storage_capacity), driver.metadata.resource_version


def _size(resources: Resources) -> int:
    return _bytes(resources.get("storage", "0")) or 0


def _bytes(stated: str | float) -> int | None:
    """None if it cannot be read."""
    try:
        return units(thousandths(str(stated)))
    except ValueError:
        return None


def _affinity(name: str, affinity: VolumeNodeAffinity | None) -> tuple[Term, ...] | None:
    if affinity is None or affinity.required is None:
        return None
    try:
        return terms(affinity.required, "spec.nodeAffinity")
    except FieldError as error:
        raise MalformedError("PersistentVolume", name, error.field, error.problem) from error


_CLAIM, _VOLUME = Decoder(PersistentVolumeClaim), Decoder(PersistentVolume)
_STORAGE_CLASS, _CSI_NODE = Decoder(StorageClass), Decoder(CsiNode)
_ATTACHMENT = Decoder(VolumeAttachment)
_STORAGE_CAPACITY, _CSI_DRIVER = Decoder(StorageCapacity), Decoder(CsiDriver)
