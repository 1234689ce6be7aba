"""What was done and seen on real nodes, in Unix seconds; it grows while the act runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from eclectus_e2e.demo.pod_waits import Stay
from eclectus_e2e.demo.speeds import LearnedRate, NodeSpeed, compare_speeds

MIN_SAMPLES = 3  # of each node: one lucky probe is no knowledge


@dataclass(frozen=True)
class RatesAt:
    """What was believed at one moment: a cell for each node that has one."""

    at: float
    rates: Sequence[LearnedRate]

    def speeds(self, quotas: Mapping[str, float]) -> list[NodeSpeed]:
        """Each node against its quota; the one scale that fits best is divided out."""
        return compare_speeds(self.rates, quotas)

    def samples(self, node: str) -> int:
        """How many there were of a node."""
        return sum(cell.samples for cell in self.rates if cell.node == node)


@dataclass
class Stream:
    """One scheduler's pods by name: when each was sent; where and when it began to run, and ended."""

    began: float
    planned: int
    sent: dict[str, float] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    ended: dict[str, tuple[str, float]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def observe(self, name: str, node: str, phase: str, at: float) -> bool:
        """A pod was seen in this phase; whether that is the first sight of its end."""
        if phase not in ("Running", "Succeeded", "Failed") or name in self.ended:
            return False
        self.started.setdefault(name, at)
        if phase == "Running":
            return False
        self.ended[name] = node, at
        if phase == "Failed":
            self.failed.add(name)
        return True

    @property
    def lost_or_failed(self) -> int:
        """Pods that were lost or failed."""
        return self.planned - len(self.ended) + len(self.failed)

    @property
    def over(self) -> float:
        """When the last pod had ended."""
        return max((at for _, at in self.ended.values()), default=self.began)

    def stays(self, room: Mapping[str, int]) -> list[Stay]:
        """Each pod that ended, on its node, of which it had all: `room` in millicores."""
        return [
            Stay(node, self.sent[name], self.started[name], at, room[node])
            for name, (node, at) in self.ended.items()
        ]


@dataclass
class Probe:
    """One probe, on its node; it has not ended before `ended` is set."""

    node: str
    started: float
    ended: float = inf


@dataclass
class QuotaInterval:
    """A time of one set of quotas: when they were learned, and what was sent then, by scheduler."""

    quotas: Mapping[str, float]
    since: float
    learned: RatesAt | None = None
    streams: dict[str, Stream] = field(default_factory=dict)

    def check_learned(self, instants: Sequence[RatesAt]) -> bool:
        """Whether every node has been within a third; the last instant is noted if it is the first such."""
        if self.learned is None and instants and instants[-1].at > self.since:
            nodes = instants[-1].speeds(self.quotas)
            if all(node.within_third and node.samples >= MIN_SAMPLES for node in nodes):
                self.learned = instants[-1]
        return self.learned is not None


@dataclass
class Observations:
    """All of an act."""

    readings: list[RatesAt] = field(default_factory=list)
    intervals: list[QuotaInterval] = field(default_factory=list)
    probes: dict[str, Probe] = field(default_factory=dict)  # by name
    colocated: Stream = field(default_factory=lambda: Stream(0.0, 0))  # pods that were to meet a probe…
    alone: Stream = field(default_factory=lambda: Stream(0.0, 0))  # …and the same without one

    def observe_probe(self, name: str, node: str, phase: str, at: float) -> None:
        """A probe was seen in this phase; an empty one if it is gone."""
        if phase == "Running":
            self.probes.setdefault(name, Probe(node, at))
        elif phase != "Pending" and name in self.probes:
            self.probes[name].ended = min(self.probes[name].ended, at)

    def is_probed(self) -> bool:
        """Whether a probe runs anywhere."""
        return any(one.ended == inf for one in self.probes.values())

    def probes_during(self, stream: Stream, room: Mapping[str, int]) -> list[Stay]:
        """What ran beside a stream, as far as it did; each held the `room` that a pod has."""
        spans = (
            (probe.node, max(probe.started, stream.began), min(probe.ended, stream.over))
            for probe in self.probes.values()
        )
        return [Stay(node, since, since, until, room[node]) for node, since, until in spans if since < until]
