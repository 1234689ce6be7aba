"""What was done and seen on real nodes, in Unix seconds; it grows while the act runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eclectus_e2e.demo.speeds import Cell, NodeSpeed, compared

SAMPLES_LEAST = 3  # of each node: one lucky probe is no knowledge


@dataclass(frozen=True)
class Instant:
    """What was believed at one moment: a cell for each node that has one."""

    at: float
    cells: Sequence[Cell]

    def speeds(self, quotas: Mapping[str, float]) -> list[NodeSpeed]:
        """Each node against its quota; the one scale that fits best is divided out."""
        return compared(self.cells, quotas)


@dataclass
class Stream:
    """One scheduler's pods by name: when each was sent; where and when it ended."""

    began: float
    planned: int
    sent: dict[str, float] = field(default_factory=dict)
    ended: dict[str, tuple[str, float]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def end(self, name: str, node: str, phase: str, at: float) -> bool:
        """A pod was seen in this phase; whether that is the first sight of its end."""
        if phase not in ("Succeeded", "Failed") or name in self.ended:
            return False
        self.ended[name] = node, at
        if phase == "Failed":
            self.failed.add(name)
        return True


@dataclass
class Spell:
    """A time of one set of quotas: when they were learned, and what was sent then, by scheduler."""

    quotas: Mapping[str, float]
    since: float
    learned: Instant | None = None
    streams: dict[str, Stream] = field(default_factory=dict)

    def look(self, instants: Sequence[Instant]) -> bool:
        """Whether every node has been within a third; the last instant is noted if it is the first such."""
        if self.learned is None and instants and instants[-1].at > self.since:
            nodes = instants[-1].speeds(self.quotas)
            if all(node.within_third and node.samples >= SAMPLES_LEAST for node in nodes):
                self.learned = instants[-1]
        return self.learned is not None


@dataclass
class Noted:
    """All of an act."""

    instants: list[Instant] = field(default_factory=list)
    spells: list[Spell] = field(default_factory=list)
