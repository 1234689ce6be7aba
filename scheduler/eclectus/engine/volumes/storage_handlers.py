"""What events about storage change; pods that use it are resolved again after the events of the step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eclectus.cluster.nodes import Cluster
from eclectus.model.events import (
    AttachLimitsGone,
    AttachLimitsSeen,
    AttachmentGone,
    AttachmentSeen,
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
from eclectus.model.volumes import AttachLimits


def storage_handlers(cluster: Cluster) -> Mapping[type, Callable[[Any], None]]:
    """Type of event -> what updates the cluster."""
    volumes, storage = cluster.volumes, cluster.volumes.storage
    return {
        VolumeClaimSeen: lambda event: storage.set_claim(event.claim),
        VolumeClaimGone: lambda event: storage.drop_claim(event.key),
        VolumeSeen: lambda event: volumes.set_volume(event.volume),
        VolumeGone: lambda event: volumes.drop_volume(event.name),
        StorageClassSeen: lambda event: storage.set_class(event.storage_class),
        StorageClassGone: lambda event: storage.drop_class(event.name),
        FreeStorageSeen: lambda event: storage.set_free(event.free),
        FreeStorageGone: lambda event: storage.drop_free(event.key),
        StorageDriverSeen: lambda event: storage.set_driver(event.name, event.publishes_capacity),
        StorageDriverGone: lambda event: storage.set_driver(event.name, False),
        AttachLimitsSeen: lambda event: volumes.set_attach_limits(event.limits),
        AttachLimitsGone: lambda event: volumes.set_attach_limits(AttachLimits(event.node)),
        AttachmentSeen: lambda event: volumes.set_attachment(event.attachment),
        AttachmentGone: lambda event: volumes.drop_attachment(event.name),
    }
