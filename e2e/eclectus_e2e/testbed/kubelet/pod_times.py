"""Exact start and end times of every pod, from which demo and tests compute response times."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from eclectus_e2e.testbed.kubelet.pods.admission import OVERCOMMITTED


class PodRecord(msgspec.Struct, frozen=True, gc=False):
    """One pod that ended or was rejected. Times are Unix seconds with fractions; 0 means never.

    `outcome`: `succeeded`; `killed` (deleted, or lost with its node); `vanished` (its object was removed
    while it ran); or the reason of its rejection (`OutOfcpu`, `NodeAffinity`, ...).
    """

    namespace: str
    name: str
    uid: str
    node: str
    klass: str
    work_seconds: float | None  # None: the pod never ends by itself
    started: float
    finished: float
    outcome: str


class Counters(msgspec.Struct, frozen=True):
    """Totals since the start or the last reset."""

    started: int
    finished: int
    killed: int
    vanished: int
    refused: dict[str, int]  # rejected pods by reason
    overcommitted: int  # rejected for insufficient resources
    violations: int  # rejected for a violated constraint


class PodTimes:
    """Records in memory, and as JSON lines in `file` when given. `clock` returns Unix seconds."""

    def __init__(self, clock: Callable[[], float], file: Path | None = None) -> None:
        self.records: list[PodRecord] = []
        self.now = clock
        self._started = 0
        # Line buffered, so that no complete record is lost by a SIGKILL.
        self._file: IO[str] | None = file.open("a", buffering=1) if file else None

    def count_start(self) -> float:
        """Count a started pod; returns the time."""
        self._started += 1
        return self.now()

    def add(self, record: PodRecord) -> None:
        """Add the record of a pod that ended or was rejected."""
        self.records.append(record)
        if self._file:
            self._file.write(msgspec.json.encode(record).decode() + "\n")

    def reset(self) -> None:
        """Drop records and counts (the file keeps its lines)."""
        self.records.clear()
        self._started = 0

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def counters(self) -> Counters:
        """Totals by outcome."""
        outcomes = Counter(record.outcome for record in self.records)
        known = {name: outcomes.pop(name, 0) for name in ("succeeded", "killed", "vanished")}
        overcommitted = sum(count for reason, count in outcomes.items() if reason.startswith(OVERCOMMITTED))
        return Counters(
            started=self._started,
            finished=known["succeeded"],
            killed=known["killed"],
            vanished=known["vanished"],
            refused=dict(outcomes),
            overcommitted=overcommitted,
            violations=outcomes.total() - overcommitted,
        )

    def read(self, since: int) -> list[dict[str, Any]]:
        """Records from index `since` on, as JSON objects."""
        return [msgspec.to_builtins(record) for record in self.records[since:]]
