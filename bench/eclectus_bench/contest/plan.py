"""What is played: the nodes, the tenants and their Jobs, the same for every contestant."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eclectus.api.names import WORK_SECONDS
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

Object = dict[str, Any]
SLOTS = 4  # of a node: cores, of which each pod requests one
PODS = 4  # of a Job: Kueue takes back by the Job, and one Job after the other for each tenant
GRACE_SECONDS = 1  # a pod that is deleted goes on for so long
BURST_WORK_SECONDS = 1.0
BURST_CPU = "100m"  # so that all pods of the burst have room at once


@dataclass(frozen=True)
class Tenant:
    """It submits Jobs of PODS pods: some at once when it comes, then so many a second, to the end.

    `comes` and `work` are seconds. Its weight is 1, as that of all tenants.
    """

    name: str
    comes: float
    at_once: int
    a_second: float
    work: float

    def arrivals(self, ends: float) -> Iterator[float]:
        """When each of its Jobs is submitted: seconds after the contest began, the first ones together."""
        yield from [self.comes] * self.at_once
        more = int((ends - self.comes) * self.a_second)
        yield from (self.comes + number / self.a_second for number in range(1, more + 1))


@dataclass(frozen=True)
class Sizes:
    """How much is played. Seconds count from the beginning of the contest, which follows the burst."""

    nodes: int
    tenants: tuple[Tenant, ...]  # the last one comes late, and what it gets is looked at
    measured_from: float  # seconds
    ends: float  # seconds
    burst: int  # Jobs
    pairs: int  # of runs, one by each contestant

    @property
    def slots(self) -> int:
        """How many pods run at once."""
        return SLOTS * self.nodes

    @property
    def minimum(self) -> int:
        """The minimum of each tenant, in slots: together all that there is."""
        return self.slots // len(self.tenants)

    def node_specs(self) -> list[NodeSpec]:
        """Nodes that are all alike."""
        return [
            NodeSpec(name=f"node-{number:02d}", group="all", speed=1.0, labels={})
            for number in range(1, self.nodes + 1)
        ]


FULL = Sizes(
    nodes=30,
    tenants=(
        Tenant("greedy", comes=0.0, at_once=100, a_second=0.0, work=20.0),
        Tenant("steady", comes=3.0, at_once=30, a_second=3.0, work=6.0),
        Tenant("late", comes=30.0, at_once=25, a_second=2.0, work=6.0),
    ),
    measured_from=60.0,
    ends=105.0,
    burst=150,
    pairs=5,
)
QUICK = Sizes(
    nodes=6,
    tenants=(
        Tenant("greedy", comes=0.0, at_once=20, a_second=0.0, work=20.0),
        Tenant("steady", comes=2.0, at_once=6, a_second=0.75, work=6.0),
        Tenant("late", comes=8.0, at_once=6, a_second=0.5, work=6.0),
    ),
    measured_from=15.0,
    ends=30.0,
    burst=15,
    pairs=1,
)


def job(name: str, scheduler: str, labels: Mapping[str, str], work_seconds: float, cpu: str = "1") -> Object:
    """A Job whose pods work for so long each, and start anew when they are evicted."""
    container = {
        "name": "main",
        "image": "registry.k8s.io/pause:3.10",
        "resources": {"requests": {"cpu": cpu}},
    }
    pod = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "containers": [container],
    }
    evicted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "parallelism": PODS,
            "completions": PODS,
            "podFailurePolicy": {"rules": [evicted]},  # an eviction is not counted against the Job
            "template": {"metadata": {"annotations": {WORK_SECONDS: f"{work_seconds:g}"}}, "spec": pod},
        },
    }
