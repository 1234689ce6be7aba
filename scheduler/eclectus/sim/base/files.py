"""Files of data, plain or compressed as `.gz`: bytes, lines of text, and CSV with a header line."""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar
from zlib import error as ZlibError  # noqa: N812 — the class, by its module's name

import msgspec

from eclectus.model.errors import SettingsError

Row = TypeVar("Row", bound=msgspec.Struct)


def read_data(folder: Path, name: str, setting: str = "file") -> bytes:
    """The contents of a file. Raises SettingsError of the setting that names it."""
    try:
        data = (folder / name).read_bytes()
        return gzip.decompress(data) if name.endswith(".gz") else data
    except (OSError, EOFError, ZlibError) as error:
        raise SettingsError(setting, f"{name} cannot be read: {error}") from error


def read_lines(folder: Path, name: str) -> Iterator[tuple[int, str]]:
    """Numbers and texts of the lines that are not blank, as a stream. Raises SettingsError of `file`."""
    path = folder / name
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SettingsError("file", f"{name} cannot be read: {error}") from error


def read_rows(path: Path, row_type: type[Row]) -> Iterator[tuple[int, Row]]:
    """Line numbers and rows; columns that `row_type` has no field for are ignored.

    A column may be missing if its field has a default. Raises SettingsError of the field `file`, naming the
    line, if another column is missing, a value does not have the field's type, or the file cannot be read.
    """
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            lines = csv.DictReader(file, strict=True)
            columns = list(lines.fieldnames or ())
            for field in msgspec.structs.fields(row_type):
                if field.required and field.name not in columns:
                    have = ", ".join(columns) or "nothing"
                    problem = f"{path.name} has no column {field.name!r}; its first line has {have}"
                    raise SettingsError("file", problem)
            for values in lines:
                yield lines.line_num, _row(path, lines.line_num, values, row_type)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise SettingsError("file", f"{path.name} cannot be read: {error}") from error


def _row(path: Path, number: int, values: dict[str, str], row_type: type[Row]) -> Row:
    if None in values:
        raise row_error(path, number, "has more values than the first line has names")
    try:
        return msgspec.convert(values, row_type, strict=False)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        column = where.rstrip("`")
        found = "missing" if values[column] is None else repr(values[column])
        expected = what.partition(", got")[0].lower()
        raise row_error(path, number, f"{column} is {found}: {expected}") from None


def row_error(path: Path, number: int, problem: str) -> SettingsError:
    """The error to raise for one line of a file."""
    return SettingsError("file", f"{path.name}, line {number}: {problem}")
