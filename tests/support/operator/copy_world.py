"""A small cluster with a task that straggles: its original on n0 needs long, every other pod little."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random
from typing import Any

from dag_jobs import dag_job, stage
from dag_operator_world import PODS, RUN_SECONDS, SETTINGS, DagWorld, task_of
from eclectus.api.names import COPY_OF_LABEL, STRAGGLING
from eclectus.kubeclient.api_errors import RejectedError
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.dag_jobs.dag_controller import DagController
from eclectus_operator.metrics import Metrics
from eclectus_operator.operator_context import OperatorContext
from fake_api import Crash, Object

COPYING = replace(SETTINGS, copies="team")
CLAIMS = "/api/v1/namespaces/team/persistentvolumeclaims"
STRAGGLES = {"type": STRAGGLING, "status": "True", "reason": "Late", "message": "100 s left, 9 s elsewhere"}


class CopyWorld(DagWorld):
    """A job of one stage with two tasks, of which task 0 straggles.

    `settings`: of the operator; `stage`, `spec`: of the stage and its pods; `both_succeed`: original and copy
    end in one step of the cluster.
    """

    def __init__(
        self,
        settings: Object | None = None,
        *,
        speculative: bool = True,
        stage: Object | None = None,
        spec: Object | None = None,
        slow_seconds: float = 60.0,
        both_succeed: bool = False,
    ) -> None:
        self.metrics = Metrics()
        self.copies_ever: list[Object] = []
        self.marked: list[str] = []  # pods that got the condition DisruptionTarget
        self.slow = ""  # the path of the original
        self.refuse_copies, self.copies_have_room = False, True
        self._slow_seconds, self._both_succeed = slow_seconds, both_succeed
        super().__init__(_job(speculative, stage or {}, spec or {}), replace(COPYING, **(settings or {})))
        self.api.watchers.append(self._written)

    def start(self) -> None:
        """Start a new operator process, without memory of the one before."""
        pool = NodePool(self.audited, lambda: self.api.now)
        ticks = itertools.count()  # the names of events are made of their times
        context = OperatorContext(
            self.audited,
            pool,
            self.settings,
            lambda: self.api.now + next(ticks) * 1e-6,
            Random(1),
            self.metrics,
        )
        self.controller = DagController(context)

    def claim(self, name: str, *modes: str) -> None:
        """There is a PersistentVolumeClaim with these access modes."""
        self.api.put(CLAIMS, {"metadata": {"name": name}, "spec": {"accessModes": list(modes)}})

    def survive(self, seconds: float, step: float = 2.0) -> None:
        """As `play`; a new operator replaces one that crashes."""
        end = self.api.now + seconds
        while self.api.now < end:
            self.cluster_step()
            try:
                self.sync()
            except Crash:
                self.start()
            self.api.now += step

    def cluster_step(self) -> None:
        """As that of a cluster without copies; and the scheduler sees that the original straggles."""
        super().cluster_step()
        if self.slow in self.api.objects and self._runs(self.slow):
            status = self.api.objects[self.slow]["status"]
            kept = [each for each in status.get("conditions", []) if each["type"] != STRAGGLING]
            if len(kept) == len(status.get("conditions", [])):
                self.api.touch(self.slow)["status"]["conditions"] = [*kept, STRAGGLES]

    def run(self, path: str) -> None:
        """A pod starts: a copy where there is room for it, and never on n0."""
        is_copy = COPY_OF_LABEL in self.api.objects[path]["metadata"]["labels"]
        if is_copy and not self.copies_have_room:
            return
        super().run(path)
        if is_copy:
            self.api.objects[path]["spec"]["nodeName"] = "n1"
        elif task_of(self.api.objects[path])[1] == 0 and not self.slow:
            self.slow = path

    def _ran(self, pod: Object) -> float:
        """Less for the original, so that it ends later: as long as it takes more than others."""
        ran = super()._ran(pod)
        is_slow = f"{PODS}/{pod['metadata']['name']}" == self.slow
        if not is_slow or (self._both_succeed and self._copy_ran() >= RUN_SECONDS):
            return ran
        return ran - self._slow_seconds + RUN_SECONDS

    def _copy_ran(self) -> float:
        copies = (pod for pod in self.pods().values() if COPY_OF_LABEL in pod["metadata"]["labels"])
        return max(
            (super(CopyWorld, self)._ran(pod) for pod in copies if pod["spec"].get("nodeName")), default=0.0
        )

    def left(self) -> dict[tuple[str, int], str]:
        """The phase of the pod of each task. Fails if a task has more than one."""
        found: dict[tuple[str, int], str] = {}
        for pod in self.pods().values():
            key = task_of(pod)[:2]
            assert key not in found, f"two pods of {key}"
            found[key] = pod.get("status", {}).get("phase", "Pending")
        return found

    def notes(self, reason: str) -> list[str]:
        """The notes of the events of this reason."""
        return [
            each["note"]
            for path, each in self.api.objects.items()
            if "/events/" in path and each["reason"] == reason
        ]

    def _runs(self, path: str) -> bool:
        return bool(self.api.objects[path].get("status", {}).get("phase") == "Running")

    def _written(self, method: str, path: str, body: Object) -> None:
        if not path.startswith(PODS):
            return
        if method == "POST" and COPY_OF_LABEL in body["metadata"]["labels"]:
            if self.refuse_copies:
                message = 'pods "a-copy" is forbidden: exceeded quota: pods'
                raise RejectedError(f"POST {path}", 403, message)
            self.copies_ever.append(body)
        conditions: list[Any] = body.get("status", {}).get("conditions", [])
        if method == "PATCH" and any(each["type"] == "DisruptionTarget" for each in conditions):
            self.marked.append(path.removesuffix("/status"))


def _job(speculative: bool, of_stage: Object, spec: Object) -> Object:
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [main], **spec}}
    found = dag_job(stages=[stage("a", tasks=2, retries=0, template=template, **of_stage)])
    found["spec"]["speculative"] = speculative
    return found
