"""Telling the operator how busy the cluster is: a word on every NodeProbe, from which it reckons its rate.

One list a round, and a patch for each NodeProbe on which the word has become wrong or old: with the usual
round of a minute at most 60 writes an hour a NodeProbe, and 12 while nothing changes. Where NodeProbe is not
defined, or must not be read, nobody asks to be told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from eclectus.api.names import NODE_PROBES_PATH
from eclectus.api.node_probe import NodeProbeLoad, decode_page, differs, load_of
from eclectus.kubeclient.client import MERGE_PATCH
from eclectus.kubeclient.errors import ApiError, MissingError
from eclectus.live.context import Means
from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedLoad

PAGE = "500"

_log = logging.getLogger(__name__)


class ProbeLoad:
    """Writes `status.load`, every `interval` seconds. `known` says it of a time; `leads`: may we write?"""

    def __init__(
        self,
        means: Means,
        known: Callable[[float], LearnedLoad | None],
        now: Callable[[], float],
        leads: Callable[[], bool],
        interval: float,
    ) -> None:
        self._means, self._known, self._now, self._leads = means, known, now, leads
        self._interval = interval

    async def run(self) -> None:
        """Tell, until cancelled. What fails is tried again in the next round."""
        while True:
            await asyncio.sleep(self._interval)
            if not self._leads():
                continue
            try:
                await self._tell()
            except MissingError:
                _log.debug("NodeProbe is not defined here")
            except (ApiError, MalformedError) as error:
                _log.warning("NodeProbes are not told how busy the cluster is: %s", error)

    async def _tell(self) -> None:
        now = self._now()
        known = self._known(now)
        if known is None:
            return
        for probe in await self._probes():
            if differs(probe, known, now):
                body = {"status": {"load": load_of(known, now)}}
                path = f"{NODE_PROBES_PATH}/{probe.metadata.name}/status"
                await self._means.client.send("PATCH", path, body, content_type=MERGE_PATCH)

    async def _probes(self) -> list[NodeProbeLoad]:
        query, found = {"limit": PAGE}, list[NodeProbeLoad]()
        while True:
            page = decode_page(await self._means.client.get(NODE_PROBES_PATH, query))
            found += page.items
            if not page.metadata.continue_:
                return found
            query["continue"] = page.metadata.continue_
