"""What of a file has no counterpart: the notes of fields that fields.py marks so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, get_args, get_origin

from eclectus.config.reading import camel, join
from eclectus.config.upstream.fields import NoCounterpart
from eclectus.model.settings import types_of


@dataclass(frozen=True)
class Note:
    """Something without a counterpart: where it is in the file, why, and what to do."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


def marked(values: Any, path: str) -> Iterator[Note]:
    """The fields of `values`, read by fields.py, that are given and have no counterpart."""
    hints = types_of(type(values))
    for field in fields(values):
        value, where = getattr(values, field.name), join(path, camel(field.name))
        reason = _reason(hints[field.name])
        if value == field.default:
            continue
        if reason is not None and isinstance(value, tuple):
            yield from (Note(join(where, at), reason) for at in range(len(value)))
        elif reason is not None:
            yield Note(where, reason)
        elif is_dataclass(value):
            yield from marked(value, where)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            for at, each in enumerate(value):
                yield from marked(each, join(where, at))


def _reason(hint: Any) -> str | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((each.reason for each in get_args(hint)[1:] if isinstance(each, NoCounterpart)), None)
