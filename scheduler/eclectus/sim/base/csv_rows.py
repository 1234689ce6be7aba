"""Tables in files: comma-separated, a line of column names first, plain or compressed as `.gz`."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from eclectus.model.errors import SettingsError

Row = TypeVar("Row", bound=msgspec.Struct)


def read_rows(path: Path, kind: type[Row]) -> Iterator[tuple[int, Row]]:
    """Number of the line, and what it says in the columns that `kind` has fields for.

    Raises SettingsError of the field `file`, naming the line, where a column is missing, a value is not
    of the field's type, or the file cannot be read.
    """
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            lines = csv.DictReader(file, strict=True)
            _check_columns(path, list(lines.fieldnames or ()), kind)
            for values in lines:
                yield lines.line_num, _row(path, lines.line_num, values, kind)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise SettingsError("file", f"{path.name} cannot be read: {error}") from error


def _check_columns(path: Path, columns: list[str], kind: type[Row]) -> None:
    for field in kind.__struct_fields__:
        if field not in columns:
            have = ", ".join(columns) or "nothing"
            raise SettingsError("file", f"{path.name} has no column {field!r}; its first line has {have}")


def _row(path: Path, number: int, values: dict[str, str], kind: type[Row]) -> Row:
    if None in values:
        raise wrong(path, number, "has more values than the first line has names")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        column = where.rstrip("`")
        said = "missing" if values[column] is None else repr(values[column])
        expected = what.partition(", got")[0].lower()
        raise wrong(path, number, f"{column} is {said}: {expected}") from None


def wrong(path: Path, number: int, problem: str) -> SettingsError:
    """What is wrong with one line, for whoever raises it."""
    return SettingsError("file", f"{path.name}, line {number}: {problem}")
