"""PodGroups of the API as gangs of the model, and the PodGroup that a pod names."""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import Decoder

from eclectus.kube.decoding import decode
from eclectus.kube.gangs.objects import (
    COSCHEDULING,
    COSCHEDULING_LABEL,
    KUBERNETES,
    CoschedulingPodGroup,
    PodGroup,
)
from eclectus.kube.objects import Metadata, Pod
from eclectus.model.gangs import Gang, GangKey

POD_GROUP = "PodGroup"


def gang_key_of(pod: Pod) -> GangKey | None:
    """The PodGroup that the pod names; None for most pods. Its field counts more than the label."""
    meta, group = pod.metadata, pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return GangKey(KUBERNETES, meta.namespace, group.pod_group_name)
    label = meta.labels.get(COSCHEDULING_LABEL)
    return GangKey(COSCHEDULING, meta.namespace, label) if label else None


def gang_from(raw: bytes | Raw) -> tuple[Gang, str]:
    """Kubernetes' PodGroup and its resourceVersion. Raises MalformedError naming object and field."""
    group = decode(_POD_GROUP, POD_GROUP, raw)
    policy = group.spec.scheduling_policy.gang
    return _gang(KUBERNETES, group.metadata, 1 if policy is None else policy.min_count)


def coscheduling_gang_from(raw: bytes | Raw) -> tuple[Gang, str]:
    """Coscheduling's PodGroup and its resourceVersion. Raises MalformedError naming object and field."""
    group = decode(_COSCHEDULING_POD_GROUP, POD_GROUP, raw)
    return _gang(COSCHEDULING, group.metadata, group.spec.min_member)


def _gang(api: str, meta: Metadata, min_count: int) -> tuple[Gang, str]:
    return Gang(GangKey(api, meta.namespace, meta.name), min_count), meta.resource_version


_POD_GROUP, _COSCHEDULING_POD_GROUP = Decoder(PodGroup), Decoder(CoschedulingPodGroup)
