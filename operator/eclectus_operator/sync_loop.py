"""What runs in kopf's loop: a controller's syncs, triggered by events of a watch.

Only `on.event` handlers are used. kopf writes nothing for them, no annotation and no finalizer, so nothing
ever keeps an object from being deleted. A lost event costs at most `look_seconds`, since the controller syncs
then anyway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import kopf

from eclectus.kubeclient.client import ObjectApi, ObjectClient, connected
from eclectus.kubeclient.errors import ADD_TO_CLUSTER_ROLE, ApiError, MissingError
from eclectus_operator.control.context import Gated, NotLeadingError
from eclectus_operator.control.controller import RETRY_SECONDS
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


class Controller(Protocol):
    """Reads the cluster, and carries out what is to be done."""

    async def sync(self) -> float:
        """Sync once. Seconds until the next sync. Raises ApiError, ShapeError."""


class SyncLoop(ABC):
    """A controller and the watches that trigger it.

    `holds_lease`: whether anything may be written. `on_failure` is called when the controller cannot go on.
    """

    pod_selector: str  # label selector of the pods that are watched
    where: dict[str, Any]  # arguments of kopf.operator: the namespaces that are watched

    def __init__(
        self,
        settings: Settings,
        holds_lease: Callable[[], bool],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._holds_lease, self._on_failure = holds_lease, on_failure
        self._trigger = asyncio.Event()
        self._generations: dict[str, int] = {}  # by uid, of the objects whose specs are obeyed
        self._task: asyncio.Task[None] | None = None
        self._synced_at = time.monotonic()

    @abstractmethod
    def watch(self, registry: kopf.OperatorRegistry) -> None:
        """Register the handlers of events."""

    @abstractmethod
    def controller(self, api: ObjectApi) -> Controller:
        """The controller; it may only be used in kopf's loop."""

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
        self.watch(registry)
        return registry

    def trigger(self) -> None:
        """Sync soon."""
        self._trigger.set()

    def is_new(self, event: Any) -> bool:
        """Whether an event is of a new generation of an object, or of its deletion.

        A changed status is neither: it is our own write, or can wait.
        """
        meta, is_gone = event["object"]["metadata"], event["type"] == "DELETED"
        before = self._generations.pop(meta["uid"], None)
        if not is_gone:
            self._generations[meta["uid"]] = meta["generation"]
        return is_gone or bool(before != meta["generation"])

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, self.pod_selector)
        self._task = asyncio.create_task(self._work(), name="controller")
        self._task.add_done_callback(self._ended)

    async def _end(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_failure(error)

    async def _work(self) -> None:
        """Sync, rest, sync again. Raises MissingError where the custom resource is not defined."""
        async with connected(credentials(login), REQUEST_SECONDS, USER_AGENT, ADD_TO_CLUSTER_ROLE) as client:
            controller = self.controller(Gated(ObjectClient(client), self._holds_lease))
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


def configure(settings: kopf.OperatorSettings, pod_selector: str) -> None:
    """Set kopf's own settings."""
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + SILENT_SECONDS
    settings.watching.connect_timeout = REQUEST_SECONDS
    settings.watching.inactivity_timeout = SILENT_SECONDS
    settings.watching.label_selectors["", "v1", "pods"] = pod_selector
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
