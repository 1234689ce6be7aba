"""A small simulated cluster for the operator: nodes, a scheduler, kubelets, and one operator at a time."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from eclectus.api.common import time_seconds, time_text
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.node_probes.probe_controller import ProbeController
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.settings import Settings
from fake_api import NODES, PODS, PROBES, FakeApi, Object

T = TypeVar("T")
INSTANCE = "blue"
SETTINGS = Settings(instance=INSTANCE, namespace="probes", unit_image="eclectus-unit:1", priority_class="low")
RUN_SECONDS = 20.0
REAL = "/api/v1/namespaces/default/pods"
NO_ROOM = "0/3 nodes are available: 3 Insufficient cpu."


def node(name: str, **fields: Any) -> Object:
    """A node that may be probed; `labels`, `unschedulable`, `taints` and `ready` change that."""
    ready = "True" if fields.get("ready", True) else "False"
    return {
        "metadata": {"name": name, "labels": fields.get("labels", {"pool": "batch"})},
        "spec": {"unschedulable": fields.get("unschedulable", False), "taints": fields.get("taints", [])},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "10Gi"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def real(name: str, cpu: str, *, on: str = "", is_reported: bool = True, **spec: Any) -> Object:
    """A real pod that runs on a node, or waits for room; `is_reported`: a scheduler has said so."""
    requests = {"cpu": cpu}
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_ROOM}]
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            **spec,
        },
        "status": {
            "phase": "Running" if on else "Pending",
            "conditions": conditions if is_reported and not on else [],
        },
    }


def node_probe(name: str = "batch", **spec: Any) -> Object:
    """A NodeProbe with defaults filled in as the API server would."""
    limits = {"perHour": 3600, "leastPerHour": 3600, "running": 2, "nodeIntervalSeconds": 60}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"pool": "batch"},
            "classes": [{"name": "cpu", "unit": {"kind": "cpu", "units": 5}}],
            "suspend": False,
            **spec,
            "limits": {**limits, **spec.get("limits", {})},
        },
    }


def driven(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, because its API server is in memory."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError("it waited for something")


class ProbeWorld:
    """A fake API server with nodes, and one operator at a time."""

    def __init__(self, nodes: int = 3, settings: Settings = SETTINGS, seed: int = 1) -> None:
        self.api, self.settings, self._seed = FakeApi(), settings, seed
        for number in range(nodes):
            self.api.put(NODES, node(f"n{number}"))
        self.start()

    def start(self) -> None:
        """Start a new operator process, without memory of the one before."""
        self._seed += 1
        pool = NodePool(self.api, lambda: self.api.now)
        self.controller = ProbeController(
            OperatorContext(self.api, pool, self.settings, lambda: self.api.now, Random(self._seed))
        )

    def sync(self) -> float:
        """One sync of the operator."""
        return driven(self.controller.sync())

    def play(self, seconds: float, step: float = 5.0, each: Callable[[], None] = lambda: None) -> None:
        """Let time pass, with a step of the cluster and a sync of the operator every `step` seconds."""
        end = self.api.now + seconds
        while self.api.now < end:
            self.cluster_step()
            self.sync()
            each()
            self.api.now += step

    def cluster_step(self) -> None:
        """Every pod advances one step: bound, started, ended, removed."""
        for name, pod in list(self.api.pods().items()):
            path = f"{PODS}/{name}"
            if pod["metadata"].get("deletionTimestamp"):
                self.api.remove(path)
            elif not pod["spec"].get("nodeName"):
                self.bind(name)
            elif pod.get("status", {}).get("phase", "Pending") == "Pending":
                self.run(name)
            elif pod["status"]["phase"] == "Running" and self._ran(pod) >= RUN_SECONDS:
                self.end(name, '{"unit": "cpu", "rate": 12.5}')

    def bind(self, name: str) -> None:
        """The scheduler binds a pod to the node it is pinned to."""
        pod = self.api.touch(f"{PODS}/{name}")
        required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (pod["spec"]["nodeName"],) = required["nodeSelectorTerms"][0]["matchFields"][0]["values"]
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text(self.api.now)}
        pod["status"] = {"phase": "Pending", "conditions": [bound]}

    def waits(self, name: str, reason: str, message: str = "") -> None:
        """The kubelet reports why a bound pod's container does not run."""
        pod = self.api.touch(f"{PODS}/{name}")
        state = {"waiting": {"reason": reason, "message": message}}
        pod["status"]["containerStatuses"] = [{"name": pod["spec"]["containers"][0]["name"], "state": state}]

    def run(self, name: str) -> None:
        """The kubelet starts a pod."""
        self._state(name, "Running", {"running": {"startedAt": time_text(self.api.now)}})

    def end(self, name: str, message: str = "", code: int = 0, reason: str = "Completed") -> None:
        """A pod's container ends with this termination message."""
        statuses = self.api.pods()[name]["status"]["containerStatuses"]
        started = statuses[0]["state"]["running"]["startedAt"]
        finished = time_text(self.api.now)
        ended = {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": started,
            "finishedAt": finished,
        }
        self._state(name, "Failed" if code else "Succeeded", {"terminated": ended})

    def status(self, name: str = "batch") -> Object:
        """The status of a NodeProbe."""
        found: Object = self.api.probe(name).get("status", {})
        return found

    def condition(self, kind: str, name: str = "batch") -> Object:
        """A condition of a NodeProbe."""
        return next(each for each in self.status(name)["conditions"] if each["type"] == kind)

    def suspend(self, name: str = "batch") -> None:
        """The NodeProbe's author suspends it."""
        probe = self.api.touch(f"{PROBES}/{name}")
        probe["spec"]["suspend"] = True
        probe["metadata"]["generation"] += 1

    def _state(self, name: str, phase: str, state: Object) -> None:
        pod = self.api.touch(f"{PODS}/{name}")
        pod["status"]["phase"] = phase
        pod["status"]["containerStatuses"] = [{"name": pod["spec"]["containers"][0]["name"], "state": state}]

    def _ran(self, pod: Object) -> float:
        started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        return self.api.now - time_seconds(started)


def world_with(probe: Object | None = None, **options: Any) -> ProbeWorld:
    """A ProbeWorld with one NodeProbe."""
    world = ProbeWorld(**options)
    world.api.put(PROBES, probe or node_probe())
    return world


def running_pod(world: ProbeWorld) -> str:
    """Play until a probe pod runs; its name."""
    while not any(pod.get("status", {}).get("phase") == "Running" for pod in world.api.pods().values()):
        world.cluster_step()
        world.sync()
        world.api.now += 1
    (name,) = world.api.pods()
    return name


def created(world: ProbeWorld) -> list[str]:
    """Paths of all probe pods that were ever created."""
    return [path for path in world.api.created if path.startswith(PODS)]
