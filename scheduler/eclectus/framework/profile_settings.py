"""Settings of a profile that hold whatever its policies are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from eclectus.framework.added_affinity import AddedAffinity
from eclectus.framework.spread_defaults import SpreadDefaults
from eclectus.model.errors import Problems
from eclectus.model.settings import Setting

_NOT_EXTENDED = (
    "is not the name of an extended resource, such as example.com/licence; no other can be ignored"
)
_NO_GROUP = "is not the group of extended resources, such as example.com for example.com/licence"


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """What holds in a profile whatever its policies are."""

    wait_limit: Annotated[
        float | None,
        Setting(
            "the longest time for which a pod waits while a node that may run it has room, whatever the "
            "policies expect of waiting; then it is placed on the fastest node with room. null: no limit",
            why="waits by which pods gain are seconds to minutes, and kube-scheduler also tries every pod "
            "again after five minutes; longer if pods run for hours and nodes differ much in speed",
            unit="s",
            least=1,
        ),
    ] = 300.0
    added_affinity: Annotated[
        AddedAffinity | None,
        Setting(
            "node affinity that every pod of the profile has besides its own, in the form of "
            "spec.affinity.nodeAffinity. null: none",
            why="a profile may use all nodes",
        ),
    ] = None
    topology_spread: Annotated[
        SpreadDefaults,
        Setting(
            "topology spread constraints of pods that state none and that a Service or their ReplicaSet, "
            "StatefulSet or ReplicationController selects, in the form of kube-scheduler's "
            "PodTopologySpreadArgs. System: its soft defaults. List without constraints: none",
            why="as in kube-scheduler: the pods of one Service should not share a node or a zone",
        ),
    ] = field(default_factory=SpreadDefaults)
    ignored_resources: Annotated[
        tuple[str, ...],
        Setting(
            "extended resources that are not compared with what nodes have, such as example.com/licence",
            why="what a pod requests, its node must have; list what another component accounts for",
        ),
    ] = ()
    ignored_resource_groups: Annotated[
        tuple[str, ...],
        Setting(
            "groups of extended resources that are treated alike: example.com is all of example.com/...",
            why="none",
        ),
    ] = ()

    def __post_init__(self) -> None:
        problems = Problems()
        for at, name in enumerate(self.ignored_resources):
            if not is_extended(name):
                problems.add(f"ignoredResources[{at}]", f"{name[:80]!r} {_NOT_EXTENDED}")
        for at, group in enumerate(self.ignored_resource_groups):
            if "/" in group or not is_extended(f"{group}/any"):
                problems.add(f"ignoredResourceGroups[{at}]", f"{group[:80]!r} {_NO_GROUP}")
        problems.raise_any()

    def ignores(self, resource: str) -> bool:
        """Whether a pod may run where there is not enough of this resource."""
        is_listed = resource in self.ignored_resources
        return is_listed or resource.partition("/")[0] in self.ignored_resource_groups


def is_extended(resource: str) -> bool:
    """Whether Kubernetes calls a resource extended: `example.com/name`, of no domain of its own."""
    domain, slash, name = resource.partition("/")
    return bool(domain and slash and name) and "kubernetes.io" not in domain
