"""Profiles and the learner: policy names looked up in the table, their settings read and checked."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from eclectus.config.reading import join, nearest, read, read_list, read_mapping, show
from eclectus.framework import Hold, Learn, Profile
from eclectus.model.errors import SettingsError
from eclectus.policies import table
from eclectus.policies.rosella import Rosella

T = TypeVar("T")
OWN = "eclectus"  # the mode of Rosella that is not the paper's

_FIELDS = ["schedulerName", "order", "hold", "place", "line", "relieve"]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


def read_learner(values: object, path: str, mode: str) -> Learn:
    """The learner; rosella when nothing is said, in the mode of the profiles."""
    said = {"policy": "rosella"} if values is None else read_mapping(values, path)
    if mode != OWN and said.get("policy") == "rosella":
        if said.get("mode", mode) != mode:
            problem = f"{show(said['mode'])} contradicts the profiles' mode: {mode}; leave it out here"
            raise SettingsError(join(path, "mode"), problem)
        said = {**said, "mode": mode}
    return _read_policy(table.LEARN, said, path)


def read_mode(profiles: tuple[Profile, ...], path: str) -> str:
    """The one mode of all profiles that place by learned speeds, since they share the learner."""
    modes = {at: each.place.mode for at, each in enumerate(profiles) if isinstance(each.place, Rosella)}
    for at, mode in modes.items():
        first = next(iter(modes))
        if mode != modes[first]:
            where = join(join(join(path, at), "place"), "mode")
            other = join(path, first)
            raise SettingsError(
                where, f"{mode!r}, but {other} has {modes[first]!r}, and they share the learner"
            )
    return next(iter(modes.values()), OWN)


def read_profiles(values: object, path: str) -> tuple[Profile, ...]:
    """At least one profile, each with a name of its own."""
    if not isinstance(values, list) or not values:
        raise SettingsError(path, "must be a list of at least one profile")
    profiles = tuple(read_profile(profile, join(path, at)) for at, profile in enumerate(values))
    names: dict[str, int] = {}
    for at, profile in enumerate(profiles):
        first = names.setdefault(profile.scheduler_name, at)
        if first != at:
            where = join(join(path, at), "schedulerName")
            raise SettingsError(where, f"{profile.scheduler_name!r} is taken by {join(path, first)}")
    return profiles


def read_profile(values: object, path: str) -> Profile:
    """One profile; every role but hold and relieve has a default."""
    mapping = read_mapping(values, path)
    for key in mapping:
        if key not in _FIELDS:
            raise SettingsError(join(path, key), f"unknown field; {nearest(key, _FIELDS)}")
    profile = Profile(
        scheduler_name=_read_name(mapping.get("schedulerName"), join(path, "schedulerName")),
        order=_read_policy(table.ORDER, mapping.get("order"), join(path, "order"), default="fifo"),
        place=_read_policy(table.PLACE, mapping.get("place"), join(path, "place"), default="rosella"),
        line=_read_policy(table.LINE, mapping.get("line"), join(path, "line"), default="fifo"),
        hold=_read_hold(mapping.get("hold"), join(path, "hold")),
        relieve=tuple(
            _read_policy(table.RELIEVE, policy, join(join(path, "relieve"), at))
            for at, policy in enumerate(read_list(mapping.get("relieve"), join(path, "relieve")))
        ),
    )
    if isinstance(profile.place, Rosella) and profile.place.mode != OWN and not profile.line.first_come:
        problem = f"contradicts place's mode: {profile.place.mode}, whose lines are first come, first served"
        raise SettingsError(join(path, "line"), f"{problem}; leave it out")
    return profile


def _read_hold(values: object, path: str) -> Hold | None:
    return None if values is None else _read_policy(table.HOLD, values, path)


def _read_name(value: object, path: str) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise SettingsError(path, f"must be a name of lower-case letters, digits, - and ., not {show(value)}")
    return value


def _read_policy(policies: dict[str, type[T]], values: object, path: str, default: str = "") -> T:
    mapping: dict[str, Any] = dict(read_mapping({"policy": default} if values is None else values, path))
    name = mapping.pop("policy", None)
    where = join(path, "policy")
    if name is None:
        raise SettingsError(where, f"must name a policy; known are: {', '.join(sorted(policies)) or 'none'}")
    if not isinstance(name, str) or name not in policies:
        raise SettingsError(where, f"{show(name)} is unknown; {nearest(name, list(policies))}")
    return read(policies[name], mapping, path)
