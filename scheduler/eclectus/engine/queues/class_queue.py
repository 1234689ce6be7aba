"""A class queue: the pending tasks of one profile, class and group, sorted by the Order's key."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from eclectus.model.objects import Task

Entry = tuple[tuple[float, ...], int, Task]  # key, serial (so that tasks are never compared), task


class SortedClassQueue:
    """A sorted list, and a cursor that a scheduling cycle moves along it. Written by PendingClass only.

    Tasks that were answered stay in the list until the cycle ends.
    """

    __slots__ = ("_skipped", "answered", "cursor", "entries", "group", "serial")

    def __init__(self, group: str, serial: int) -> None:
        self.group, self.serial = group, serial  # `serial`: that of its first task
        self.entries: list[Entry] = []
        self.answered: set[int] = set()  # serials of tasks that were taken and wait here no more
        self.cursor = 0  # how many of them this scheduling cycle has taken or skipped
        self._skipped: tuple[tuple[int, int], ...] = ()  # where the cursor has skipped tasks: begin, end

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Task]:
        return (task for _, _, task in self.entries)

    @property
    def head(self) -> Task | None:
        """The next task in this scheduling cycle."""
        return self.entries[self.cursor][2] if self.cursor < len(self.entries) else None

    @property
    def head_key(self) -> tuple[float, ...]:
        """The Order's key of the head; raises IndexError without a head."""
        return self.entries[self.cursor][0]

    def ahead(self, key: tuple[float, ...], serial: int) -> int:
        """How many tasks are before one, between two cycles."""
        return bisect_left(self.entries, (key, serial))

    def add(self, key: tuple[float, ...], serial: int, task: Task) -> bool:
        """Insert a task; whether it is the first."""
        insort(self.entries, (key, serial, task))
        return self.entries[0][1] == serial

    def discard(self, key: tuple[float, ...], serial: int) -> bool:
        """Remove a task, between two cycles; whether it was the first."""
        at = bisect_left(self.entries, (key, serial))
        if at < len(self.entries) and self.entries[at][:2] == (key, serial):
            del self.entries[at]
        return at == 0

    def skip(self, most: int) -> int:
        """Move the cursor past up to so many tasks; returns past how many. O(1)."""
        begin = self.cursor
        self.cursor = min(begin + most, len(self.entries))
        self._skipped = (*self._skipped, (begin, self.cursor))
        return self.cursor - begin

    def end_cycle(self) -> None:
        """Remove the tasks that were answered, and reset the cursor. Skipped tasks cost nothing."""
        end = self.cursor
        if self.answered:
            for begin, behind in reversed(self._skipped):
                self._remove_answered(behind, end)
                end = begin
            self._remove_answered(0, end)
            self.answered.clear()
        self.cursor, self._skipped = 0, ()

    def _remove_answered(self, begin: int, end: int) -> None:
        answered = self.answered
        self.entries[begin:end] = [entry for entry in self.entries[begin:end] if entry[1] not in answered]
