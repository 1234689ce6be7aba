"""Storage as frozen values: claims, volumes, StorageClasses, attachable volumes and free storage.

Sizes are in bytes. A name of a claim alone is not unique: its key is `namespace/name`.
"""

from typing import NamedTuple

from msgspec import Struct

from eclectus.model.objects import Pairs, Requirement, Term

NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of a StorageClass whose PersistentVolumes an administrator makes."""

READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class AttachedVolume(NamedTuple):
    """What a volume is attached to nodes as: two PersistentVolumes with one handle are one volume."""

    driver: str
    handle: str = ""
    claim: str = ""  # key of the claim, while the volume is yet to be provisioned and has no handle


class VolumeClaim(Struct, frozen=True, gc=False):
    """A PersistentVolumeClaim, as last seen."""

    namespace: str
    name: str
    uid: str
    storage_class: str = ""
    size: int = 0
    access_modes: tuple[str, ...] = ()  # sorted
    volume_mode: str = "Filesystem"
    selector: tuple[Requirement, ...] | None = None  # on labels of PersistentVolumes
    attributes_class: str = ""
    volume: str = ""  # spec.volumeName
    is_bound: bool = False  # to `volume`, from both sides
    is_lost: bool = False  # its volume has been deleted
    deleting: bool = False
    selected_node: str = ""  # where its volume is to be provisioned
    owner: str = ""  # uid of the controlling owner

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Volume(Struct, frozen=True, gc=False):
    """A PersistentVolume, as last seen."""

    name: str
    storage_class: str = ""
    size: int = 0
    access_modes: tuple[str, ...] = ()  # sorted
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    labels: Pairs = ()
    affinity: tuple[Term, ...] | None = None  # of the node: at least one term must hold; None is any node
    driver: str = ""  # of CSI; empty: another type of volume
    handle: str = ""  # by which its driver knows it
    is_available: bool = False  # status.phase
    deleting: bool = False
    claim: str = ""  # key of the claim for which it is reserved, or to which it is bound
    claim_uid: str = ""  # may be empty where an administrator has reserved it

    def is_reserved_for(self, claim: VolumeClaim) -> bool:
        """Whether it is reserved for this claim or bound to it."""
        return self.claim == claim.key and self.claim_uid in ("", claim.uid)

    def attached_by(self, driver: str) -> AttachedVolume:
        """What it is when this driver attaches it; on a tape without handles its name stands for its own."""
        return AttachedVolume(driver, self.handle or self.name)


class StorageClass(Struct, frozen=True, gc=False):
    """A StorageClass, as last seen."""

    name: str
    provisioner: str = ""
    waits_for_consumer: bool = False  # volumeBindingMode WaitForFirstConsumer
    topologies: tuple[Term, ...] = ()  # where volumes can be provisioned: a term must hold; none is anywhere

    @property
    def provisions(self) -> bool:
        """Whether volumes are made when a claim asks for one."""
        return self.provisioner not in ("", NO_PROVISIONER)


class AttachLimits(Struct, frozen=True, gc=False):
    """A CSINode, as last seen: what can attach volumes to the node of this name, and how many."""

    node: str
    limits: tuple[tuple[str, int], ...] = ()  # (driver, count); a driver that is missing has no limit
    drivers: tuple[str, ...] = ()  # of CSI, that are installed there; sorted


class Attachment(Struct, frozen=True, gc=False):
    """A VolumeAttachment, as last seen: a volume is attached to a node, or is about to be."""

    name: str
    node: str
    volume: str  # name of the PersistentVolume
    driver: str  # of CSI, which attaches it


class FreeStorage(Struct, frozen=True, gc=False):
    """A CSIStorageCapacity, as last seen: how large a new volume of a StorageClass can be on some nodes."""

    key: str  # namespace/name
    storage_class: str
    largest: int  # bytes
    nodes: tuple[Requirement, ...] = ()  # on labels of nodes, all must hold; an empty one is every node
    total: int = 0  # bytes, of all new volumes together
