"""Profiles and the learner: policy names looked up in the table, their settings read and checked."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from eclectus.config.reading import join, nearest, read, read_list, read_mapping, show
from eclectus.core.errors import SettingsError
from eclectus.core.seam import Hold, Learn, Profile
from eclectus.policies import table

T = TypeVar("T")

_FIELDS = ["schedulerName", "order", "hold", "place", "line", "relieve"]
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


def read_learner(values: object, path: str) -> Learn:
    """The learner; rosella when nothing is said."""
    return _read_policy(table.LEARN, values, path, default="rosella")


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
    return Profile(
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
