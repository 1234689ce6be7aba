"""Pods that nothing controls and that ask for copies, in a small cluster with one operator."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import Any

from audited_api import AuditedApi
from eclectus.api.common import time_seconds, time_text
from eclectus.api.names import COPY_OF_LABEL, IDEMPOTENT, RESTARTABLE, SPECULATIVE_LABEL, STRAGGLING
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.copies.copy_controller import CopyController
from eclectus_operator.metrics import Metrics
from eclectus_operator.operator_context import OperatorContext
from eclectus_operator.settings import Settings
from fake_api import Crash, FakeApi, Object
from probe_world import driven

PODS = "/api/v1/namespaces/team/pods"
CLAIMS = "/api/v1/namespaces/team/persistentvolumeclaims"
SETTINGS = Settings(instance="blue", namespace="probes", copies="team", look_seconds=10.0)
JOB = "/apis/batch/v1/namespaces/team/jobs/boss"
STRAGGLES = {"type": STRAGGLING, "status": "True", "reason": "Late", "message": "100 s left, 9 s elsewhere"}
WORTH_RESTARTING = {**STRAGGLES, "reason": "WorthRestarting"}


def pod(name: str = "a", *, owner: str = "", labels: Object | None = None, **spec: Any) -> Object:
    """A pod that asks for a copy, as its user writes it; `owner`: the kind of what controls it."""
    references = [{"kind": owner, "name": "boss", "uid": "u", "controller": True}] if owner else []
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": {SPECULATIVE_LABEL: "true", "app": "x", **(labels or {})},
            "annotations": {IDEMPOTENT: "true"},
            "ownerReferences": references,
        },
        "spec": {"containers": [main], "restartPolicy": "Never", **spec},
    }


IGNORES = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def of_job(**changes: Any) -> tuple[Object, Object]:
    """A pod of a Job that may be restarted, and the Job, with changes of its spec."""
    found = pod(owner="Job")
    found["metadata"]["annotations"] = {RESTARTABLE: "true"}
    rules = {"podFailurePolicy": {"rules": [IGNORES]}, "podReplacementPolicy": "Failed"}
    spec = {"completionMode": "Indexed", **rules, **changes}
    return found, {"metadata": {"name": "boss", "namespace": "team"}, "spec": spec}


class BareWorld:
    """A fake API server with one pod on n0 that straggles, and an operator.

    `seconds`: for which pods run, by name.
    """

    def __init__(self, *pods: Object, seconds: dict[str, float] | None = None, **settings: Any) -> None:
        self.api = FakeApi()
        self.settings = replace(SETTINGS, **settings)
        self.audited = AuditedApi(self.api, dag_jobs=False, copies=self.settings.copy_namespaces)
        self.metrics = Metrics()
        self.seconds = {"a": 60.0, "a-copy": 6.0, **(seconds or {})}
        self.has_room = True  # for copies
        self.straggling, self.condition = {"a"}, STRAGGLES
        self._leaving: set[str] = set()
        for each in pods or (pod(),):
            self.api.put(PODS, each)
        self.start()

    def start(self) -> None:
        """Start a new operator process, without memory of the one before."""
        now, ticks = self.api, itertools.count()
        pool = NodePool(self.audited, lambda: now.now)
        self.controller = CopyController(
            OperatorContext(
                self.audited,
                pool,
                self.settings,
                lambda: now.now + next(ticks) * 1e-6,  # the names of events are made of their times
                Random(1),
                self.metrics,
            )
        )

    def play(self, seconds: float, step: float = 2.0) -> None:
        """Let time pass, with a step of the cluster and a sync every `step` seconds; crashes are survived."""
        end = self.api.now + seconds
        while self.api.now < end:
            for path in list(self.pods()):
                self._advance(path)
            try:
                driven(self.controller.sync())
            except Crash:
                self.start()
            self.api.now += step

    def _advance(self, path: str) -> None:
        pod, name = self.api.objects[path], path.rpartition("/")[2]
        if pod["metadata"].get("deletionTimestamp"):
            if path in self._leaving:  # so that every end is seen once
                self.api.remove(path)
            self._leaving.add(path)
        elif not pod["spec"].get("nodeName"):
            if COPY_OF_LABEL not in pod["metadata"]["labels"] or self.has_room:
                self.run(path)
        elif pod["status"]["phase"] == "Running":
            started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
            if self.api.now - time_seconds(started) >= self.seconds.get(name, 60.0):
                self.end(name)

    def run(self, path: str) -> None:
        """A pod is bound and starts; the scheduler sees whether it straggles."""
        pod, name = self.api.touch(path), path.rpartition("/")[2]
        pod["spec"]["nodeName"] = "n1" if COPY_OF_LABEL in pod["metadata"]["labels"] else "n0"
        state = {"running": {"startedAt": time_text(self.api.now)}}
        conditions = [self.condition] if name in self.straggling else []
        pod["status"] = {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "state": state}],
        }

    def end(self, name: str, code: int = 0) -> None:
        """A pod's container ends."""
        pod = self.api.touch(f"{PODS}/{name}")
        state = pod["status"]["containerStatuses"][0]["state"]
        started = state["running"]["startedAt"]
        ended = {"exitCode": code, "startedAt": started, "finishedAt": time_text(self.api.now)}
        pod["status"]["containerStatuses"][0]["state"] = {"terminated": ended}
        pod["status"]["phase"] = "Failed" if code else "Succeeded"

    def delete(self, name: str, reason: str = "") -> None:
        """Somebody deletes a pod; with a reason, that of its condition DisruptionTarget."""
        pod = self.api.touch(f"{PODS}/{name}")
        pod["metadata"]["deletionTimestamp"] = time_text(self.api.now + 30.0)
        if reason:
            condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
            pod["status"].setdefault("conditions", []).append(condition)

    def pods(self) -> dict[str, Object]:
        """The pods by path."""
        return {path: each for path, each in self.api.objects.items() if path.startswith(PODS + "/")}

    def left(self) -> dict[str, str]:
        """The phase of each pod."""
        found = self.pods().values()
        return {each["metadata"]["name"]: each.get("status", {}).get("phase", "Pending") for each in found}

    def made(self) -> int:
        """How many copies have ever been made."""
        return sum(number for path, number in self.api.created.items() if path.endswith("-copy"))

    def notes(self, reason: str) -> list[str]:
        """The notes of the events of this reason."""
        return [
            each["note"]
            for path, each in self.api.objects.items()
            if "/namespaces/team/events/" in path and each["reason"] == reason
        ]
