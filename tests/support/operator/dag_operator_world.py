"""A small simulated cluster for DagJobs: a scheduler, kubelets, garbage collection, and one operator."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from audited_api import AuditedApi
from eclectus.api.common import time_seconds, time_text
from eclectus.api.names import ATTEMPT_LABEL, STAGE_LABEL, TASK_INDEX_LABEL
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.dag_jobs.dag_controller import DagController
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.settings import Settings
from fake_api import ALL_DAG_JOBS, NODES, FakeApi, Object
from probe_world import driven, node

JOBS = ALL_DAG_JOBS.replace("/dagjobs", "/namespaces/team/dagjobs")
PODS = "/api/v1/namespaces/team/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"
SETTINGS = Settings(instance="blue", namespace="probes", dag_jobs=True, look_seconds=30.0)
RUN_SECONDS = 6.0
End = tuple[int, str]
"""Exit code and reason of a container."""
Task = tuple[str, int, int]
"""Stage, number and attempt."""
SUCCEEDS: End = (0, "Completed")


class DagWorld:
    """A fake API server; `ends`: how the pods of some tasks end, all others succeed."""

    def __init__(self, job: Object | None = None, settings: Settings = SETTINGS) -> None:
        self.api, self.settings = FakeApi(), settings
        self.audited = AuditedApi(self.api, copies=settings.copy_namespaces)
        self.ends: dict[Task, End] = {}
        self.quota = 10**9  # pods that may hold a node at a time
        self.reason = "WaitingForQuota"  # that the scheduler gives for all others
        self.api.put(NODES, node("n0"))
        if job is not None:
            self.api.put(JOBS, job)
        self.start()

    def start(self) -> None:
        """Start a new operator process, without memory of the one before."""
        pool = NodePool(self.audited, lambda: self.api.now)
        self.controller = DagController(
            OperatorContext(self.audited, pool, self.settings, lambda: self.api.now, Random(1))
        )

    def sync(self) -> float:
        """One sync of the operator, of all jobs that it would be informed of."""
        for path in [path for path in self.api.objects if path.startswith(JOBS + "/")]:
            self.controller.notice(("team", path.rpartition("/")[2]))
        return driven(self.controller.sync())

    def play(self, seconds: float, step: float = 2.0, each: Callable[[], None] = lambda: None) -> None:
        """Let time pass, with a step of the cluster and a sync of the operator every `step` seconds."""
        end = self.api.now + seconds
        while self.api.now < end:
            self.cluster_step()
            self.sync()
            each()
            self.api.now += step

    def cluster_step(self) -> None:
        """Every pod advances one step: bound and started, ended, removed."""
        for path, pod in list(self.pods().items()):
            owner = pod["metadata"]["ownerReferences"][0]
            is_orphan = self.api.objects.get(f"{JOBS}/{owner['name']}", {}).get("metadata", {}).get("uid")
            if pod["metadata"].get("deletionTimestamp") or is_orphan != owner["uid"]:
                self.api.remove(path)
            elif not pod["spec"].get("nodeName"):
                self._schedule(path)
            elif pod["status"]["phase"] == "Running" and self._ran(pod) >= RUN_SECONDS:
                self.end(path, *self.ends.get(task_of(pod), SUCCEEDS))

    def _schedule(self, path: str) -> None:
        holding = sum(pod.get("status", {}).get("phase") == "Running" for pod in self.pods().values())
        if holding < self.quota:
            self.run(path)
        elif not self.api.objects[path].get("status", {}).get("conditions"):
            condition = {"type": "PodScheduled", "status": "False", "reason": self.reason}
            self.api.touch(path)["status"] = {"phase": "Pending", "conditions": [condition]}

    def waiting(self) -> int:
        """How many pods wait for a node."""
        return sum(not pod["spec"].get("nodeName") for pod in self.pods().values())

    def run(self, path: str) -> None:
        """The scheduler binds a pod, and its kubelet starts it."""
        pod = self.api.touch(path)
        pod["spec"]["nodeName"] = "n0"
        state = {"running": {"startedAt": time_text(self.api.now)}}
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "main", "state": state}]}

    def end(self, path: str, code: int = 0, reason: str = "Completed", **status: Any) -> None:
        """A pod's container ends."""
        pod = self.api.touch(path)
        started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        ended = {"exitCode": code, "reason": reason, "startedAt": started}
        state = {"terminated": {**ended, "finishedAt": time_text(self.api.now)}}
        phase = "Failed" if code else "Succeeded"
        pod["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": "main", "state": state}],
            **status,
        }

    def pods(self) -> dict[str, Object]:
        """The pods of the job's namespace by path."""
        return {path: each for path, each in self.api.objects.items() if path.startswith(PODS + "/")}

    def tasks(self, phase: str = "") -> list[Task]:
        """Stage, number and attempt of each pod, or of those in this phase; sorted."""
        phases = (
            (task_of(pod), pod.get("status", {}).get("phase", "Pending")) for pod in self.pods().values()
        )
        return sorted(task for task, found in phases if phase in ("", found))

    def job(self, name: str = "job") -> Object:
        """A DagJob as stored."""
        return self.api.objects[f"{JOBS}/{name}"]

    def status(self, name: str = "job") -> Object:
        """The status of a DagJob."""
        found: Object = self.job(name).get("status", {})
        return found

    def stage(self, stage: str) -> Object:
        """The status of a stage of the job."""
        return next(each for each in self.status()["stages"] if each["name"] == stage)

    def condition(self, kind: str, name: str = "job") -> Object:
        """A condition of a DagJob; empty if it has none of this type."""
        return next((each for each in self.status(name).get("conditions", []) if each["type"] == kind), {})

    def reasons(self) -> list[str]:
        """The reasons of all events, in order."""
        return [each["reason"] for path, each in self.api.objects.items() if path.startswith(EVENTS)]

    def change(self, name: str = "job", **spec: Any) -> None:
        """The job's author changes its spec."""
        job = self.api.touch(f"{JOBS}/{name}")
        job["spec"] |= spec
        job["metadata"]["generation"] += 1

    def _ran(self, pod: Object) -> float:
        started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        return self.api.now - time_seconds(started)


def task_of(pod: Object) -> Task:
    """Stage, number and attempt, as a pod's labels say."""
    labels = pod["metadata"]["labels"]
    return labels[STAGE_LABEL], int(labels[TASK_INDEX_LABEL]), int(labels[ATTEMPT_LABEL])
