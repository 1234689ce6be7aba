"""True times of every pod, as the node knows them: what the demo computes response times from."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec

from eclectus_e2e.testbed.kubelet.pods.admission import OVERCOMMITTED


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One pod that ended, or was refused. Times are Unix seconds with fractions; 0 is never.

    `outcome`: `succeeded`; `killed` (deleted, or died with its node); `vanished` (its object went
    away while it ran); or a refusal's reason (`OutOfcpu`, `NodeAffinity`, ...).
    """

    namespace: str
    name: str
    uid: str
    node: str
    klass: str
    work_seconds: float | None  # None: it would have run for ever
    started: float
    finished: float
    outcome: str


class Counters(msgspec.Struct, frozen=True):
    """Totals since the start or the last reset."""

    started: int
    finished: int
    killed: int
    vanished: int
    refused: dict[str, int]  # by reason
    overcommitted: int
    violations: int


class Journal:
    """Entries in memory, and as JSON lines in a file when there is one. `clock`: Unix seconds."""

    def __init__(self, clock: Callable[[], float], file: Path | None = None) -> None:
        self.entries: list[Entry] = []
        self.now = clock
        self._started = 0
        # Line buffered: what is written is there to be read, also after a SIGKILL.
        self._file: IO[str] | None = file.open("a", buffering=1) if file else None

    def start(self) -> float:
        """Count a start and give its time."""
        self._started += 1
        return self.now()

    def end(self, entry: Entry) -> None:
        """Note how a pod ended."""
        self.entries.append(entry)
        if self._file:
            self._file.write(msgspec.json.encode(entry).decode() + "\n")

    def reset(self) -> None:
        """Forget entries and counts (the file keeps its lines)."""
        self.entries.clear()
        self._started = 0

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()

    def counters(self) -> Counters:
        """Count the outcomes."""
        outcomes = Counter(entry.outcome for entry in self.entries)
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
        """Entries from an index on, as JSON objects."""
        return [msgspec.to_builtins(entry) for entry in self.entries[since:]]
