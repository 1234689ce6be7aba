"""Policies that other distributions bring: entry points of the group `eclectus.policies`, named `role/name`.

    [project.entry-points."eclectus.policies"]
    "place/lowest-name" = "lowest_name:LowestName"

Entry points are read only where a name is not in the table (policies/table.py), and where policies are
listed. So another distribution costs nothing at the start, and one that is broken stops no configuration that
does not name its policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from inspect import isabstract
from typing import TYPE_CHECKING, Any

from eclectus.config.settings_reading import nearest, show
from eclectus.framework import (
    NEEDS,
    Learn,
    Line,
    LineTraits,
    Need,
    Order,
    OrderTraits,
    Place,
    PlaceTraits,
    Relieve,
    RelieveTraits,
    Traits,
)
from eclectus.model.errors import SettingsError
from eclectus.policies.table import ROLES

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "eclectus.policies"
_TRAITS: dict[type[Any], type[Traits]] = {
    Learn: Traits, Order: OrderTraits, Place: PlaceTraits, Line: LineTraits, Relieve: RelieveTraits
}  # fmt: skip
_BASES = dict(zip(("learn", "order", "place", "line", "relieve"), _TRAITS, strict=True))
_HOOKS: dict[Need, tuple[type[Any], str]] = {
    "binds": (Order, "placed"),
    "task arrivals": (Learn, "arrived"),
    "start times": (Learn, "started"),
    "task ends": (Learn, "left"),
}  # that are called only of policies that need it


@dataclass(frozen=True)
class ForeignPolicy:
    """A policy of another distribution, not imported yet."""

    role: str
    name: str
    entry: EntryPoint
    is_taken: bool  # whether another one has the same role and name

    @property
    def origin(self) -> str:
        """The distribution, with its version."""
        distribution = self.entry.dist
        return f"{distribution.name} {distribution.version}" if distribution else "an unknown distribution"

    def load(self) -> type[Any]:
        """Import and check its class, and enter it into the table. Raises SettingsError, which names it."""
        try:
            kind = self._checked()
        except SettingsError as error:
            raise SettingsError("", f"{self.role}/{self.name} of {self.origin} {error.problem}") from error
        kind.title = f"{self.role}/{self.name}"
        ROLES[self.role][self.name] = kind
        return kind

    def _checked(self) -> type[Any]:
        if self.role not in ROLES or not self.name:
            raise SettingsError("", f"is not named by a role and a name, such as place/{self.entry.name}")
        if self.is_taken:
            raise SettingsError("", "has the name of another policy")
        try:
            kind: type[Any] = self.entry.load()
            if not _is_whole(kind, _BASES[self.role]):
                raise SettingsError("", f"is no dataclass with all methods of {_BASES[self.role].__name__}")
            policy = kind()
            problem = contradiction(policy, _TRAITS[_BASES[self.role]])
        except SettingsError:
            raise
        except Exception as error:  # a plug-in's defect must not stop the others
            raise SettingsError("", f"cannot be used: {type(error).__name__}: {error}") from error
        if problem:
            raise SettingsError("", problem)
        return kind


def _is_whole(kind: Any, base: type[Any]) -> bool:
    is_policy = isinstance(kind, type) and issubclass(kind, base) and not isabstract(kind)
    return is_policy and is_dataclass(kind)


def foreign_policies() -> Iterator[ForeignPolicy]:
    """Those of all installed distributions that are not in the table yet, by role and name."""
    from importlib.metadata import entry_points  # not at the start, which seldom needs it

    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    times = Counter(entry.name for entry in entries)
    for entry in entries:
        role, _, name = entry.name.partition("/")
        kind = ROLES.get(role, {}).get(name)
        if kind is None or f"{kind.__module__}:{kind.__qualname__}" != entry.value:
            yield ForeignPolicy(role, name, entry, kind is not None or times[entry.name] > 1)


def policy_class(role: str, name: object) -> type[Any]:
    """The class of a policy, of whichever distribution. Raises SettingsError for one that cannot be used."""
    known = ROLES[role]
    if isinstance(name, str) and name in known:
        return known[name]
    foreign = [each for each in foreign_policies() if each.role == role]
    for each in foreign:
        if each.name == name:
            return each.load()
    raise SettingsError("", f"{show(name)} is unknown; {nearest(name, [*known, *(f.name for f in foreign)])}")


def contradiction(policy: Any, kind: type[Traits]) -> str:
    """What a policy says of itself that is not so, by its methods; empty if there is nothing."""
    traits = policy.traits
    if not isinstance(traits, kind):
        return f"has traits of {type(traits).__name__}, not {kind.__name__}"
    if unknown := traits.needs - NEEDS.keys():
        return f"needs what there is not: {', '.join(sorted(unknown))}; known are: {', '.join(NEEDS)}"
    for need, (role, hook) in _HOOKS.items():
        if _overrides(policy, role, hook) != (need in traits.needs):
            return f"has a method `{hook}` and must need {need!r}, or neither"
    if isinstance(traits, OrderTraits) and _overrides(policy, Order, "rank") != traits.ranks_groups:
        return "has a method `rank` and must say `ranks_groups`, or neither"
    return ""


def _overrides(policy: Any, role: type[Any], hook: str) -> bool:
    return isinstance(policy, role) and getattr(type(policy), hook) is not getattr(role, hook)
