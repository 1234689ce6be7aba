"""Hard constraints of a pod that no filter implements yet.

Such a pod is reported as unschedulable with the name of the feature; it is never placed in violation of
it. Preferred inter-pod affinity and topology spread with ScheduleAnyway are soft and are ignored for now.
To support a feature, add its filter in feasibility/rules/ and delete its entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from eclectus.kube.objects import PodSpec
from eclectus.kube.placement import Affinity, PodAffinity

_DISKS = {
    "aws_elastic_block_store": "awsElasticBlockStore",
    "azure_disk": "azureDisk",
    "azure_file": "azureFile",
    "cinder": "cinder",
    "gce_persistent_disk": "gcePersistentDisk",
    "iscsi": "iscsi",
    "portworx_volume": "portworxVolume",
    "rbd": "rbd",
    "vsphere_volume": "vsphereVolume",
}


def unsupported(spec: PodSpec) -> tuple[str, ...]:
    """The names of the unsupported features that the pod uses; empty for most pods."""
    found = [name for name, is_used in _FEATURES if is_used(spec)]
    if spec.volumes:
        found.extend(_volumes(spec))
    return tuple(found)


def _required(part: Callable[[Affinity], PodAffinity | None]) -> Callable[[PodSpec], bool]:
    def is_used(spec: PodSpec) -> bool:
        rules = part(spec.affinity) if spec.affinity is not None else None
        return rules is not None and bool(rules.required_during_scheduling_ignored_during_execution)

    return is_used


def _has_hard_spread(spec: PodSpec) -> bool:
    return any(each.when_unsatisfiable != "ScheduleAnyway" for each in spec.topology_spread_constraints)


def _restarts_together(spec: PodSpec) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    )


_FEATURES: tuple[tuple[str, Callable[[PodSpec], bool]], ...] = (
    ("required pod affinity", _required(attrgetter("pod_affinity"))),
    ("required pod anti-affinity", _required(attrgetter("pod_anti_affinity"))),
    ("topology spread with DoNotSchedule", _has_hard_spread),
    ("resource claims", lambda spec: bool(spec.resource_claims)),
    ("pod groups", lambda spec: spec.scheduling_group is not None),
    # Both need nodes that declare the feature (NodeDeclaredFeatures, KEP-5328).
    ("user namespaces on the host network", lambda spec: spec.host_network and spec.host_users is False),
    ("restart rules with RestartAllContainers", _restarts_together),
)


def _volumes(spec: PodSpec) -> Iterator[str]:
    if any(volume.persistent_volume_claim is not None for volume in spec.volumes):
        yield "persistent volume claims"
    if any(volume.ephemeral is not None for volume in spec.volumes):
        yield "generic ephemeral volumes"
    for field, name in _DISKS.items():
        if any(getattr(volume, field) is not None for volume in spec.volumes):
            yield f"{name} volumes"
