"""Settings classes and traits, described for people: spelling, allowed values, default and reasons.

What a policy is to policies of other roles depends on its settings with few choices alone. So a statement
about a policy, for example a trait, can be written as its truth by default, and the settings with which it is
otherwise. A variant of a policy is a combination of such settings.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from itertools import product
from math import inf
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import yaml

from eclectus.config.configuration import in_file
from eclectus.config.settings_reading import camel, settings_of
from eclectus.framework import NEEDS
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting

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


_TYPES = {str: "text", int: "whole number", float: "number", dict: "mapping", tuple: "list"}


@dataclass(frozen=True)
class Described:
    """One setting. `default` is written as in a file; `why` is the reason for it."""

    key: str
    values: str
    default: str
    means: str
    why: str


def described(settings_class: type[Any]) -> Iterator[Described]:
    """The settings of a class, in its order; each must have a default."""
    defaults = {field.name: default_of(field) for field in fields(settings_class)}
    for key, (name, hint, setting) in settings_of(settings_class).items():
        yield Described(
            key=key,
            values=_values(hint, setting),
            default=written(defaults[name], setting),
            means=f"{setting.means[0].upper()}{setting.means[1:]}." if setting else "",
            why=setting.why if setting else "",
        )


def default_of(field: Field[Any]) -> object:
    """The default of a dataclass field that has one."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def traits(kind: type[Any]) -> Iterator[str]:
    """What a policy says of itself: `joins node queues with queue: lines`, `needs images`."""
    for name in (each for each in kind().traits.__struct_fields__ if each != "needs"):
        said = statement(kind, lambda policy, name=name: getattr(policy.traits, name))  # type: ignore[misc]
        if said.by_default or said.otherwise:
            yield name.replace("_", " ") + condition(said)
    for need in NEEDS:
        said = statement(kind, lambda policy, need=need: need in policy.traits.needs)  # type: ignore[misc]
        if said.by_default or said.otherwise:
            yield f"needs {need}{condition(said)}"


def condition(said: Statement) -> str:
    """With which settings it holds: ` with queue: lines`, ` unless …`; empty if with all."""
    settings = [
        f"{key}: {written(value, None)}" for key, values in said.otherwise.items() for value in values
    ]
    *others, last = settings or [""]
    word = "unless" if said.by_default else "with"
    return f" {word} {', '.join(others)}{' or ' if others else ''}{last}" if last else ""


def _values(hint: Any, setting: Setting | None) -> str:
    """The choices, or the bounds with the unit, or the type."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if get_origin(hint) is Literal:
        return " | ".join(get_args(hint))
    origin = dict if is_dataclass(kinds[0]) else get_origin(hint)
    if origin in (dict, tuple):
        return _TYPES[origin]
    if kinds == [bool]:
        return "true | false"
    unit = f" {setting.unit}" if setting and setting.unit else ""
    least, most = (setting.least, setting.most) if setting else (None, None)
    if least is None and most is None:
        return f"{_TYPES[kinds[0]]}{unit}"
    if most is None:
        return f"at least {least:g}{unit}"
    return f"{least:g} to {most:g}{unit}" if least is not None else f"at most {most:g}{unit}"


def written(value: object, setting: Setting | None) -> str:
    """A value as a file has it, on one line."""
    if value == "":
        return '""'
    text = yaml.safe_dump(in_file(value, setting), default_flow_style=True, sort_keys=False, width=inf)
    return str(text).removesuffix("...\n").strip()
