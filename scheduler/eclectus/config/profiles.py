"""Profiles and the learner: policy names looked up in the table, their settings read and checked.

Other distributions bring policies by entry points of the group `eclectus.policies`, named `role/name`:

    [project.entry-points."eclectus.policies"]
    "place/lowest-name" = "lowest_name:LowestName"

Entry points are read only where a name is not in the table (policies/table.py), and where policies are
listed. So another distribution costs nothing at the start, and one that is broken stops no configuration that
does not name its policy.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import isabstract
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eclectus import framework
from eclectus.config.settings_reading import camel, join, read, read_mapping, settings_of, show
from eclectus.framework import NEEDS, Learn, Order, Profile, Traits
from eclectus.model.errors import Problems, SettingsError
from eclectus.model.printed import nearest
from eclectus.policies.shared import Chain
from eclectus.policies.table import ROLES, clashes_in

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "eclectus.policies"
_BASES: dict[str, tuple[type[Any], type[Traits]]] = {
    "learn": (Learn, Traits),
    "order": (Order, framework.OrderTraits),
    "place": (framework.Place, framework.PlaceTraits),
    "line": (framework.Line, framework.LineTraits),
    "relieve": (framework.Relieve, framework.RelieveTraits),
    "speculate": (framework.Speculate, framework.SpeculateTraits),
    "hold": (framework.Hold, framework.HoldTraits),
}
_HOOKS: dict[framework.Need, tuple[type[Any], str]] = {
    "binds": (Order, "placed"),
    "task arrivals": (Learn, "arrived"),
    "start times": (Learn, "started"),
    "task ends": (Learn, "left"),
}  # that are called only of policies that need it


class ForeignPolicy(Struct, frozen=True):
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
        base, traits = _BASES[self.role]
        try:
            kind: type[Any] = self.entry.load()
            is_policy = isinstance(kind, type) and issubclass(kind, base) and not isabstract(kind)
            if not (is_policy and is_dataclass(kind)):
                raise SettingsError("", f"is no dataclass with all methods of {base.__name__}")
            policy = kind()
            problem = contradiction(policy, traits)
        except SettingsError:
            raise
        except Exception as error:  # a plug-in's defect must not stop the others
            raise SettingsError("", f"cannot be used: {type(error).__name__}: {error}") from error
        if problem:
            raise SettingsError("", problem)
        return kind


def foreign_policies() -> Iterator[ForeignPolicy]:
    """Those of all installed distributions that are not in the table yet, by role and name."""
    from importlib.metadata import entry_points  # not at the start, which seldom needs it

    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    times = Counter(entry.name for entry in entries)
    for entry in entries:
        role, _, name = entry.name.partition("/")
        kind = ROLES[role].get(name) if role in ROLES else None
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
    if isinstance(traits, framework.OrderTraits) and _overrides(policy, Order, "rank") != traits.ranks_groups:
        return "has a method `rank` and must say `ranks_groups`, or neither"
    return ""


def _overrides(policy: Any, role: type[Any], hook: str) -> bool:
    return isinstance(policy, role) and getattr(type(policy), hook) is not getattr(role, hook)


_DEFAULTS = {
    "order": "fifo",
    "place": "rosella",
    "line": "fifo",
    "relieve": "none",
    "speculate": "none",
    "hold": "none",
}
_SETTINGS = list(settings_of(framework.ProfileSettings))
FIELDS = ["schedulerName", *_DEFAULTS, *_SETTINGS]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


def read_learner(values: object, path: str, required: Mapping[str, object]) -> Learn:
    """The learner; rosella when nothing is said, with the settings that the profiles' policies require.

    Raises SettingsError, also where the file says otherwise than the profiles require.
    """
    said = dict({"policy": "rosella"} if values is None else read_mapping(values, path))
    learner = _named("learn", said, path)
    defaults: dict[str, object] = {camel(each.name): each.default for each in fields(learner)}
    problems = Problems()
    for name, value in required.items():
        if name not in defaults or value == defaults[name]:
            continue
        if said.setdefault(name, value) != value:
            problem = f"{show(said[name])} contradicts the profiles' {name}: {value}; leave it out here"
            problems.add(join(path, name), problem)
    with problems.collected():
        learn: Learn = _read_policy("learn", said, path)
    problems.raise_any()
    return learn


def required_of_learner(profiles: tuple[Profile, ...], path: str) -> dict[str, object]:
    """The settings that the profiles' policies require of the learner, by file spelling.

    Raises SettingsError where two profiles require different values.
    """
    required: dict[str, tuple[object, int]] = {}
    for at, profile in enumerate(profiles):
        for name, value in profile.place.learner_settings.items():
            other, first = required.setdefault(camel(name), (value, at))
            if value != other:
                where = join(join(join(path, at), "place"), camel(name))
                problem = f"{value!r}, but {join(path, first)} has {other!r}, and they share the learner"
                raise SettingsError(where, problem)
    return {name: value for name, (value, _) in required.items()}


def read_profiles(values: object, path: str) -> tuple[Profile, ...]:
    """At least one profile, each with a name of its own."""
    if not isinstance(values, list) or not values:
        raise SettingsError(path, "must be a list of at least one profile")
    problems, profiles = Problems(), []
    names: dict[object, int] = {}
    for at, each in enumerate(values):
        where = join(path, at)
        with problems.collected():
            profiles.append(read_profile(each, where))
        name = each.get("schedulerName") if isinstance(each, dict) else None
        if isinstance(name, str) and names.setdefault(name, at) != at:
            problems.add(join(where, "schedulerName"), f"{name!r} is taken by {join(path, names[name])}")
    problems.raise_any()
    return tuple(profiles)


def read_profile(values: object, path: str) -> Profile:
    """One profile; every role has a default. Raises one SettingsError with all that is wrong."""
    mapping, problems = read_mapping(values, path), Problems()
    for key in mapping:
        if key not in FIELDS:
            problems.add(join(path, key), f"unknown field; {nearest(key, FIELDS)}")

    with problems.collected():
        name = _read_name(mapping.get("schedulerName"), join(path, "schedulerName"))
    policies: dict[str, Any] = {}
    for role, default in _DEFAULTS.items():
        with problems.collected():
            policies[role] = _read_role(role, mapping.get(role), join(path, role), default)
    with problems.collected():
        own = {key: value for key, value in mapping.items() if key in _SETTINGS}
        settings = read(framework.ProfileSettings, own, path)
    problems.raise_any()
    profile = framework.Profile(name, **policies, settings=settings)
    for clash in clashes_in(profile):
        problems.add(join(path, clash.at), clash.problem)
    longest, limit = profile.hold.traits.longest, settings.wait_limit
    if limit is not None and longest >= limit:
        problem = f"waits of {longest:g} s in all, but waitLimit ends every wait after {limit:g} s"
        problems.add(
            join(path, "hold"), f"{problem}; shorten nodeWait or the levels' waits, or raise waitLimit"
        )
    problems.raise_any()
    return profile


def _read_name(value: object, path: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise SettingsError(path, f"must be a name of lower-case letters, digits, - and ., not {show(value)}")
    return value


def _read_role(role: str, values: object, path: str, default: str) -> Any:
    """The policy of a role; of `relieve` also several, each named or with settings."""
    if role != "relieve" or not isinstance(values, list):
        return _read_policy(role, values, path, default)
    if not values:
        raise SettingsError(path, "must name at least one policy")
    named = ({"policy": each} if isinstance(each, str) else each for each in values)
    chain = tuple(_read_policy(role, each, join(path, at)) for at, each in enumerate(named))
    for at, each in enumerate(chain):
        if type(each) in map(type, chain[:at]):
            raise SettingsError(join(path, at), f"{each.title.partition('/')[2]} is named twice")
    return Chain(chain)


def _read_policy(role: str, values: object, path: str, default: str = "") -> Any:
    mapping = read_mapping({"policy": default} if values is None else values, path)
    kind = _named(role, mapping, path)
    own = {key: value for key, value in mapping.items() if key != "policy"}
    return read(kind, own, path, FIELDS, "the profile, beside its policies")


def _named(role: str, mapping: Mapping[str, object], path: str) -> type[Any]:
    """The class of the policy that the mapping names."""
    name, where = mapping.get("policy"), join(path, "policy")
    if name is None:
        raise SettingsError(where, f"must name a policy; known are: {', '.join(sorted(ROLES[role]))}")
    try:
        return policy_class(role, name)
    except SettingsError as error:
        raise error.below(where) from error
