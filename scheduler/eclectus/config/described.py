"""Settings classes and traits, described for people: spelling, allowed values, default and reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin

from eclectus.config.effective import duration
from eclectus.config.settings_reading import camel, settings_of
from eclectus.config.variants import Statement, statement
from eclectus.framework import NEEDS
from eclectus.model.settings import Setting

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
            means=_sentence(setting.means) if setting else "",
            why=setting.why if setting else "",
        )


def default_of(field: Field[Any]) -> object:
    """The default of a dataclass field that has one."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def summary(settings_class: type[Any]) -> str:
    """The first paragraph of the class's docstring, on one line."""
    return " ".join((settings_class.__doc__ or "").strip().split("\n\n")[0].split())


def implications(settings_class: type[Any]) -> Iterator[str]:
    """`mode: paper implies view: sample, …` for each value that implies others."""
    known = settings_of(settings_class)
    for key, (_, _, setting) in known.items():
        for value, implied in (setting.implies if setting else {}).items():
            settings = (
                (camel(name), written(other, known[camel(name)][2])) for name, other in implied.items()
            )
            spelled = ", ".join(f"`{name}: {other}`" for name, other in settings)
            yield f"`{key}: {value}` implies {spelled}."


def traits(kind: type[Any]) -> Iterator[str]:
    """What a policy says of itself: `joins node queues with queue: lines`, `needs images`."""
    for name in (each.name for each in fields(kind().traits) if each.name != "needs"):
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
    if value is None:
        return "null"
    if isinstance(value, str):
        return value or '""'
    if isinstance(value, float) and setting is not None and setting.unit == "s":
        return str(duration(value))
    if isinstance(value, tuple):
        return f"[{', '.join(written(each, setting) for each in value)}]"
    if is_dataclass(value):
        value = {camel(each.name): getattr(value, each.name) for each in fields(value)}
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {written(each, setting)}' for key, each in value.items())}}}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
