"""The fields of storage objects that a scheduler reads. Every other field is skipped while parsing."""

from __future__ import annotations

from msgspec import field

from eclectus.kube.objects import Metadata, Requirements, Resources
from eclectus.kube.placement import ApiObject, LabelSelector, NodeSelector


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
