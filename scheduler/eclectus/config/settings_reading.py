"""From files of YAML to typed settings, with an error for every unknown field, wrong type or bound.

Files are read strictly: duplicate keys and every failure of the parser become a SettingsError.

A settings class is a dataclass whose fields are made by `setting`. Files spell the fields in camelCase, as
Kubernetes does. Seconds may be written as numbers or as durations: 250ms, 15s, 2m.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from math import isfinite
from pathlib import Path
from reprlib import Repr
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import yaml

from eclectus.model.errors import Problems, SettingsError
from eclectus.model.printed import nearest
from eclectus.model.settings import Setting, implied_by, types_of

T = TypeVar("T")

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SHORT = Repr()  # bounded, because YAML aliases can expand a short file to a huge value
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict, _SHORT.maxstring, _SHORT.maxother = 2, 4, 4, 60, 60
_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def camel(name: str) -> str:
    """A field name as files spell it: `leaseDuration` for `lease_duration`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def join(path: str, key: str | int) -> str:
    """The path of a field within `path`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def settings_of(kind: type[Any]) -> dict[str, tuple[str, Any, Setting | None]]:
    """Spelling in files -> (field name, type, Setting) of a settings class."""
    hints = types_of(kind)
    return {
        camel(each.name): (each.name, hints[each.name], each.metadata.get(Setting))
        for each in fields(kind)
        if each.init
    }


def read(kind: type[T], values: object, path: str, outside: Sequence[str] = (), where: str = "") -> T:
    """An instance of the settings class `kind` from a mapping; missing fields keep their defaults.

    `outside` and `where` are those of `nearest`. Raises SettingsError with every wrong field, the paths
    beginning with `path`. What fields must have in common is checked once each of them is valid.
    """
    mapping = read_mapping(values, path)
    known = settings_of(kind)
    given: dict[str, Any] = {}
    problems = Problems()
    for key, value in mapping.items():
        if key not in known:
            problems.add(join(path, key), f"unknown field; {nearest(key, list(known), outside, where)}")
            continue
        name, hint, setting = known[key]
        with problems.collected():
            given[name] = read_value(hint, setting, value, join(path, key))
    for field in fields(kind):  # type: ignore[arg-type]
        is_given = camel(field.name) in mapping
        if field.init and not is_given and field.default is field.default_factory is MISSING:
            problems.add(join(path, camel(field.name)), "is missing; it has no default")
    problems.raise_any()
    try:
        return kind(
            **given, **{name: value for name, value in implied_by(kind, given).items() if name not in given}
        )
    except SettingsError as error:
        raise error.moved(camel).below(path) from None


def read_mapping(values: object, path: str) -> dict[str, Any]:
    """A mapping with text keys; None counts as an empty mapping. Raises SettingsError."""
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise SettingsError(path, f"must be a mapping of fields, not {show(values)}")
    return values


def read_list(values: object, path: str) -> list[object]:
    """A list; None counts as an empty list. Raises SettingsError."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise SettingsError(path, f"must be a list, not {show(values)}")
    return values


def read_value(hint: Any, setting: Setting | None, value: object, path: str) -> Any:
    """One value of the type `hint`, within the bounds of its Setting. Raises SettingsError."""
    origin, choices = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        part = next(choice for choice in choices if choice is not type(None))
        is_none = value is None and type(None) in choices
        return None if is_none else read_value(part, setting, value, path)
    if origin is Literal:
        if not isinstance(value, str) or value not in choices:
            raise SettingsError(path, f"{show(value)} is unknown; {nearest(value, list(choices))}")
        return value
    if origin in (tuple, dict):
        return _collection(origin, choices, setting, value, path)
    if is_dataclass(hint):
        return read(hint, value, path)  # type: ignore[arg-type]
    if hint in (int, float):
        return _number(hint, setting, value, path)
    if not isinstance(value, hint):
        called = {bool: "true or false", str: "text", object: "anything"}[hint]
        raise SettingsError(path, f"must be {called}, not {show(value)}")
    return value


