"""The watches of DagJobs and their pods, of all namespaces, and the controller that they trigger.

An event says only which job it is about: the sync of that job reads what has happened. kopf spends
milliseconds on each event, so some hundred pods a second can start and end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

import kopf

from eclectus.api.names import DAG_JOB_LABEL, DAG_JOBS, GROUP, VERSION
from eclectus.kubeclient.client import ObjectApi
from eclectus_operator.control.context import OperatorContext
from eclectus_operator.control.dag_jobs.controller import DagController
from eclectus_operator.control.nodes import NodePool
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.settings import Settings
from eclectus_operator.sync_loop import SyncLoop


class DagLoop(SyncLoop):
    """Runs the DagJobs of the cluster. See SyncLoop."""

    def __init__(
        self,
        settings: Settings,
        holds_lease: Callable[[], bool],
        on_failure: Callable[[BaseException], None],
        metrics: Metrics,
    ) -> None:
        super().__init__(settings, holds_lease, on_failure)
        self._metrics = metrics
        self.pod_selector = DAG_JOB_LABEL
        self.where = {"clusterwide": True}
        self._controller: DagController | None = None

    def watch(self, registry: kopf.OperatorRegistry) -> None:
        """Register the handlers of events."""
        kopf.on.event(GROUP, VERSION, DAG_JOBS, registry=registry)(self._on_dag_job)
        kopf.on.event("", "v1", "pods", registry=registry)(self._on_pod)

    def controller(self, api: ObjectApi) -> DagController:
        """The controller of DagJobs."""
        pool = NodePool(api, time.time)
        context = OperatorContext(api, pool, self._settings, time.time, Random(), self._metrics)
        self._controller = DagController(context)
        return self._controller

    async def _on_dag_job(self, event: Any, **_: Any) -> None:
        if self.is_new(event):
            self._notice(event, event["object"]["metadata"]["name"])

    async def _on_pod(self, event: Any, **_: Any) -> None:
        labels = event["object"]["metadata"].get("labels", {})
        self._notice(event, labels.get(DAG_JOB_LABEL, ""))

    def _notice(self, event: Any, name: str) -> None:
        """An event is about this job. Without a controller yet it is dropped: that lists all jobs first."""
        if self._controller is not None and name:
            self._controller.notice((event["object"]["metadata"]["namespace"], name))
            self.trigger()
