"""Cutting a stream of bytes into lines, however it was cut into reads."""

from __future__ import annotations

LONGEST_BYTES = 16 * 2**20  # etcd refuses objects beyond 1.5 MiB; what is longer is no watch event


class LineTooLongError(ValueError):
    """More bytes without a line end than any watch event has."""


class LineCutter:
    """Feed it reads, get whole lines. A line that spans many reads is joined once, not once a read."""

    def __init__(self, longest: int = LONGEST_BYTES) -> None:
        self._parts: list[bytes] = []
        self._held = 0
        self._longest = longest

    def feed(self, read: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends; empty lines left out."""
        head, end, rest = read.partition(b"\n")
        self._hold(head)
        if not end:
            return []
        *lines, tail = rest.split(b"\n")
        lines.insert(0, b"".join(self._parts))
        self._parts, self._held = [], 0
        self._hold(tail)
        return [line for line in lines if line]

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > self._longest:
            raise LineTooLongError(f"a line of more than {self._longest} bytes")
        if part:
            self._parts.append(part)
