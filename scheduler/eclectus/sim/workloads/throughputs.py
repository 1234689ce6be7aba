"""Tables of throughputs in Gavel's format: the rate of each type of job on each type of GPU.

    {"v100": {"('A3C', 1)": {"null": 7.18, ...}, ...}, ...}

One mapping per type of GPU. A key is a type of job and a number of GPUs; "null" holds the rate of the job
running alone, in iterations per second, or 0 if it cannot run. Rates beside other jobs and on several GPUs
are ignored.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from zlib import error as ZlibError  # noqa: N812 — the class, by its module's name

import msgspec
from msgspec import Meta, Struct

from eclectus.config.settings_reading import nearest
from eclectus.model.errors import SettingsError

Rates = dict[str, float]
"""Type of job -> iterations per second, alone on one GPU of a given type."""


class _Entry(Struct, frozen=True):
    null: Annotated[float, Meta(ge=0)]


class Throughputs:
    """One file of throughputs."""

    def __init__(self, path: Path, job_types: tuple[str, ...]) -> None:
        """Raises SettingsError if the file cannot be read or is not such a table."""
        self._path, self._job_types = path, job_types
        try:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            self._table = msgspec.json.decode(data, type=dict[str, dict[str, _Entry]])
        except (OSError, EOFError, ZlibError, msgspec.DecodeError) as error:
            raise SettingsError("throughputs", f"{path} is not a table of rates: {error}") from error

    def of(self, gpu: str) -> Rates:
        """The rates on one type of GPU. Raises SettingsError if the file lacks any of them."""
        column: Mapping[str, _Entry] | None = self._table.get(gpu)
        if column is None:
            problem = f"{self._path} has no GPU {gpu!r}; {nearest(gpu, list(self._table))}"
            raise SettingsError("throughputs", problem)
        keys = {job: f"('{job}', 1)" for job in self._job_types}
        for key in keys.values():
            if key not in column:
                problem = f"{self._path} has no rate of {key} on {gpu}; {nearest(key, list(column))}"
                raise SettingsError("throughputs", problem)
        return {job: column[key].null for job, key in keys.items()}
