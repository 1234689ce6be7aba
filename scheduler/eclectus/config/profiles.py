"""Profiles and the learner: policy names looked up in the table, their settings read and checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from eclectus.config.foreign_policies import policy_class
from eclectus.config.settings_reading import camel, join, nearest, read, read_mapping, settings_of, show
from eclectus.framework import Learn, Profile, ProfileSettings
from eclectus.model.errors import Problems, SettingsError
from eclectus.policies.table import ROLES, clashes_in

_SETTINGS = list(settings_of(ProfileSettings))
FIELDS = ["schedulerName", "order", "place", "line", "relieve", *_SETTINGS]
_NOT_BUILT = ["hold"]  # a role that docs/proposals describe and no policy plays yet
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
        if key in _NOT_BUILT:
            problems.add(join(path, key), "no policy plays this role yet; leave it out")
        elif key not in FIELDS:
            problems.add(join(path, key), f"unknown field; {nearest(key, FIELDS)}")

    def policy(role: str, default: str) -> Any:
        return _read_policy(role, mapping.get(role), join(path, role), default)

    with problems.collected():
        name = _read_name(mapping.get("schedulerName"), join(path, "schedulerName"))
    with problems.collected():
        order = policy("order", "fifo")
    with problems.collected():
        place = policy("place", "rosella")
    with problems.collected():
        line = policy("line", "fifo")
    with problems.collected():
        relieve = policy("relieve", "none")
    with problems.collected():
        own = {key: value for key, value in mapping.items() if key in _SETTINGS}
        settings = read(ProfileSettings, own, path)
    problems.raise_any()
    profile = Profile(name, order, place, line, relieve, settings)
    for clash in clashes_in(profile):
        problems.add(join(path, clash.at), clash.problem)
    problems.raise_any()
    return profile


def _read_name(value: object, path: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise SettingsError(path, f"must be a name of lower-case letters, digits, - and ., not {show(value)}")
    return value


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
