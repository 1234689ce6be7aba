"""A tape: a record of every step of an engine, with its time, its events and the commands it returned.

Line 1 is a header: the format, the text of the configuration, the seed. Every other line is one step. With a
tape the engine can be run again and compared, on any machine and without a cluster. A name that ends in `.gz`
is compressed. A tape whose writer was killed may end within a line or a compressed block; all complete lines
before that are read.

A tape may begin mid-run: its first steps are then of a snapshot, and what the recorder knew beyond that is
not on it (live/recording.py).
"""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import IO, Final, Literal, Self, cast
from zlib import error as ZlibError  # noqa: N812 — the class, by its module's name

import msgspec
from msgspec import Struct

from eclectus.model.commands import Command
from eclectus.model.errors import EclectusError
from eclectus.model.events import Event

FORMAT: Final = 3  # 2: standard field names of tasks (long_running, matched_terms, …); 3: grants
BUFFER_BYTES = 1 << 18  # size of a write, and the most that a crash can lose

_DEVICES = re.compile(rb'"devices":(\[[\d,]*\])')  # always a field: within a text its quotes are escaped


class TapeError(EclectusError):
    """The file is not a tape, or has another format."""


class FullTapeError(OSError):
    """The tape has reached the size that it may have."""


class Header(Struct, frozen=True):
    """How to build the engine that made the steps."""

    eclectus: str  # version of the recorder
    configuration: str  # text of the SchedulerConfiguration
    seed: int
    format: Literal[2, 3] = FORMAT
    mid_run: bool = False  # whether it begins with a snapshot of a run, and not with its first step


class Step(Struct, frozen=True, gc=False):
    """One call of `Engine.step` and its result. `now` in seconds."""

    now: float
    events: tuple[Event, ...]
    commands: tuple[Command, ...]


class TapeWriter:
    """Writes a tape. Use it as a context manager, so that the last steps reach the disk."""

    def __init__(
        self,
        path: Path,
        header: Header,
        failed: Callable[[OSError], None] | None = None,
        most_bytes: float = inf,
    ) -> None:
        """`failed` is called once if writing fails, and the tape ends there; without it that is raised.

        A file of `most_bytes`, or of a buffer more, fails with FullTapeError.
        """
        self._failed = failed
        self._most_bytes = most_bytes
        self._has_failed = False
        self._encoder = msgspec.json.Encoder()
        self._buffer = bytearray(self._encoder.encode(header) + b"\n")
        self._file = _open(path, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._failures(), self._file:
            self.flush()

    def step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Record one step, unless writing has failed."""
        if self._has_failed:
            return
        self._encoder.encode_into(Step(now, tuple(events), tuple(commands)), self._buffer, -1)
        self._buffer += b"\n"
        if len(self._buffer) >= BUFFER_BYTES:
            with self._failures():
                self.flush()
                self._check_size()

    def flush(self) -> None:
        """Write the buffer to the file."""
        self._file.write(self._buffer)
        self._file.flush()
        self._buffer.clear()

    def _check_size(self) -> None:
        size = os.fstat(self._file.fileno()).st_size
        if size >= self._most_bytes:
            raise FullTapeError(f"it has {size:,} bytes, and may have {self._most_bytes:,.0f}")

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if self._failed is None:
                raise
            if not self._has_failed:
                self._has_failed = True
                self._failed(error)


class Packer:
    """Makes a compressed tape in memory, part by part."""

    def __init__(self, header: Header) -> None:
        self._encoder = msgspec.json.Encoder()
        self._compressor = zlib.compressobj(level=1, wbits=31)  # 31: as a gzip file
        self._head = self._encoder.encode(header) + b"\n"

    def pack(self, steps: Iterable[Step]) -> bytes:
        """What comes next of the file, up to the end of these steps."""
        lines, self._head = bytearray(self._head), b""
        for step in steps:
            self._encoder.encode_into(step, lines, -1)
            lines += b"\n"
        return self._compressor.compress(lines) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        """The end of the file."""
        return self._compressor.flush()


def read(path: Path) -> tuple[Header, Iterator[Step]]:
    """The header of a tape, and an iterator over its steps. Raises TapeError, OSError."""
    lines = _lines(path)
    try:
        header = msgspec.json.decode(next(lines, b""), type=Header)
    except msgspec.DecodeError as error:
        raise TapeError(f"{path} is not a tape of format 2 or {FORMAT}: {error}") from error
    if header.format == 2:  # tasks and binds had their devices beside the other fields
        lines = (_DEVICES.sub(rb'"grant":{"devices":\1}', line) for line in lines)
    return header, _steps(path, lines)


def _steps(path: Path, lines: Iterator[bytes]) -> Iterator[Step]:
    decoder = msgspec.json.Decoder(Step)
    for number, line in enumerate(lines, start=2):
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError as error:
            raise TapeError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> Iterator[bytes]:
    """All complete lines."""
    with _open(path, "rb") as file:
        while True:
            try:
                line = file.readline()
            except (EOFError, ZlibError):  # the writer was killed within a compressed block
                return
            if not line.endswith(b"\n"):
                return
            yield line


def _open(path: Path, mode: Literal["rb", "wb"]) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, mode, compresslevel=1))
    return path.open(mode)
