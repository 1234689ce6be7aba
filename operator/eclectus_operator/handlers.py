"""The watches of NodeProbes and their pods, and the controller that they trigger.

Watched are NodeProbes and probe pods, dozens at most: kopf spends milliseconds on each event of an object as
large as a node.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

import kopf

from eclectus.api.names import GROUP, NODE_PROBES, VERSION
from eclectus.api.probe_names import selector
from eclectus.kubeclient.client import ObjectApi
from eclectus_operator.control.context import OperatorContext
from eclectus_operator.control.controller import Controller
from eclectus_operator.control.nodes import NodePool
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.settings import Settings
from eclectus_operator.sync_loop import SyncLoop


class ProbeLoop(SyncLoop):
    """Runs the NodeProbes of the cluster. See SyncLoop."""

    def __init__(
        self,
        settings: Settings,
        holds_lease: Callable[[], bool],
        on_failure: Callable[[BaseException], None],
        metrics: Metrics,
    ) -> None:
        super().__init__(settings, holds_lease, on_failure)
        self._metrics = metrics
        self.pod_selector = selector(settings.instance)
        self.where = {"namespaces": [settings.namespace]}

    def watch(self, registry: kopf.OperatorRegistry) -> None:
        """Register the handlers of events."""
        kopf.on.event(GROUP, VERSION, NODE_PROBES, registry=registry)(self._on_node_probe)
        kopf.on.event("", "v1", "pods", registry=registry)(self._on_pod)

    def controller(self, api: ObjectApi) -> Controller:
        """The controller of NodeProbes."""
        pool = NodePool(api, time.time)
        return Controller(OperatorContext(api, pool, self._settings, time.time, Random(), self._metrics))

    async def _on_node_probe(self, event: Any, **_: Any) -> None:
        if self.is_new(event):
            self.trigger()

    async def _on_pod(self, **_: Any) -> None:
        self.trigger()
