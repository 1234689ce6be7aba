"""The features of pods that Eclectus does not support, by name, each with words for users.

REFUSED are hard constraints that no filter implements: a pod that asks for one is reported with the name of
the feature and never placed in violation of it. IGNORED are soft: the pod is placed as if it had not asked,
and a Kubernetes event says so. Documentation and its tests are made from these two tables. To support a
feature, add its rule in feasibility/rules/ and delete its entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from eclectus.kube.objects import PodSpec
from eclectus.kube.placement import PodAffinity, PodAffinityTerm

IsUsed = Callable[[PodSpec], bool]
MAX_POD_RULES = 32
MAX_NAMESPACE_SELECTORS = 8  # of required terms, and of preferred ones: each may name thousands of namespaces
MAX_NAMES = 4  # in a message
MAX_CLAIMS = 256  # no node attaches so many volumes; each is looked for on all nodes


@dataclass(frozen=True)
class Feature:
    """What a user must know of a feature that is not supported.

    `is_used`: whether a pod uses it. `names`: what in the pod uses it, by the names that the pod gives.
    """

    words: str
    is_used: IsUsed
    names: Callable[[PodSpec], tuple[str, ...]] | None = None

    def title(self, name: str, spec: PodSpec) -> str:
        """The name of the feature, with what in this pod uses it."""
        if self.names is None:
            return name
        first, others = self.names(spec)[:MAX_NAMES], self.names(spec)[MAX_NAMES:]
        return f"{name} ({', '.join(first)}{', ...' if others else ''})"


def unsupported(spec: PodSpec) -> tuple[str, ...]:
    """The REFUSED features that the pod uses, as its message names them; empty for most pods."""
    # By parts, because nearly all pods use none: volumes are looked at only where there are some.
    features = REFUSED if spec.volumes else _OF_A_POD
    return tuple(each.title(name, spec) for name, each in features.items() if each.is_used(spec))


def ignored(spec: PodSpec) -> tuple[str, ...]:
    """The names of the IGNORED features that the pod uses; empty for most pods."""
    if spec.affinity is None and not spec.topology_spread_constraints:
        return ()
    return tuple(name for name, each in IGNORED.items() if each.is_used(spec))


def _parts(spec: PodSpec) -> Iterator[PodAffinity]:
    if spec.affinity is not None:
        yield from filter(None, (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity))


def _required(spec: PodSpec) -> Iterator[PodAffinityTerm]:
    for part in _parts(spec):
        yield from part.required_during_scheduling_ignored_during_execution


def _count_preferred(spec: PodSpec) -> int:
    return sum(len(part.preferred_during_scheduling_ignored_during_execution) for part in _parts(spec))


def _spread(spec: PodSpec, *, preferred: bool) -> int:
    constraints = spec.topology_spread_constraints
    return sum((each.when_unsatisfiable == "ScheduleAnyway") == preferred for each in constraints)


def _preferred(spec: PodSpec) -> Iterator[PodAffinityTerm]:
    for part in _parts(spec):
        for each in part.preferred_during_scheduling_ignored_during_execution:
            yield each.pod_affinity_term


def _has_many_selectors(terms: Iterable[PodAffinityTerm]) -> bool:
    selectors = (each.namespace_selector for each in terms if each.namespace_selector is not None)
    count = sum(bool(each.match_labels or each.match_expressions) for each in selectors)
    return count > MAX_NAMESPACE_SELECTORS


def _has_many_claims(spec: PodSpec) -> bool:
    claims = (each for each in spec.volumes if each.persistent_volume_claim or each.ephemeral)
    return sum(1 for _ in claims) > MAX_CLAIMS


def _has_many_pod_rules(spec: PodSpec) -> bool:
    return _spread(spec, preferred=False) + sum(1 for _ in _required(spec)) > MAX_POD_RULES


def _has_many_pod_preferences(spec: PodSpec) -> bool:
    return max(_spread(spec, preferred=True), _count_preferred(spec)) > MAX_POD_RULES


def _restarts_together(spec: PodSpec) -> bool:
    return any(
        rule.action == "RestartAllContainers"
        for container in (*spec.containers, *spec.init_containers)
        for rule in container.restart_policy_rules
    )


def _volume(field: str) -> IsUsed:
    return lambda spec: any(getattr(volume, field) is not None for volume in spec.volumes)


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


def _volumes() -> Iterator[tuple[str, Feature]]:
    for field, name in _DISKS.items():
        yield (
            f"{name} volumes",
            Feature("This type of volume can be limited in number or bound to a zone.", _volume(field)),
        )


_OF_A_POD: Mapping[str, Feature] = {
    f"more than {MAX_POD_RULES} rules about other pods": Feature(
        "Terms of required pod affinity and anti-affinity, and topology spread constraints: each is compared "
        "with every kind of pod that comes.",
        _has_many_pod_rules,
    ),
    f"more than {MAX_NAMESPACE_SELECTORS} required terms with a namespaceSelector": Feature(
        "Each may select thousands of namespaces. One term may list namespaces, or select them by several "
        "values of a label; an empty selector selects all and does not count.",
        lambda spec: _has_many_selectors(_required(spec)),
    ),
    "resource claims": Feature(
        "Devices of Dynamic Resource Allocation are not allocated; extended resources are.",
        lambda spec: bool(spec.resource_claims),
        names=lambda spec: tuple(claim.name for claim in spec.resource_claims),
    ),
    "a group that is no PodGroup": Feature(
        "`spec.workloadRef` of Kubernetes 1.35, or a `spec.schedulingGroup` without `podGroupName`: which "
        "pods must start together is not known.",
        lambda spec: (
            spec.workload_ref is not None
            or (spec.scheduling_group is not None and not spec.scheduling_group.pod_group_name)
        ),
    ),
    # Both need nodes that declare the feature (NodeDeclaredFeatures, KEP-5328).
    "user namespaces on the host network": Feature(
        "Which nodes support it is not known.", lambda spec: spec.host_network and spec.host_users is False
    ),
    "restart rules with RestartAllContainers": Feature(
        "Which nodes support it is not known.", _restarts_together
    ),
}
_VOLUMES = {
    f"more than {MAX_CLAIMS} PersistentVolumeClaims": Feature(
        "Each claim is looked for on all nodes, and no node attaches so many volumes.", _has_many_claims
    ),
    **dict(_volumes()),
}

REFUSED: Mapping[str, Feature] = {**_OF_A_POD, **_VOLUMES}
"""Name -> what it means for the user. A pod that uses one is not placed."""

IGNORED: Mapping[str, Feature] = {
    f"more than {MAX_POD_RULES} preferences about other pods": Feature(
        f"Of preferred terms of pod affinity and anti-affinity the {MAX_POD_RULES} heaviest count, of "
        "topology spread constraints with ScheduleAnyway the first.",
        _has_many_pod_preferences,
    ),
    f"more than {MAX_NAMESPACE_SELECTORS} preferred terms with a namespaceSelector": Feature(
        f"The {MAX_NAMESPACE_SELECTORS} heaviest of them count.",
        lambda spec: _has_many_selectors(_preferred(spec)),
    ),
}
"""Name -> what it means for the user. A pod that uses one is placed, and an event for its class says so."""
