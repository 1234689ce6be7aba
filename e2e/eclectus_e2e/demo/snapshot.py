"""The state of a running experiment at one moment, for the screen."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.speeds import LearnedRate, NodeSpeed, compare_speeds, without_class_factors
from eclectus_e2e.demo.workload.load import SentPods


@dataclass(frozen=True)
class RunId:
    """One scheduler at one load."""

    scheduler: str
    load: float

    def __str__(self) -> str:
        return f"{self.scheduler} at load {self.load:g}"


@dataclass(frozen=True)
class Snapshot:
    """`pods` is the number of pods on each node, in the order of `speeds`."""

    run: RunId
    seconds: float  # since the stream's begin
    planned: int
    created: int
    ended: int
    speeds: Sequence[NodeSpeed]
    pods: Sequence[int]

    @property
    def running(self) -> int:
        """Pods on nodes."""
        return sum(self.pods)

    @property
    def waiting(self) -> int:
        """Pods that are created and neither on a node nor ended; a refused pod has ended."""
        return max(0, self.created - self.ended - self.running)

    @property
    def is_over(self) -> bool:
        """Whether every pod has ended, successfully or not."""
        return self.ended >= self.planned


def take_snapshot(
    environment: Environment, run: RunId, sent: SentPods, rates: Sequence[LearnedRate]
) -> Snapshot:
    """Ask the fake kubelet for its pods, and compare the learned rates with its speeds. Blocks for 5 ms."""
    state = environment.kubelet.state()
    counters = state["counters"]
    ends = ("finished", "killed", "vanished", "overcommitted", "violations")
    nodes = sorted(state["nodes"].items(), key=lambda each: (each[1]["speed"], each[0]))
    true = {name: node["speed"] for name, node in nodes}
    factors = {name: node["class_factors"] for name, node in nodes}
    speeds = compare_speeds(without_class_factors(rates, factors), true)
    return Snapshot(
        run=run,
        seconds=time.time() - sent.began,
        planned=sent.planned,
        created=len(sent.at),
        ended=sum(counters[name] for name in ends),
        speeds=speeds,
        pods=[state["nodes"][node.node]["running"] for node in speeds],
    )
