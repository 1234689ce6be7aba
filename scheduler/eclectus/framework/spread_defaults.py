"""Topology spread constraints of pods that state none, as a profile's file states them.

The spelling is that of kube-scheduler's PodTopologySpreadArgs, and of `spec.topologySpreadConstraints`.
Which pods count is no setting: those that the Services and the controller of a pod select
(engine/pod_specs/default_spread.py).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Literal

from eclectus.feasibility.topology.pod_preferences import HOSTNAME
from eclectus.model.errors import Problems
from eclectus.model.settings import Setting

MAX_CONSTRAINTS = 32  # as many as count of a pod that states them itself
ZONE = "topology.kubernetes.io/zone"

WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
Policy = Literal["Honor", "Ignore"]


@dataclass(frozen=True)
class DefaultConstraint:
    """How unequally the pods of one Service or controller may, or should, be spread over domains."""

    topology_key: str
    max_skew: Annotated[int, Setting("by how many pods a domain may exceed the least one", least=1)]
    when_unsatisfiable: WhenUnsatisfiable
    min_domains: Annotated[
        int | None, Setting("with fewer domains the least count is 0; with DoNotSchedule alone", least=1)
    ] = None
    node_affinity_policy: Policy = "Honor"
    node_taints_policy: Policy = "Ignore"

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
