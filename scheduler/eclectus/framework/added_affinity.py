"""Node affinity that a profile adds to every pod of its schedulerName, as its file states it.

The spelling is that of `spec.affinity.nodeAffinity` in pods, and of `addedAffinity` in kube-scheduler's
NodeAffinityArgs, so that terms can be copied between the three.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from eclectus.model.errors import Problems, SettingsError
from eclectus.model.objects import Preference, Requirement, Term
from eclectus.model.settings import Setting

_NAME_FIELD = "metadata.name"  # the only field of a node that terms can name


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
        elif self.operator in ("Gt", "Lt") and not _is_integer(self.values):
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
            if each.key != _NAME_FIELD or each.operator not in ("In", "NotIn") or len(each.values) != 1:
                problem = f"must be {_NAME_FIELD}, In or NotIn, and one value: nodes have no other field"
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

    weight: Annotated[int, Setting("weight beside the preferences of the pod", least=1, most=100)]
    preference: NodeTerm


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


def _is_integer(values: tuple[str, ...]) -> bool:
    return len(values) == 1 and values[0].removeprefix("-").isdecimal()
