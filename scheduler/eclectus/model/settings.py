"""Settings are typed fields that explain themselves: meaning, unit, bounds and the reason of the default.

A choice may stand for several settings at once (`fixes`): whoever makes it need not say them, and may not
say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from eclectus.model.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Setting:
    """What a user must know of one setting; stands in the `Annotated` type of a dataclass field."""

    means: str
    why: str = ""  # the reason of the default
    unit: str = ""  # of numbers; "s" fields also accept durations such as 500ms or 2m
    least: float | None = None
    most: float | None = None
    implies: Mapping[str, Mapping[str, object]] = field(default_factory=dict)  # by choice: field -> value


def implied_by(kind: type[Any], given: Mapping[str, object]) -> dict[str, object]:
    """What the choices among `given` fix of other settings.

    Raises SettingsError where `given` says otherwise.
    """
    found: dict[str, object] = {}
    for name, setting in _settings(kind).items():
        for other, value in setting.implies.get(str(given.get(name)), {}).items():
            if given.get(other, value) != value:
                problem = f"{given[other]!r} contradicts {name}: {given[name]}, which makes it {value!r}"
                raise SettingsError(other, f"{problem}; leave out one of the two")
            found[other] = value
    return found


def apply_implied(settings: Any) -> None:
    """Set what choices fix, in an instance; for the `__post_init__` of a settings class."""
    said = {each.name: getattr(settings, each.name) for each in fields(settings)}
    given = {each.name: said[each.name] for each in fields(settings) if said[each.name] != each.default}
    for name, value in implied_by(type(settings), given).items():
        setattr(settings, name, value)


def _settings(kind: type[Any]) -> dict[str, Setting]:
    hints = get_type_hints(kind, include_extras=True)
    notes = {
        each.name: get_args(hints[each.name])[1:]
        for each in fields(kind)
        if get_origin(hints[each.name]) is Annotated
    }
    return {name: note for name, several in notes.items() for note in several if isinstance(note, Setting)}
