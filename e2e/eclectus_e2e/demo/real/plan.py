"""What the experiment on real nodes does: quotas before and after their change, streams, and objects."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from eclectus.api.names import API_VERSION, CLASS_LABEL
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER, SCHEDULERS
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.testbed.images.archives import references
from eclectus_e2e.testbed.realnodes.benchmark_units import units_of_core_seconds
from eclectus_e2e.testbed.realnodes.command import CPU_SHARES

Json = dict[str, Any]
CLASS = "unit"
POOL = "pool"
WORKERS = "batch"
_ON_SYSTEM = {"image": {"pullPolicy": "Never"}, "nodeSelector": {POOL: "system"}}
# What was learned is written to NodeProfiles every second, because the experiment is short. Probes run in a
# namespace of their own, so the class that they teach is shared.
VALUES: Json = {
    "scheduler": {**_ON_SYSTEM, "replicas": 1},
    "operator": {"enabled": True, **_ON_SYSTEM},
    "config": {"nodeProfiles": {"interval": "1s"}, "tenancy": {"sharedWorkloads": [CLASS]}},
}
# To learn: a probe wherever there is room for one. During streams: one in 45 s, or fewer where that is more
# than the operator's share of the spare capacity.
LEARNING_LIMITS = {"perHour": 3600, "leastPerHour": 3600, "running": 4, "nodeIntervalSeconds": 0}
STREAM_LIMITS = {"perHour": 80, "leastPerHour": 6, "running": 1, "nodeIntervalSeconds": 0}


def node_probe(name: str, klass: str, units: int, node: str = "") -> Json:
    """Probes with the work of the pods, so that they are samples of its class; of one node, or of all."""
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeProbe",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": _selector(node),
            "classes": [{"name": klass, "unit": {"kind": "cpu", "units": units}}],
            "limits": LEARNING_LIMITS,
        },
    }


def _selector(node: str) -> Json:
    return {POOL: WORKERS, **({"kubernetes.io/hostname": node} if node else {})}


def work_pod(name: str, scheduler: str, cpu: str, units: int, *, klass: str = CLASS, node: str = "") -> Json:
    """The built-in benchmark as an ordinary pod that asks for all `cpu` of a node.

    So one pod runs on a node at a time, and its time depends on the node's quota alone.
    """
    container = {
        "name": "unit",
        "image": references()["unit"],
        "imagePullPolicy": "Never",
        "args": ["cpu", "--units", str(units)],
        "resources": {"requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {CLASS_LABEL: klass}},
        "spec": {
            "schedulerName": scheduler,
            "nodeSelector": _selector(node),
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "containers": [container],
        },
    }


PAIRS, PODS, TRIALS = 3, 60, 6
QUICK_PODS, QUICK_TRIALS = 10, 2
# Estimates for the time that a run takes, from runs on two cores.
OVERHEAD_SECONDS = 330.0  # start, and learning twice; depends on when probes learn the quotas
TRIAL_SECONDS = 45.0  # of a co-location trial on each node
USUAL_CAPACITY = 0.5  # pods a second; probes reached .49
DRAIN_SECONDS = 10.0  # from a stream's last arrival to its last end
CORE_SECONDS = 2.0  # of a pod and of a probe
SYSTEM = "system"  # the node of scheduler and operator, which takes no other pods
SCHEDULER_NAMES = {name: SCHEDULERS[name].scheduler_name for name in (ECLECTUS, KUBE_SCHEDULER)}


def _swapped() -> dict[str, float]:
    """Each fast node changes quotas with a slow one: a factor of four, which raises alarms."""
    slowest, slow, fast, fastest = sorted(CPU_SHARES, key=CPU_SHARES.__getitem__)
    pairs = {slowest: fast, fast: slowest, slow: fastest, fastest: slow}
    return {name: CPU_SHARES[other] for name, other in pairs.items()}


@dataclass(frozen=True)
class Plan:
    """Quotas are shares of one core; no scheduler knows them.

    Under each set of quotas there are `pairs` of streams: the same `pods` at the same times to each
    scheduler, one after the other. The schedulers alternate in being first, so that neither gains from
    what changes during the run, such as what else the machine does.
    """

    seed: int = 1
    quotas: Mapping[str, float] = field(default_factory=lambda: dict(CPU_SHARES))
    changed: Mapping[str, float] = field(default_factory=_swapped)
    load: float = 0.5  # of the rate that the nodes reached while they ran only probes
    pairs: int = PAIRS
    pods: int = PODS  # of each stream
    trials: int = TRIALS  # pairs of co-location trials on each node
    # Units of the benchmark in each pod and probe: much more work than the half second in which a container
    # starts and its end is seen, which no quota shortens.
    units: int = field(default_factory=lambda: units_of_core_seconds(CORE_SECONDS))

    def arrivals(self, capacity: float, pair: int) -> list[float]:
        """Poisson arrivals of a pair's two streams at `load` of `capacity` pods a second, in seconds."""
        gaps = random.Random(f"{self.seed} {pair}")
        return list(accumulate(gaps.expovariate(self.load * capacity) for _ in range(self.pods)))

    @property
    def run_seconds(self) -> float:
        """Estimated time of everything."""
        streams = 2 * self.pairs * len(SCHEDULER_NAMES)
        stream_seconds = self.pods / (self.load * USUAL_CAPACITY) + DRAIN_SECONDS
        return OVERHEAD_SECONDS + streams * stream_seconds + self.trials * TRIAL_SECONDS

    def __str__(self) -> str:
        changes = ", ".join(
            f"{node} {quota:g} to {self.changed[node]:g}" for node, quota in self.quotas.items()
        )
        return "\n".join(
            [
                f"Real nodes: {len(self.quotas)} kubelets, hidden CPU quotas, seed {self.seed}, "
                f"about {round(self.run_seconds / 60)} min",
                f"  probes learn the quotas; then {self.pods} pods go to each of "
                f"{', '.join(SCHEDULER_NAMES)}, {_times(self.pairs)}",
                f"  the same again with changed quotas: {changes}",
                f"  to each node a pod beside a probe and the same pod without one, {_times(self.trials)}",
            ]
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def real_plan(seed: int, pairs: int = PAIRS, *, quick: bool = False) -> Plan:
    """The plan of `make demo NODES=real`; `quick`: only to check that everything works."""
    if quick:
        return Plan(seed, pairs=pairs, pods=QUICK_PODS, trials=QUICK_TRIALS)
    return Plan(seed, pairs=pairs)
