"""What is to be seen of a running contest at one moment; asked of kubelet and scheduler, drawn by others."""

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
    """`pods` is what each node holds, in the order of `speeds`."""

    run: RunId
    seconds: float  # since the first pod could come
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
        """Pods created and not yet on a node (nor refused, which ends a pod too)."""
        return max(0, self.created - self.ended - self.running)

    @property
    def is_over(self) -> bool:
        """Whether every pod has come to an end, good or bad."""
        return self.ended >= self.planned


def take_snapshot(
    ground: Environment, contest: RunId, sent: SentPods, cells: Sequence[LearnedRate]
) -> Snapshot:
    """Ask the kubelet what runs, beside what was learned. Blocking: 5 ms or so."""
    state = ground.kubelet.state()
    counters = state["counters"]
    ends = ("finished", "killed", "vanished", "overcommitted", "violations")
    nodes = sorted(state["nodes"].items(), key=lambda each: (each[1]["speed"], each[0]))
    true = {name: node["speed"] for name, node in nodes}
    factors = {name: node["class_factors"] for name, node in nodes}
    speeds = compare_speeds(without_class_factors(cells, factors), true)
    return Snapshot(
        run=contest,
        seconds=time.time() - sent.began,
        planned=sent.planned,
        created=len(sent.at),
        ended=sum(counters[name] for name in ends),
        speeds=speeds,
        pods=[state["nodes"][node.node]["running"] for node in speeds],
    )
