"""What one look at the cluster has found, kept true while its steps are taken; and the means to take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from eclectus.api.common import time_seconds
from eclectus.api.names import NODE_PROBES_PATH, RUN_ID_LABEL
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus
from eclectus_operator.api import Api
from eclectus_operator.control.node_pool import Pool
from eclectus_operator.decide.adoption import Intent, Observed
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.objects import convert, pods
from eclectus_operator.objects.observed import Pod
from eclectus_operator.settings import Settings


@dataclass(frozen=True)
class Means:
    """What every step needs. `now`: seconds since the epoch."""

    api: Api
    pool: Pool
    settings: Settings
    now: Callable[[], float]
    rng: Random
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def pods_path(self) -> str:
        """Where probe pods are."""
        return f"/api/v1/namespaces/{self.settings.namespace}/pods"


@dataclass
class Scene:
    """The probe pods by name and the NodeProbes by uid, each as last read or written."""

    pods: dict[str, Pod]
    probes: dict[str, NodeProbe] = field(default_factory=dict)
    invalid: set[str] = field(default_factory=set)  # uids of those that can be read but not obeyed
    unreadable: set[str] = field(default_factory=set)  # run ids of those whose runs nobody knows
    in_the_way: set[str] = field(default_factory=set)  # names of pods whose room real pods need
    wake: float = float("inf")  # when something falls due, seconds since the epoch

    def wake_by(self, moment: float) -> None:
        """Look again at this moment at the latest."""
        self.wake = min(self.wake, moment)

    def runs_under_way(self) -> int:
        """Of all NodeProbes."""
        return sum(len(probe.status.runs) for probe in self.probes.values())

    def busy_nodes(self) -> set[str]:
        """Names of the nodes that have a run under way."""
        return {run.node for probe in self.probes.values() for run in probe.status.runs}


def intents(probe: NodeProbe, settings: Settings) -> list[Intent]:
    """The runs of a NodeProbe as pods that should be there."""
    return [
        Intent(settings.namespace, pods.identity(probe, run, settings.instance)) for run in probe.status.runs
    ]


def observed(pod: Pod) -> Observed:
    """A pod as the start-up table asks about it."""
    meta = pod.metadata
    created = time_seconds(meta.creation_timestamp) if meta.creation_timestamp else 0.0
    deleting = meta.deletion_timestamp is not None
    return Observed(meta.namespace, meta.name, meta.uid, meta.labels or {}, created, deleting)


def pods_of(scene: Scene, probe: NodeProbe) -> list[Pod]:
    """The pods whose labels or names could be of this NodeProbe's runs."""
    run = pods.run_id(probe.metadata.uid)
    return [
        pod
        for pod in scene.pods.values()
        if (pod.metadata.labels or {}).get(RUN_ID_LABEL) == run or f"-{run}-" in pod.metadata.name
    ]


async def write(means: Means, scene: Scene, probe: NodeProbe, status: NodeProbeStatus) -> NodeProbe:
    """Write a NodeProbe's status, if it has changed; the NodeProbe as it is then.

    Raises ApiError; ConflictError when somebody else has written since it was read.
    """
    if status == probe.status:
        return probe
    path = f"{NODE_PROBES_PATH}/{probe.metadata.name}/status"
    answer = await means.api.send("PATCH", path, convert.status_patch(probe, status))
    now_there = convert.read(answer, NodeProbe)
    scene.probes[now_there.metadata.uid] = now_there
    return now_there
