"""Writes how busy the cluster is into the status of every NodeProbe; the operator derives its rate from it.

Each round reads one list and patches each NodeProbe whose `status.load` is wrong or old. With rounds of one
minute that is at most 60 writes per hour and NodeProbe, and 12 while nothing changes. If NodeProbe is not
defined or may not be read, nothing is written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from eclectus.api.names import NODE_PROBES_PATH
from eclectus.api.node_probe import NodeProbeLoad, decode_page, differs, load_of
from eclectus.kubeclient.api_errors import ApiError, MissingError
from eclectus.kubeclient.client import MERGE_PATCH, decoded_pages
from eclectus.live.context import Context
from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedLoad

PAGE = "500"

_log = logging.getLogger(__name__)


class ProbeLoad:
    """Writes `status.load` every `interval` seconds while this process holds the Lease.

    `learned_load` returns the load at a time, None while it is not known.
    """

    def __init__(
        self,
        context: Context,
        learned_load: Callable[[float], LearnedLoad | None],
        now: Callable[[], float],
        holds_lease: Callable[[], bool],
        interval: float,
    ) -> None:
        self._context = context
        self._learned_load = learned_load
        self._now = now
        self._holds_lease = holds_lease
        self._interval = interval

    async def run(self) -> None:
        """Write until cancelled. What fails is tried again in the next round."""
        while True:
            await asyncio.sleep(self._interval)
            if not self._holds_lease():
                continue
            try:
                await self._write_load()
            except MissingError:
                _log.debug("NodeProbe is not defined in this cluster")
            except (ApiError, MalformedError) as error:
                _log.warning("the load could not be written to NodeProbes: %s", error)

    async def _write_load(self) -> None:
        now = self._now()
        load = self._learned_load(now)
        if load is None:
            return
        for probe in await self._probes():
            if differs(probe, load, now):
                body = {"status": {"load": load_of(load, now)}}
                path = f"{NODE_PROBES_PATH}/{probe.metadata.name}/status"
                await self._context.client.send("PATCH", path, body, content_type=MERGE_PATCH)

    async def _probes(self) -> list[NodeProbeLoad]:
        pages = decoded_pages(self._context.client, NODE_PROBES_PATH, PAGE, decode_page)
        return [each async for page in pages for each in page.items]
