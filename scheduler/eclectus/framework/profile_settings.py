"""Settings of a profile that hold whatever its policies are.

Node affinity that it adds to all of its pods is spelled as `spec.affinity.nodeAffinity` in pods, and as
`addedAffinity` in kube-scheduler's NodeAffinityArgs; default topology spread as in PodTopologySpreadArgs, and
as `spec.topologySpreadConstraints`. So both can be copied. Which pods count for default spread is no setting:
those that the Services and the controller of a pod select (engine/pod_specs/default_spread.py).
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from eclectus.feasibility.rules.nodes import NAME_FIELD
from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.model.errors import Problems, SettingsError
from eclectus.model.objects import Preference, Requirement, Term
from eclectus.model.settings import REQUIRED, setting


@dataclass(frozen=True)
class NodeRequirement:
    """One expression on a label or field of nodes."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.operator in ("Exists", "DoesNotExist"):
            if self.values:
                raise SettingsError("values", f"must be left out with operator {self.operator}")
        elif not self.values:
            raise SettingsError("values", f"needs a value with operator {self.operator}")
        elif self.operator in ("Gt", "Lt") and (
            len(self.values) != 1 or not self.values[0].removeprefix("-").isdecimal()
        ):
            raise SettingsError("values", f"needs exactly one whole number with operator {self.operator}")

    @property
    def requirement(self) -> Requirement:
        """The same in the model."""
        return Requirement(self.key, self.operator, self.values)


@dataclass(frozen=True)
class NodeTerm:
    """A node selector term: all of its expressions and fields must hold."""

    match_expressions: tuple[NodeRequirement, ...] = ()
    match_fields: tuple[NodeRequirement, ...] = ()

    def __post_init__(self) -> None:
        problems = Problems()
        if not self.match_expressions and not self.match_fields:
            problems.add("", "is empty, and an empty term holds on no node; leave it out")
        for at, each in enumerate(self.match_fields):
            if each.key != NAME_FIELD or each.operator not in ("In", "NotIn") or len(each.values) != 1:
                problem = f"must be {NAME_FIELD}, In or NotIn, and one value: nodes have no other field"
                problems.add(f"matchFields[{at}]", problem)
        problems.raise_any()

    @property
    def term(self) -> Term:
        """The same in the model."""
        return Term(
            tuple(each.requirement for each in self.match_expressions),
            tuple(each.requirement for each in self.match_fields),
        )


@dataclass(frozen=True)
class RequiredNodes:
    """At least one of the terms must hold on a node."""

    node_selector_terms: tuple[NodeTerm, ...]

    def __post_init__(self) -> None:
        if not self.node_selector_terms:
            raise SettingsError("nodeSelectorTerms", "needs a term; without any no node would do")


@dataclass(frozen=True)
class PreferredNodes:
    """A term that should hold, and how much it counts beside others."""

    weight: int = setting(REQUIRED, "weight beside the preferences of the pod", least=1, most=100)
    preference: NodeTerm = REQUIRED


@dataclass(frozen=True)
class AddedAffinity:
    """Node affinity of every pod of the profile, besides its own."""

    required_during_scheduling_ignored_during_execution: RequiredNodes | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredNodes, ...] = ()

    @property
    def required(self) -> tuple[Term, ...] | None:
        """At least one of these terms must hold; None if nothing is required."""
        required = self.required_during_scheduling_ignored_during_execution
        return None if required is None else tuple(each.term for each in required.node_selector_terms)

    @property
    def preferred(self) -> tuple[Preference, ...]:
        """The terms that should hold."""
        return tuple(
            Preference(each.weight, each.preference.term)
            for each in self.preferred_during_scheduling_ignored_during_execution
        )


MAX_CONSTRAINTS = 32  # as many as count of a pod that states them itself
ZONE = "topology.kubernetes.io/zone"

WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
NodePolicy = Literal["Honor", "Ignore"]


