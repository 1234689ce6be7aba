"""PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes as watched kinds.

All are keyed by namespace/name: an object that was deleted and made again counts as the same object.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from eclectus.kube.decoding import decode_head
from eclectus.kube.objects import full_name
from eclectus.kube.storage.translate import attach_limits_from, claim_from, storage_class_from, volume_from
from eclectus.live.watch.claim_states import ClaimState, ClaimStates
from eclectus.live.watch.watched import ObservedObject, WatchedKind
from eclectus.model.errors import MalformedError
from eclectus.model.events import (
    AttachLimitsGone,
    AttachLimitsSeen,
    Event,
    StorageClassGone,
    StorageClassSeen,
    VolumeClaimGone,
    VolumeClaimSeen,
    VolumeGone,
    VolumeSeen,
)


class _Named(WatchedKind):
    kind: str
    list_query: Mapping[str, str] = {}
    undefined = "pods whose volumes need them are not placed"

    def key(self, raw: Raw) -> tuple[str, str]:
        """namespace/name."""
        metadata = decode_head(raw).metadata
        if not metadata.name:
            raise MalformedError(self.kind, "?", "metadata.name", "missing")
        return full_name(metadata.namespace, metadata.name), metadata.resource_version


class WatchedVolumeClaims(_Named):
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


class WatchedVolumes(_Named):
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


class WatchedStorageClasses(_Named):
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


class WatchedCsiNodes(_Named):
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


def storage_kinds(states: ClaimStates) -> list[WatchedKind]:
    """All of them; `states` follow the claims."""
    return [WatchedVolumeClaims(states), WatchedVolumes(), WatchedStorageClasses(), WatchedCsiNodes()]
