"""A tape: every step of an engine, what it was told, when, and what it answered.

Line 1 is a header: the format, the configuration as its file said it, the seed. Every other line is one
step. Whoever holds the tape can run the engine again and compare, on any machine, with no cluster.
A name that ends in `.gz` is compressed. A tape whose writer was killed ends in the middle of a line
or a block; what was whole before that is read.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final, Literal, Self, cast
from zlib import error as ZlibError  # noqa: N812 — the class, by its module's name

import msgspec
from msgspec import Struct

from eclectus.model.commands import Command
from eclectus.model.errors import EclectusError
from eclectus.model.events import Event

FORMAT: Final = 1
BUFFER_BYTES = 1 << 18  # what a crash may lose at most, and what a slow disk is asked to take at once


class TapeError(EclectusError):
    """This is no tape, or one of another format."""


class Header(Struct, frozen=True):
    """How to build the engine that the steps were taken by."""

    eclectus: str  # the version that recorded
    configuration: str  # the SchedulerConfiguration file's text
    seed: int
    format: Literal[1] = FORMAT


class Step(Struct, frozen=True, gc=False):
    """One call of the engine and its answer. `now` in seconds."""

    now: float
    events: tuple[Event, ...]
    commands: tuple[Command, ...]


class TapeWriter:
    """Writes a tape. Use as a context manager, so that its end reaches the disk."""

    def __init__(self, path: Path, header: Header) -> None:
        self._encoder = msgspec.json.Encoder()
        self._buffer = bytearray(self._encoder.encode(header) + b"\n")
        self._file = _open(path, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        self._file.close()

    def step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Write one step down."""
        self._encoder.encode_into(Step(now, tuple(events), tuple(commands)), self._buffer, -1)
        self._buffer += b"\n"
        if len(self._buffer) >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand what is buffered to the file."""
        self._file.write(self._buffer)
        self._file.flush()
        self._buffer.clear()


def read(path: Path) -> tuple[Header, Iterator[Step]]:
    """A tape's header and its steps, read as they are asked for. Raises TapeError, OSError."""
    lines = _lines(path)
    try:
        header = msgspec.json.decode(next(lines, b""), type=Header)
    except msgspec.DecodeError as error:
        raise TapeError(f"{path} is no tape of format {FORMAT}: {error}") from error
    return header, _steps(path, lines)


def _steps(path: Path, lines: Iterator[bytes]) -> Iterator[Step]:
    decoder = msgspec.json.Decoder(Step)
    for number, line in enumerate(lines, start=2):
        try:
            yield decoder.decode(line)
        except msgspec.DecodeError as error:
            raise TapeError(f"{path}, line {number}: {error}") from error


def _lines(path: Path) -> Iterator[bytes]:
    """Whole lines, as far as there are any."""
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
