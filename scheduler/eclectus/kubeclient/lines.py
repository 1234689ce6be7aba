"""Splitting a stream of bytes into lines."""

from __future__ import annotations

MAX_LINE_BYTES = 16 * 2**20  # etcd refuses objects above 1.5 MiB, so no watch event is longer


class LineTooLongError(ValueError):
    """The line is longer than any watch event."""


class LineCutter:
    """Takes reads of any size and returns whole lines; the parts of a line are joined once, at its end."""

    def __init__(self, longest: int = MAX_LINE_BYTES) -> None:
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._longest = longest

    def feed(self, read: bytes) -> list[bytes]:
        """The lines that this read completes, without their ends and without empty ones.

        Raises LineTooLongError.
        """
        head, end, rest = read.partition(b"\n")
        self._hold(head)
        if not end:
            return []
        *lines, tail = rest.split(b"\n")
        lines.insert(0, b"".join(self._parts))
        self._parts, self._held_bytes = [], 0
        self._hold(tail)
        return [line for line in lines if line]

    def _hold(self, part: bytes) -> None:
        self._held_bytes += len(part)
        if self._held_bytes > self._longest:
            raise LineTooLongError(f"a line of more than {self._longest} bytes")
        if part:
            self._parts.append(part)
