"""The kopf operator: watches that wake the keeper, and the loop that lets it look.

Thin on purpose: whatever is decided is decided by pure functions, from what the API server says. Only
`on.event` handlers are used. They write nothing by themselves, no annotation and no finalizer, so that
nothing of ours ever keeps an object from being deleted; and an event that is lost costs a minute, since the
keeper looks anyway. Watched are NodeProbes and our own pods, dozens at most: kopf spends milliseconds on each
event of an object as large as a node.
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
from eclectus_operator.api import ApiError, MissingError, NotLeadingError
from eclectus_operator.control.context import Means
from eclectus_operator.control.controller import AGAIN_SECONDS, Keeper
from eclectus_operator.control.node_pool import Pool
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.http import connected, login
from eclectus_operator.lease import REQUEST_SECONDS, Gated
from eclectus_operator.objects.convert import ShapeError
from eclectus_operator.settings import Settings

# The API server closes a watch after this, and a connection that is silent for longer than bookmarks take is
# taken for dead: without either, an operator can be deaf for hours. Whole numbers: kopf puts the first into
# the URL as it is, and the API server refuses a fraction.
WATCH_SECONDS, SILENT_SECONDS = 270, 70
HUNG_SECONDS = 120.0  # beyond the time between looks, until a keeper that does not look counts as hung
GATHER_SECONDS = 0.2  # events that come together are looked at together
_log = logging.getLogger(__name__)


class Work:
    """What runs in kopf's loop: the keeper, woken by events.

    `leads`: whether anything may be written. `failed` is told when the keeper cannot go on.
    """

    def __init__(
        self,
        settings: Settings,
        leads: Callable[[], bool],
        failed: Callable[[BaseException], None],
        metrics: Metrics,
    ) -> None:
        self._settings, self._leads, self._failed, self._metrics = settings, leads, failed, metrics
        self._wake = asyncio.Event()
        self._generations: dict[str, int] = {}  # of NodeProbes by uid
        self._task: asyncio.Task[None] | None = None
        self._looked_at = time.monotonic()

    def trouble(self) -> str:
        """What is wrong; empty when looks come as they should. May be asked from any thread."""
        silent = time.monotonic() - self._looked_at
        return f"no look for {silent:.0f} s" if silent > self._settings.look_seconds + HUNG_SECONDS else ""

    def registry(self) -> kopf.OperatorRegistry:
        """The handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(_log_in)
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._end)
        kopf.on.event(GROUP, VERSION, NODE_PROBES, registry=registry)(self._probe_seen)
        kopf.on.event("", "v1", "pods", registry=registry)(self._woken)
        return registry

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, self._settings)
        self._task = asyncio.create_task(self._work(), name="keeper")
        self._task.add_done_callback(self._ended)

    async def _end(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    async def _probe_seen(self, event: Any, **_: Any) -> None:
        """A status is our own doing, or can wait for the next look; a spec is news."""
        meta, gone = event["object"]["metadata"], event["type"] == "DELETED"
        before = self._generations.pop(meta["uid"], None)
        if not gone:
            self._generations[meta["uid"]] = meta["generation"]
        if gone or before != meta["generation"]:
            self._wake.set()

    async def _woken(self, **_: Any) -> None:
        self._wake.set()

    async def _work(self) -> None:
        """Look, rest, look again. Raises MissingError where NodeProbe is not defined."""
        async with connected(login, REQUEST_SECONDS) as api:
            gated = Gated(api, self._leads)
            pool = Pool(gated, time.time)
            keeper = Keeper(Means(gated, pool, self._settings, time.time, Random(), self._metrics))
            while True:
                seconds = await _looked(keeper)
                self._looked_at = time.monotonic()
                await self._rest(seconds)

    async def _rest(self, seconds: float) -> None:
        """Until something happens, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER_SECONDS)
        self._wake.clear()


def configure(settings: kopf.OperatorSettings, ours: Settings) -> None:
    """kopf's own settings."""
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + SILENT_SECONDS
    settings.watching.connect_timeout = REQUEST_SECONDS
    settings.watching.inactivity_timeout = SILENT_SECONDS
    settings.watching.label_selectors["", "v1", "pods"] = selector(ours.instance)
    settings.networking.request_timeout = 60.0
    settings.scanning.disabled = True  # needs rights to namespaces and definitions
    settings.peering.standalone = True
    settings.posting.enabled = False  # events are the keeper's


async def _looked(keeper: Keeper) -> float:
    """Seconds until the next look."""
    try:
        return await keeper.look()
    except MissingError:
        raise
    except NotLeadingError as error:
        _log.info("%s", error)
    except (ApiError, ShapeError) as error:
        _log.warning("nothing could be seen: %s", error)
    return AGAIN_SECONDS


async def _log_in(**_: Any) -> kopf.ConnectionInfo:
    return login()
