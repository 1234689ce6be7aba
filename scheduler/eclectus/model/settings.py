"""Settings are typed fields that explain themselves: meaning, unit, bounds and the reason of the default.

A value of one setting can imply values of others (`Setting.implies`), as `mode: paper` does for Rosella. The
implied settings may then be left out, and must not be given other values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

from eclectus.model.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Setting:
    """What a user must know of one setting; given in the `Annotated` type of a dataclass field."""

    means: str
    why: str = ""  # the reason of the default
    unit: str = ""  # of numbers; "s" fields also accept durations such as 500ms or 2m
    least: float | None = None
    most: float | None = None
    # value of this setting -> name and value of each setting that it implies
    implies: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


def types_of(settings_class: type[Any]) -> Mapping[str, Any]:
    """Name of each field -> its type, with the notes of `Annotated`; evaluated once for a class."""
    return _types_of(cast(Hashable, settings_class))  # mypy does not see that a class is hashable


@cache  # evaluating annotations took most of the time of reading a configuration
def _types_of(settings_class: Hashable) -> Mapping[str, Any]:
    return MappingProxyType(get_type_hints(settings_class, include_extras=True))


def implied_by(settings_class: type[Any], given: Mapping[str, object]) -> dict[str, object]:
    """Name and value of the settings that are implied by those given.

    Raises SettingsError if a given setting contradicts an implied one.
    """
    implied: dict[str, object] = {}
    for name, setting in _settings(settings_class).items():
        for other, value in setting.implies.get(str(given.get(name)), {}).items():
            if given.get(other, value) != value:
                problem = f"{given[other]!r} contradicts {name}: {given[name]}, which makes it {value!r}"
                raise SettingsError(other, f"{problem}; leave out one of the two")
            implied[other] = value
    return implied


def apply_implied(settings: Any) -> None:
    """Set the implied settings of an instance; for the `__post_init__` of a settings class.

    A field with its default value counts as not given, because a dataclass cannot tell the two apart.
    """
    values = {each.name: (getattr(settings, each.name), each.default) for each in fields(settings)}
    given = {name: value for name, (value, default) in values.items() if value != default}
    for name, value in implied_by(type(settings), given).items():
        setattr(settings, name, value)


def _settings(settings_class: type[Any]) -> dict[str, Setting]:
    hints = types_of(settings_class)
    annotations = {
        each.name: get_args(hints[each.name])[1:]
        for each in fields(settings_class)
        if get_origin(hints[each.name]) is Annotated
    }
    return {name: each for name, notes in annotations.items() for each in notes if isinstance(each, Setting)}
