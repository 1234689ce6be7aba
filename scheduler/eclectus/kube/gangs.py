"""PodGroups of the API as gangs of the model, and the PodGroup that a pod names.

Two APIs have PodGroups: Kubernetes' own (KEP-4671; since 1.36, behind the feature gate GenericWorkload),
and that of the coscheduling plug-in of kubernetes-sigs/scheduler-plugins, which many job operators use.
"""

from __future__ import annotations

from msgspec import Raw
from msgspec.json import Decoder

from eclectus.kube.decoding import decode
from eclectus.kube.objects import Metadata, Pod
from eclectus.kube.placement import ApiObject
from eclectus.model.gangs import Gang, GangKey

KUBERNETES, COSCHEDULING = "scheduling.k8s.io", "scheduling.x-k8s.io"  # groups of the two APIs
KUBERNETES_VERSIONS = ("v1", "v1beta1", "v1alpha3", "v1alpha2")  # newest first; one or more are served
COSCHEDULING_VERSIONS = ("v1alpha1",)
POD_GROUPS = "podgroups"

COSCHEDULING_LABEL = f"{COSCHEDULING}/pod-group"  # of a pod: the name of its PodGroup


class GangPolicy(ApiObject, frozen=True):
    """spec.schedulingPolicy.gang."""

    min_count: int


class SchedulingPolicy(ApiObject, frozen=True):
    """spec.schedulingPolicy; without `gang` it is the basic policy: each pod starts by itself."""

    gang: GangPolicy | None = None


class PodGroupSpec(ApiObject, frozen=True):
    """spec of Kubernetes' PodGroup."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(ApiObject, frozen=True):
    """scheduling.k8s.io PodGroup."""

    metadata: Metadata
    spec: PodGroupSpec = PodGroupSpec()


class CoschedulingSpec(ApiObject, frozen=True):
    """spec of coscheduling's PodGroup."""

    min_member: int = 1


class CoschedulingPodGroup(ApiObject, frozen=True):
    """scheduling.x-k8s.io/v1alpha1 PodGroup."""

    metadata: Metadata
    spec: CoschedulingSpec = CoschedulingSpec()


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