@dataclass(frozen=True)
class DefaultConstraint:
    """How unequally the pods of one Service or controller may, or should, be spread over domains."""

    topology_key: str
    max_skew: int = setting(REQUIRED, "by how many pods a domain may exceed the least one", least=1)
    when_unsatisfiable: WhenUnsatisfiable = REQUIRED
    min_domains: int | None = setting(
        None, "with fewer domains the least count is 0; with DoNotSchedule alone", least=1
    )
    node_affinity_policy: NodePolicy = "Honor"
    node_taints_policy: NodePolicy = "Ignore"

    def __post_init__(self) -> None:
        problems = Problems()
        if not self.topology_key:
            problems.add("topologyKey", "must name a label of nodes")
        if self.min_domains is not None and self.when_unsatisfiable != "DoNotSchedule":
            problems.add("minDomains", "needs whenUnsatisfiable: DoNotSchedule")
        problems.raise_any()


SYSTEM_CONSTRAINTS = (
    DefaultConstraint(HOSTNAME, 3, "ScheduleAnyway"),
    DefaultConstraint(ZONE, 5, "ScheduleAnyway"),
)
"""kube-scheduler's own. Unlike others they count nodes that lack one of the two labels, for the other one."""


@dataclass(frozen=True)
class SpreadDefaults:
    """The constraints of pods that state none and that a Service or their controller selects."""

    defaulting_type: Literal["System", "List"] = "System"
    default_constraints: tuple[DefaultConstraint, ...] = ()

    def __post_init__(self) -> None:
        problems, given = Problems(), self.default_constraints
        if given and self.is_system:
            problems.add("defaultConstraints", "needs defaultingType: List; leave it out with System")
        if len(given) > MAX_CONSTRAINTS:
            problems.add("defaultConstraints", f"has {len(given)} constraints; at most {MAX_CONSTRAINTS}")
        stated = Counter((each.topology_key, each.when_unsatisfiable) for each in given)
        for (key, when), times in stated.items():
            if times > 1:
                problem = f"has {times} constraints with {when} on {key}; at most one"
                problems.add("defaultConstraints", problem)
        problems.raise_any()

    @property
    def is_system(self) -> bool:
        """Whether they are kube-scheduler's own."""
        return self.defaulting_type == "System"

    @property
    def constraints(self) -> tuple[DefaultConstraint, ...]:
        """What holds; empty: pods that state no constraints are not spread."""
        return SYSTEM_CONSTRAINTS if self.is_system else self.default_constraints


_NOT_EXTENDED = (
    "is not the name of an extended resource, such as example.com/licence; no other can be ignored"
)
_NO_GROUP = "is not the group of extended resources, such as example.com for example.com/licence"


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """What holds in a profile whatever its policies are."""

    wait_limit: float | None = setting(
        300.0,
        "the longest time for which a pod waits while a node that may run it has room, whatever the "
        "policies expect of waiting; then it is placed on the fastest node with room. null: no limit",
        why="waits by which pods gain are seconds to minutes, and kube-scheduler also tries every pod "
        "again after five minutes; longer if pods run for hours and nodes differ much in speed",
        unit="s",
        least=1,
    )
    added_affinity: AddedAffinity | None = setting(
        None,
        "node affinity that every pod of the profile has besides its own, in the form of "
        "spec.affinity.nodeAffinity. null: none",
        why="a profile may use all nodes",
    )
    topology_spread: SpreadDefaults = setting(
        SpreadDefaults(),
        "topology spread constraints of pods that state none and that a Service or their ReplicaSet, "
        "StatefulSet or ReplicationController selects, in the form of kube-scheduler's "
        "PodTopologySpreadArgs. System: its soft defaults. List without constraints: none",
        why="as in kube-scheduler: the pods of one Service should not share a node or a zone",
    )
    ignored_resources: tuple[str, ...] = setting(
        (),
        "extended resources that are not compared with what nodes have, such as example.com/licence",
        why="what a pod requests, its node must have; list what another component accounts for",
    )
    ignored_resource_groups: tuple[str, ...] = setting(
        (),
        "groups of extended resources that are treated alike: example.com is all of example.com/...",
        why="none",
    )

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
