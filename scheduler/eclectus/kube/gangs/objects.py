"""The fields of PodGroups that a scheduler reads, and where PodGroups are served.

Two APIs have PodGroups: Kubernetes' own (KEP-4671; since 1.36, behind the feature gate GenericWorkload), and
that of the coscheduling plug-in of kubernetes-sigs/scheduler-plugins, which many job operators use.
"""

from __future__ import annotations

from eclectus.kube.objects import Metadata
from eclectus.kube.placement import ApiObject

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
