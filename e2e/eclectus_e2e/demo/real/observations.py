"""What was done and seen on real nodes. Times are Unix seconds; everything grows during the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from eclectus_e2e.demo.pod_waits import Stay
from eclectus_e2e.demo.speeds import LearnedRate, NodeSpeed, compare_speeds

MIN_SAMPLES = 3  # of each node before it can count as learned: a single probe may be right by chance


@dataclass(frozen=True)
class RatesAt:
    """What the scheduler had learned at one moment: a rate for each node that has one."""

    at: float
    rates: Sequence[LearnedRate]

    def speeds(self, quotas: Mapping[str, float]) -> list[NodeSpeed]:
        """Each node's learned speed against its quota, on the scale that fits best."""
        return compare_speeds(self.rates, quotas)

    def samples(self, node: str) -> int:
        """Number of samples of a node."""
        return sum(one.samples for one in self.rates if one.node == node)


@dataclass
class Stream:
    """One scheduler's pods by name: when each was sent and began to run; its node and when it ended."""

    began: float
    planned: int
    sent: dict[str, float] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    ended: dict[str, tuple[str, float]] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def observe(self, name: str, node: str, phase: str, at: float) -> bool:
        """Record that a pod is in this phase; returns whether its end is seen for the first time."""
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
        """Number of pods that did not end, or failed."""
        return self.planned - len(self.ended) + len(self.failed)

    @property
    def response_seconds(self) -> list[float]:
        """Of each pod that ended, from sending its creation to its end."""
        return [at - self.sent[name] for name, (_, at) in self.ended.items()]

    @property
    def over(self) -> float:
        """When the last pod ended."""
        return max((at for _, at in self.ended.values()), default=self.began)

    def stays(self, room: Mapping[str, int]) -> list[Stay]:
        """Each pod that ended, as taking the whole of its node; `room`: millicores of each node."""
        return [
            Stay(node, self.sent[name], self.started[name], at, room[node])
            for name, (node, at) in self.ended.items()
        ]


@dataclass
class Probe:
    """One probe on its node."""

    node: str
    started: float
    ended: float = inf  # not yet


@dataclass
class QuotaInterval:
    """The time of one set of quotas: when they were learned, and the pairs of streams, by scheduler."""

    quotas: Mapping[str, float]
    since: float
    learned: RatesAt | None = None
    pairs: list[dict[str, Stream]] = field(default_factory=list)

    def streams(self, scheduler: str) -> list[Stream]:
        """One scheduler's stream of every pair."""
        return [pair[scheduler] for pair in self.pairs if scheduler in pair]

    def check_learned(self, readings: Sequence[RatesAt]) -> bool:
        """Whether every node has been within a third; the first such reading is kept in `learned`."""
        if self.learned is None and readings and readings[-1].at > self.since:
            nodes = readings[-1].speeds(self.quotas)
            if all(node.within_third and node.samples >= MIN_SAMPLES for node in nodes):
                self.learned = readings[-1]
        return self.learned is not None


@dataclass
class Observations:
    """Everything."""

    readings: list[RatesAt] = field(default_factory=list)
    intervals: list[QuotaInterval] = field(default_factory=list)
    probes: dict[str, Probe] = field(default_factory=dict)  # by name
    # The co-location trials: pods that were sent while a probe ran on their node, and the same without one.
    colocated: Stream = field(default_factory=lambda: Stream(0.0, 0))
    alone: Stream = field(default_factory=lambda: Stream(0.0, 0))

    def observe_probe(self, name: str, node: str, phase: str, at: float) -> None:
        """Record that a probe is in this phase; an empty phase means that it is deleted."""
        if phase == "Running":
            self.probes.setdefault(name, Probe(node, at))
        elif phase != "Pending" and name in self.probes:
            self.probes[name].ended = min(self.probes[name].ended, at)

    def is_probed(self) -> bool:
        """Whether a probe runs anywhere."""
        return any(one.ended == inf for one in self.probes.values())

    def probes_during(self, stream: Stream, room: Mapping[str, int]) -> list[Stay]:
        """The probes that ran during a stream, cut to its time; each counts with its node's `room`."""
        spans = (
            (probe.node, max(probe.started, stream.began), min(probe.ended, stream.over))
            for probe in self.probes.values()
        )
        return [Stay(node, since, since, until, room[node]) for node, since, until in spans if since < until]
