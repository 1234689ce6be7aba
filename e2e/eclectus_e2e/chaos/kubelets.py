"""The kubelets and the garbage collector of the simulated cluster: what becomes of pods once they are bound.

Annotations of a pod say how: after `chaos/seconds` it ends; of the pods of DagJobs `chaos/fails` is the share
that fails then, `chaos/refused` the share that their node does not accept. `chaos/slow` is the share of pods
that take eight times as long, whoever made them. A pod of a DagJob that is deleted
while it runs gets SIGTERM, and exits with 0, with 143, or without a trace.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from eclectus.api.names import DAG_JOBS, GROUP, STAGE_LABEL, TASK_INDEX_LABEL
from eclectus_e2e.chaos.api_server import ApiServer, Change, Object, has_ended, merged, stamp
from eclectus_e2e.chaos.network import Network

SECONDS, FAILS, REFUSED, SLOW = "chaos/seconds", "chaos/fails", "chaos/refused", "chaos/slow"
SLOW_TIMES = 8.0
JOBS = f"{GROUP}/{DAG_JOBS}"  # their resource
Task = tuple[str, str, str]
"""The uid of a DagJob, a stage, and the index of the task."""
REFUSALS_MOST = 3  # of a task, whose pods are created later after each
ERROR, TERMINATED, KILLED = 1, 143, 137  # exit codes
SILENT_SHARE, SILENT_SECONDS = 0.03, 120.0  # of pods of DagJobs that stop so late: their node was cut off


@dataclass(eq=False)
class Kubelets:
    """Those of all nodes. Their requests always arrive."""

    network: Network
    rng: Random
    refusals: Counter[Task] = field(default_factory=Counter)

    @property
    def server(self) -> ApiServer:
        """The API server that they watch."""
        return self.network.server

    def __call__(self, change: Change) -> None:
        """Start a pod that is bound, end it when its time is over, remove it when it is deleted."""
        pod = change.new
        if change.resource != "pods" or pod is None or not pod["spec"].get("nodeName"):
            return
        uid, later = pod["metadata"]["uid"], self.network.later
        if "deletionTimestamp" in pod["metadata"]:
            if change.old is None or "deletionTimestamp" not in change.old["metadata"]:
                seconds = self.rng.uniform(0.1, 3.0)
                if owner_of(pod) and self.rng.random() < SILENT_SHARE:
                    seconds = SILENT_SECONDS
                later(seconds, self._stop, change.key, uid)
        elif change.old is None or not change.old["spec"].get("nodeName"):
            refused = self.rng.random() < float(pod["metadata"]["annotations"].get(REFUSED, 0.0))
            if refused and self.refusals[task_of(pod)] < REFUSALS_MOST:
                self.refusals[task_of(pod)] += 1
                later(self.rng.uniform(0.05, 0.5), self._refuse, change.key, uid)
                return
            starts = self.rng.uniform(0.05, 1.0)
            later(starts, self._start, change.key, uid)
            runs = float(pod["metadata"]["annotations"][SECONDS])
            slow = pod["metadata"]["annotations"].get(SLOW)
            if slow is not None and self.rng.random() < float(slow):
                runs *= SLOW_TIMES
            later(starts + runs, self._end, change.key, uid)

    def _start(self, key: str, uid: str) -> None:
        self._report(key, uid, "Running", {"running": {"startedAt": stamp(self.server.now())}})

    def _end(self, key: str, uid: str) -> None:
        pod = self._found(key, uid)
        if pod is None:
            return
        has_failed = self.rng.random() < float(pod["metadata"]["annotations"].get(FAILS, 0.0))
        self._exit(key, uid, self.rng.choice([ERROR, KILLED]) if has_failed else 0)

    def _exit(self, key: str, uid: str, code: int) -> None:
        """All containers have ended with this code; with KILLED for want of memory."""
        pod = self._found(key, uid)
        if pod is None:
            return
        now = stamp(self.server.now())
        states = pod["status"].get("containerStatuses") or [{"state": {}}]
        started = states[0]["state"].get("running", {}).get("startedAt", now)
        reason = {0: "Completed", KILLED: "OOMKilled"}.get(code, "Error")
        ended = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now}
        self._report(key, uid, "Failed" if code else "Succeeded", {"terminated": ended})

    def _refuse(self, key: str, uid: str) -> None:
        """Reject the pod. The kubelet then writes a status without containers, whatever it said before."""
        why = {"reason": "OutOfcpu", "message": "Node didn't have enough resource"}
        self._report(key, uid, "Failed", None, containerStatuses=[], **why)

    def _stop(self, key: str, uid: str) -> None:
        """SIGTERM has come."""
        pod = self._found(key, uid)
        way = self.rng.choice([0, TERMINATED, None])
        if pod is None or way is None or not owner_of(pod):
            self._remove(key, uid)
            return
        self._exit(key, uid, way)
        self.network.later(self.rng.uniform(0.05, 0.5), self._remove, key, uid)

    def _found(self, key: str, uid: str) -> Object | None:
        """The pod with this uid, if it is still on a node there, and has not ended."""
        found = self.server.stored("pods").get(key)
        if found is None or found["metadata"]["uid"] != uid or not found["spec"].get("nodeName"):
            return None
        return None if has_ended(found) else found

    def _report(self, key: str, uid: str, phase: str, state: Object | None, **others: Any) -> None:
        found = self._found(key, uid)
        if found is None:
            return
        status = {**found["status"], "phase": phase, **others}
        if state is not None:
            names = [each["name"] for each in found["spec"]["containers"]]
            status["containerStatuses"] = [{"name": name, "state": state} for name in names]
        self.server.write("pods", key, {**found, "status": status}, "kubelet")

    def _remove(self, key: str, uid: str) -> None:
        found = self.server.stored("pods").get(key)
        metadata = {} if found is None else found["metadata"]
        if metadata.get("uid") == uid and "deletionTimestamp" in metadata:
            self.server.write("pods", key, None, "kubelet")


@dataclass(eq=False)
class GarbageCollector:
    """Deletes the pods whose owner is gone, and before an owner that is deleted in the foreground."""

    network: Network
    rng: Random

    def __call__(self, change: Change) -> None:
        """Look at what a write leaves without an owner."""
        if change.resource == JOBS and change.old is not None:
            if change.new is None or "deletionTimestamp" in change.new["metadata"]:
                uid = change.old["metadata"]["uid"]
                self.network.later(self.rng.uniform(0.1, 3.0), self._collect, change.key, uid)
        elif change.resource == "pods" and change.old is None and change.new is not None:
            owner = owner_of(change.new)
            if owner and owner not in owners(self.network.server):
                self.network.later(self.rng.uniform(0.1, 3.0), self._collect, "", owner)

    def end(self, key: str, pod: Object) -> None:
        """Remove a pod whose node is gone; one of a DagJob that has not ended fails before."""
        server = self.network.server
        if not owner_of(pod) or has_ended(pod):
            server.write("pods", key, None, "garbage-collector")
            return
        now = stamp(server.now())
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
        failed = {"phase": "Failed", "conditions": [{**condition, "lastTransitionTime": now}]}
        server.write("pods", key, merged(pod, {"status": failed}), "garbage-collector")
        self.network.later(self.rng.uniform(0.0, 2.0), self._delete, key, pod["metadata"]["uid"])

    def _delete(self, key: str, uid: str) -> None:
        found = self.network.server.stored("pods").get(key)
        if found is not None and found["metadata"]["uid"] == uid:
            path = "/api/v1/namespaces/{}/pods/{}".format(*key.split("/"))
            self.network.server.answer("DELETE", path, {}, {}, "garbage-collector")

    def _collect(self, job: str, owner: str) -> None:
        """Delete the pods of an owner, then the owner itself if it waits for that."""
        server = self.network.server
        alive = next(
            (each for each in server.stored(JOBS).values() if each["metadata"]["uid"] == owner), None
        )
        if alive is not None and "deletionTimestamp" not in alive["metadata"]:
            return  # etcd was restored meanwhile
        pods = [(key, pod) for key, pod in sorted(server.stored("pods").items()) if owner_of(pod) == owner]
        for key, pod in pods:
            self._delete(key, pod["metadata"]["uid"])
        found = server.stored(JOBS).get(job)
        if found is None or found["metadata"]["uid"] != owner:
            return
        if pods:
            self.network.later(1.0, self._collect, job, owner)
        else:
            server.write(JOBS, job, None, "garbage-collector")


def owner_of(pod: Object) -> str:
    """The uid of the DagJob whose pod it is; empty if it is none's."""
    return next((each["uid"] for each in pod["metadata"].get("ownerReferences") or ()), "")


def task_of(pod: Object) -> Task:
    """The uid of the DagJob, the stage and the index of a pod."""
    labels = pod["metadata"].get("labels") or {}
    return owner_of(pod), labels.get(STAGE_LABEL, ""), labels.get(TASK_INDEX_LABEL, "")


def owners(server: ApiServer) -> set[str]:
    """The uids of the DagJobs that exist."""
    return {job["metadata"]["uid"] for job in server.stored(JOBS).values()}
