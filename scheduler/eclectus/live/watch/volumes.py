"""PersistentVolumeClaims, PersistentVolumes, StorageClasses and what CSI drivers publish as watched kinds."""

from __future__ import annotations

from msgspec import Raw

from eclectus.kube.storage.translate import (
    attach_limits_from,
    attachment_from,
    claim_from,
    free_storage_from,
    storage_class_from,
    storage_driver_from,
    volume_from,
)
from eclectus.live.watch.claim_states import ClaimState, ClaimStates
from eclectus.live.watch.named import NamedKind
from eclectus.live.watch.watched import ObservedObject, WatchedKind
from eclectus.model.events import (
    AttachLimitsGone,
    AttachLimitsSeen,
    AttachmentGone,
    AttachmentSeen,
    Event,
    FreeStorageGone,
    FreeStorageSeen,
    StorageClassGone,
    StorageClassSeen,
    StorageDriverGone,
    StorageDriverSeen,
    VolumeClaimGone,
    VolumeClaimSeen,
    VolumeGone,
    VolumeSeen,
)


class _StorageKind(NamedKind):
    undefined = "pods whose volumes need them are not placed"


class WatchedVolumeClaims(_StorageKind):
    """PersistentVolumeClaims. `states` are kept for binds that wait for claims."""

    name, kind = "persistentvolumeclaims", "PersistentVolumeClaim"
    path = "/api/v1/persistentvolumeclaims"

    def __init__(self, states: ClaimStates) -> None:
        self._states = states

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """VolumeClaimSeen."""
        del now
        claim, version = claim_from(raw)
        volume = claim.volume if claim.is_bound else ""
        self._states.set(claim.key, ClaimState(claim.uid, volume, claim.selected_node))
        return ObservedObject(claim.key, version, VolumeClaimSeen(claim))

    def gone(self, key: str) -> Event:
        """VolumeClaimGone."""
        self._states.drop(key)
        return VolumeClaimGone(key)


class WatchedVolumes(_StorageKind):
    """PersistentVolumes."""

    name, kind = "persistentvolumes", "PersistentVolume"
    path = "/api/v1/persistentvolumes"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """VolumeSeen."""
        del now
        volume, version = volume_from(raw)
        return ObservedObject(volume.name, version, VolumeSeen(volume))

    def gone(self, key: str) -> Event:
        """VolumeGone."""
        return VolumeGone(key)


class WatchedStorageClasses(_StorageKind):
    """StorageClasses."""

    name, kind = "storageclasses", "StorageClass"
    path = "/apis/storage.k8s.io/v1/storageclasses"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """StorageClassSeen."""
        del now
        storage_class, version = storage_class_from(raw)
        return ObservedObject(storage_class.name, version, StorageClassSeen(storage_class))

    def gone(self, key: str) -> Event:
        """StorageClassGone."""
        return StorageClassGone(key)


class WatchedCsiNodes(_StorageKind):
    """CSINodes, named as their nodes."""

    name, kind = "csinodes", "CSINode"
    path = "/apis/storage.k8s.io/v1/csinodes"
    undefined = "the number of volumes on a node is not limited"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """AttachLimitsSeen."""
        del now
        limits, version = attach_limits_from(raw)
        return ObservedObject(limits.node, version, AttachLimitsSeen(limits))

    def gone(self, key: str) -> Event:
        """AttachLimitsGone."""
        return AttachLimitsGone(key)


class WatchedAttachments(_StorageKind):
    """VolumeAttachments."""

    name, kind = "volumeattachments", "VolumeAttachment"
    path = "/apis/storage.k8s.io/v1/volumeattachments"
    undefined = "volumes that no pod uses any more do not count against the limits of nodes"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """AttachmentSeen, or AttachmentGone for one that names no PersistentVolume."""
        del now
        found, name, version = attachment_from(raw)
        return ObservedObject(name, version, self.gone(name) if found is None else AttachmentSeen(found))

    def gone(self, key: str) -> Event:
        """AttachmentGone."""
        return AttachmentGone(key)


class WatchedStorageDrivers(_StorageKind):
    """CSIDrivers."""

    name, kind = "csidrivers", "CSIDriver"
    path = "/apis/storage.k8s.io/v1/csidrivers"
    undefined = "free storage is not compared"

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """StorageDriverSeen."""
        del now
        name, publishes_capacity, version = storage_driver_from(raw)
        return ObservedObject(name, version, StorageDriverSeen(name, publishes_capacity))

    def gone(self, key: str) -> Event:
        """StorageDriverGone."""
        return StorageDriverGone(key)


class WatchedFreeStorage(_StorageKind):
    """CSIStorageCapacities, keyed by namespace/name."""

    name, kind = "csistoragecapacities", "CSIStorageCapacity"
    path = "/apis/storage.k8s.io/v1/csistoragecapacities"
    undefined = WatchedStorageDrivers.undefined

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """FreeStorageSeen, or FreeStorageGone for one that says nothing of any node."""
        del now
        free, key, version = free_storage_from(raw)
        return ObservedObject(key, version, self.gone(key) if free is None else FreeStorageSeen(free))

    def gone(self, key: str) -> Event:
        """FreeStorageGone."""
        return FreeStorageGone(key)


def storage_kinds(states: ClaimStates) -> list[WatchedKind]:
    """All of them; `states` follow the claims."""
    return [
        WatchedVolumeClaims(states),
        WatchedVolumes(),
        WatchedStorageClasses(),
        WatchedCsiNodes(),
        WatchedAttachments(),
        WatchedStorageDrivers(),
        WatchedFreeStorage(),
    ]