def _collection(kind: Any, parts: tuple[Any, ...], setting: Setting | None, values: object, path: str) -> Any:
    """A tuple from a list or a dict from a mapping; each value is read like a single one."""
    problems, found = Problems(), {}
    items = dict(enumerate(read_list(values, path))) if kind is tuple else read_mapping(values, path)
    names = list(get_args(parts[0])) if kind is dict else []  # of keys that are a Literal
    for key, each in items.items():
        if names and key not in names:
            problems.add(join(path, key), f"unknown field; {nearest(key, names)}")
            continue
        with problems.collected():
            found[key] = read_value(parts[0 if kind is tuple else 1], setting, each, join(path, key))
    problems.raise_any()
    return tuple(found.values()) if kind is tuple else found


def _number(kind: type[Any], setting: Setting | None, value: object, path: str) -> float:
    unit = setting.unit if setting else ""
    if unit == "s" and isinstance(value, str):
        value = seconds(value, path)
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        what = "a duration such as 15s or 250ms" if unit == "s" else "a number"
        raise SettingsError(path, f"must be {what}, not {show(value)}")
    if kind is int and value != int(value):
        raise SettingsError(path, f"must be a whole number, not {show(value)}")
    least, most = (setting.least, setting.most) if setting else (None, None)
    with_unit = f" {unit}" if unit else ""
    if least is not None and value < least:
        raise SettingsError(path, f"{value:g}{with_unit} is too small; at least {least:g}{with_unit}")
    if most is not None and value > most:
        raise SettingsError(path, f"{value:g}{with_unit} is too large; at most {most:g}{with_unit}")
    return kind(value)  # type: ignore[no-any-return]


def seconds(text: str, path: str) -> float:
    """A duration such as 250ms or 1h30m, seconds. Raises SettingsError."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise SettingsError(path, f"{text!r} is not a duration; write 15s, 250ms, 2m or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def show(value: object) -> str:
    """A value for an error message, at most 60 characters."""
    text = _SHORT.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _finite(number: float) -> bool:
    try:
        return isfinite(number)
    except OverflowError:  # an integer beyond the range of floats
        return False


MAX_BYTES = 1 << 20  # of a file


class _StrictLoader(yaml.SafeLoader):
    """YAML 1.1 without tags that records duplicate keys; PyYAML would silently drop the first value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.problems = Problems()

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    line = f"line {key.start_mark.line + 1}"
                    self.problems.add(line, f"duplicate key {key.value!r}; remove one of the two")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_file(path: Path) -> str:
    """The text of a file. Raises SettingsError, without the file's name."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError("", f"is larger than {MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("", f"cannot be read: {error}") from error


def read_yaml(text: str) -> object:
    """The values of one YAML document. Raises SettingsError, with the line if it is known."""
    value, problems = read_with_duplicates(text)
    problems.raise_any()
    return value


def read_with_duplicates(text: str) -> tuple[object, Problems]:
    """The same; duplicate keys are problems beside the values, of which the last one counts."""
    with _loader(text) as loader:
        return loader.get_single_data(), loader.problems


def read_documents(text: str) -> list[object]:
    """The values of every document of a stream, None for an empty one. Raises SettingsError likewise."""
    documents = []
    with _loader(text) as loader:
        while loader.check_data():  # type: ignore[no-untyped-call]
            documents.append(loader.get_data())
    loader.problems.raise_any()
    return documents


@contextmanager
def _loader(text: str) -> Iterator[_StrictLoader]:
    """A loader of the text, disposed of at the end. Raises SettingsError for the parser's errors."""
    try:
        loader = _StrictLoader(text)
        try:
            yield loader
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError) as error:  # a date such as 2026-99-99 is a ValueError
        raise SettingsError("", f"is not valid YAML: {error}") from error
    except RecursionError as error:
        raise SettingsError("", "is not valid YAML: nested too deeply") from error
