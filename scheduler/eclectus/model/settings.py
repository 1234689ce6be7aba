"""Settings are typed fields that explain themselves: meaning, unit, bounds and the reason of the default.

A value of one setting can imply values of others (`Setting.implies`), as `mode: paper` does for Rosella. The
implied settings may then be left out, and must not be given other values.
"""

from collections.abc import Hashable, Mapping
from copy import copy
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeVar, cast, get_type_hints

from eclectus.model.errors import SettingsError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Setting:
    """What a user must know of one setting."""

    means: str
    why: str = ""  # the reason of the default
    unit: str = ""  # of numbers; "s" fields also accept durations such as 500ms or 2m
    least: float | None = None
    most: float | None = None
    # value of this setting -> name and value of each setting that it implies
    implies: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


REQUIRED: Any = MISSING  # the default of a setting that must be given


def setting(
    default: T,
    means: str | Setting,
    why: str = "",
    *,
    unit: str = "",
    least: float | None = None,
    most: float | None = None,
    implies: Mapping[str, Mapping[str, object]] | None = None,
) -> T:
    """A dataclass field that is a setting: its default, and the fields of its Setting or the whole of it.

    Each instance gets a copy of a default that can change, such as a dict.
    """
    about = means if isinstance(means, Setting) else Setting(means, why, unit, least, most, implies or {})
    if type(default).__hash__ is None:
        return field(default_factory=partial(copy, default), metadata={Setting: about})
    return field(default=default, metadata={Setting: about})


def types_of(settings_class: type[Any]) -> Mapping[str, Any]:
    """Name of each field -> its type; evaluated once for a class."""
    return _types_of(cast(Hashable, settings_class))  # mypy does not see that a class is hashable


@cache  # evaluating annotations took most of the time of reading a configuration
def _types_of(settings_class: Hashable) -> Mapping[str, Any]:
    return MappingProxyType(get_type_hints(settings_class))


def implied_by(settings_class: type[Any], given: Mapping[str, object]) -> dict[str, object]:
    """Name and value of the settings that are implied by those given.

    Raises SettingsError if a given setting contradicts an implied one.
    """
    implied: dict[str, object] = {}
    for name, about in ((each.name, each.metadata.get(Setting)) for each in fields(settings_class)):
        for other, value in about.implies.get(str(given.get(name)), {}).items() if about else ():
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
