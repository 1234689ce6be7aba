"""The kopf operator: watches that trigger a sync, and the loop that runs the controller's syncs.

Only `on.event` handlers are used. kopf writes nothing for them, no annotation and no finalizer, so nothing
ever keeps an object from being deleted. A lost event costs at most `look_seconds`, since the controller syncs
then anyway. Watched are NodeProbes and probe pods, dozens at most: kopf spends milliseconds on each event of
an object as large as a node.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from random import Random
from typing import Any

import kopf

from eclectus.api.names import GROUP, NODE_PROBES, VERSION
from eclectus.api.probe_names import selector
from eclectus.kubeclient.client import ObjectClient, connected
from eclectus.kubeclient.errors import ApiError, MissingError
from eclectus_operator.control.context import Gated, NotLeadingError, OperatorContext
from eclectus_operator.control.controller import RETRY_SECONDS, Controller
from eclectus_operator.control.nodes import NodePool
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.login import credentials, login
from eclectus_operator.objects.convert import ShapeError
from eclectus_operator.settings import REQUEST_SECONDS, Settings
from eclectus_operator.watch_login import WatchLogin

USER_AGENT = "eclectus-operator"
# The API server closes a watch after WATCH_SECONDS, and a connection without even a bookmark for
# SILENT_SECONDS counts as dead: without both, a watch can stay silent for hours. Whole numbers: kopf puts the
# first into the URL as it is, and the API server refuses a fraction.
WATCH_SECONDS, SILENT_SECONDS = 270, 70
HUNG_SECONDS = 120.0  # beyond look_seconds, until a controller that does not sync counts as hung
BATCH_SECONDS = 0.2  # events that arrive together cause one sync
_log = logging.getLogger(__name__)


class Work:
    """What runs in kopf's loop: the controller, triggered by events.

    `holds_lease`: whether anything may be written. `on_failure` is called when the controller cannot go on.
    """

    def __init__(
        self,
        settings: Settings,
        holds_lease: Callable[[], bool],
        on_failure: Callable[[BaseException], None],
        metrics: Metrics,
    ) -> None:
        self._settings, self._metrics = settings, metrics
        self._holds_lease, self._on_failure = holds_lease, on_failure
        self._trigger = asyncio.Event()
        self._generations: dict[str, int] = {}  # of NodeProbes by uid
        self._task: asyncio.Task[None] | None = None
        self._synced_at = time.monotonic()

    def trouble(self) -> str:
        """What is wrong; empty if syncs come as they should. May be called from any thread."""
        silent = time.monotonic() - self._synced_at
        return f"no sync for {silent:.0f} s" if silent > self._settings.look_seconds + HUNG_SECONDS else ""

    def registry(self) -> kopf.OperatorRegistry:
        """The handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(WatchLogin(login).log_in)
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._end)
        kopf.on.event(GROUP, VERSION, NODE_PROBES, registry=registry)(self._on_node_probe)
        kopf.on.event("", "v1", "pods", registry=registry)(self._on_pod)
        return registry

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, self._settings)
        self._task = asyncio.create_task(self._work(), name="controller")
        self._task.add_done_callback(self._ended)

    async def _end(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def _on_node_probe(self, event: Any, **_: Any) -> None:
        """A new generation triggers a sync. A changed status does not: it is our own write, or can wait."""
        meta, is_gone = event["object"]["metadata"], event["type"] == "DELETED"
        before = self._generations.pop(meta["uid"], None)
        if not is_gone:
            self._generations[meta["uid"]] = meta["generation"]
        if is_gone or before != meta["generation"]:
            self._trigger.set()

    async def _on_pod(self, **_: Any) -> None:
        self._trigger.set()

    async def _work(self) -> None:
        """Sync, rest, sync again. Raises MissingError where NodeProbe is not defined."""
        async with connected(credentials(login), REQUEST_SECONDS, USER_AGENT) as client:
            api = Gated(ObjectClient(client), self._holds_lease)
            pool = NodePool(api, time.time)
            controller = Controller(
                OperatorContext(api, pool, self._settings, time.time, Random(), self._metrics)
            )
            while True:
                seconds = await _sync(controller)
                self._synced_at = time.monotonic()
                await self._rest(seconds)

    async def _rest(self, seconds: float) -> None:
        """Wait for an event, at most for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._trigger.wait()
        except TimeoutError:
            return
        await asyncio.sleep(BATCH_SECONDS)
        self._trigger.clear()


def configure(settings: kopf.OperatorSettings, ours: Settings) -> None:
    """Set kopf's own settings."""
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + SILENT_SECONDS
    settings.watching.connect_timeout = REQUEST_SECONDS
    settings.watching.inactivity_timeout = SILENT_SECONDS
    settings.watching.label_selectors["", "v1", "pods"] = selector(ours.instance)
    settings.networking.request_timeout = 60.0
    settings.scanning.disabled = True  # it needs rights to namespaces and definitions
    settings.peering.standalone = True  # of two operators with one priority, kopf's peering stops both
    settings.posting.enabled = False  # the controller writes the events


async def _sync(controller: Controller) -> float:
    """Seconds until the next sync."""
    try:
        return await controller.sync()
    except MissingError:
        raise
    except NotLeadingError as error:
        _log.info("%s", error)
    except (ApiError, ShapeError) as error:
        _log.warning("sync failed: %s", error)
    return RETRY_SECONDS
