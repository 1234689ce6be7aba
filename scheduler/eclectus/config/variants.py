"""The variants of a policy: every combination of its settings that have few choices.

What a policy is to policies of other roles depends on such settings alone. So a statement about a policy, for
example a trait, can be written as its truth by default, and the settings with which it is otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import product
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from eclectus.config.settings_reading import camel, settings_of
from eclectus.model.errors import SettingsError

P = TypeVar("P")


@dataclass(frozen=True)
class Variant(Generic[P]):
    """A policy with some of its settings, as written in a file: spelling -> value, without defaults."""

    settings: dict[str, Any]
    policy: P


@dataclass(frozen=True)
class Statement:
    """Whether something holds of a policy by default, and the settings with each of which it is otherwise."""

    by_default: bool
    otherwise: Mapping[str, list[Any]]


def variants(kind: type[P]) -> Iterator[Variant[P]]:
    """Every valid combination of the settings with few choices, each once; the first has all defaults.

    Settings with their default value are left out: one setting may contradict the default of another.
    """
    known = settings_of(kind)
    default = {camel(each.name): each.default for each in fields(kind)}  # type: ignore[arg-type]
    choices = {key: found for key, (_, hint, _) in known.items() if (found := _choices(hint))}
    others = {key: [value for value in found if value != default[key]] for key, found in choices.items()}
    for values in product(*([default[key], *found] for key, found in others.items())):
        given = zip(choices, values, strict=True)
        settings = {key: value for key, value in given if value != default[key]}
        try:
            policy = kind(**{known[key][0]: value for key, value in settings.items()})
        except SettingsError:
            continue
        yield Variant(settings, policy)


def statement(kind: type[P], holds: Callable[[P], bool]) -> Statement:
    """When something holds of a policy, in terms of single settings.

    Raises ValueError where it depends on two settings together, which nothing here can write down.
    """
    found = [(each.settings, holds(each.policy)) for each in variants(kind)]
    by_default = holds(kind())
    left = [settings for settings, is_true in found if is_true != by_default]
    kept = [settings for settings, is_true in found if is_true == by_default]
    otherwise: dict[str, list[Any]] = {}
    for key, (_, hint, _) in settings_of(kind).items():
        for value in _choices(hint):
            others = [settings for settings in left if settings.get(key) != value]
            if len(others) < len(left) and all(settings.get(key) != value for settings in kept):
                otherwise.setdefault(key, []).append(value)
                left = others
    if left:
        raise ValueError(f"{kind.__name__}: {left[0]} differs from the default by more than one setting")
    return Statement(by_default, otherwise)


def _choices(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        found = tuple(value for part in get_args(hint) for value in _choices(part))
        return (None, *found) if found else ()
    return (False, True) if hint is bool else ()
