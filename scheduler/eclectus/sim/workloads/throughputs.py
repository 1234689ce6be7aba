"""Tables of throughputs in Gavel's format: how fast each type of job runs on each type of GPU.

    {"v100": {"('A3C', 1)": {"null": 7.18, ...}, ...}, ...}

One mapping a type of GPU; a key of it is a type of job and a number of GPUs; below "null" stands the rate
when the job runs alone, in iterations a second, and 0 where it cannot run. Rates beside other jobs, and
of several GPUs, are passed over.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from zlib import error as ZlibError  # noqa: N812 — the class, by its module's name

import msgspec
from msgspec import Meta, Struct

from eclectus.config.reading import nearest
from eclectus.model.errors import SettingsError

Rates = dict[str, float]
"""Type of job -> iterations a second, alone on one GPU of a type."""


class _Entry(Struct, frozen=True):
    null: Annotated[float, Meta(ge=0)]


class Throughputs:
    """One file."""

    def __init__(self, path: Path, job_types: tuple[str, ...]) -> None:
        """Raises SettingsError where the file cannot be read or is no such table."""
        self._path, self._job_types = path, job_types
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            self._table = msgspec.json.decode(data, type=dict[str, dict[str, _Entry]])
        except (OSError, EOFError, ZlibError, msgspec.DecodeError) as error:
            raise SettingsError("throughputs", f"{path} is no table of rates: {error}") from error

    def of(self, gpu: str) -> Rates:
        """A column of the table. Raises SettingsError where the file lacks it, or a job's rate in it."""
        column: Mapping[str, _Entry] | None = self._table.get(gpu)
        if column is None:
            problem = f"{self._path} knows no GPU {gpu!r}; {nearest(gpu, list(self._table))}"
            raise SettingsError("throughputs", problem)
        keys = {job: f"('{job}', 1)" for job in self._job_types}
        for key in keys.values():
            if key not in column:
                problem = f"{self._path} has no rate of {key} on {gpu}; {nearest(key, list(column))}"
                raise SettingsError("throughputs", problem)
        return {job: column[key].null for job, key in keys.items()}
