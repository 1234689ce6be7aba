"""Learning that survives restarts: NodeProfile objects, read when we begin to lead and written now and then.

Only the leader writes, only what somebody would notice (a state, a tenth of a rate, twice the samples), and
no faster than a bound: 5,000 nodes cost at most 18,000 writes an hour while they are being learned, and a few
hundred once they are known. Without the definition of NodeProfile, or the right to write it, the scheduler
works as before and learns anew after a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

import orjson

from eclectus.config.shell import NodeProfiles as Settings
from eclectus.core.errors import MalformedError
from eclectus.core.events import NodeRecalled
from eclectus.core.known import KnownNode
from eclectus.kube.node_profile import PATH, Profile, decode_page, differs, known_from, new_object, status_of
from eclectus.live.errors import ApiError, MissingError, RejectedError
from eclectus.live.inbox import Inbox
from eclectus.live.means import Means

PAGE = "500"
FORBIDDEN = 403
MERGE = "application/merge-patch+json"

_log = logging.getLogger(__name__)


class NodeProfiles:
    """Reads and writes them. `known` tells what is known now; `leads` whether we may write."""

    def __init__(
        self,
        means: Means,
        inbox: Inbox,
        known: Callable[[], Iterable[KnownNode]],
        leads: Callable[[], bool],
        settings: Settings,
    ) -> None:
        self._means, self._inbox, self._known, self._leads = means, inbox, known, leads
        self._settings = settings
        self._defined = True  # as far as we know
        self._standing: dict[str, KnownNode] = {}  # as last read or written

    async def recall(self) -> None:
        """Tell the engine what was known before. Failing costs learning anew, so it stops nobody."""
        try:
            await self._read_all()
        except MissingError:
            self._defined = False
            _log.info("NodeProfile is not defined here: what is learned does not outlive this process")
        except (ApiError, MalformedError) as error:
            _log.warning("what was learned before could not be read: %s", error)
        else:
            self._defined = True
            _log.info("recalled what was known of %d nodes", len(self._standing))

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.interval)
            if not self._leads():
                continue
            if not self._defined:
                await self.recall()
            if self._defined:
                await self._write_all()

    async def _read_all(self) -> None:
        query = {"limit": PAGE}
        while True:
            page = decode_page(await self._means.client.get(PATH, query))
            await self._inbox.offer([NodeRecalled(known) for known in self._read(page.items)])
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    async def _write_all(self) -> None:
        """What was written longest ago goes first, so that no node starves behind a busy one."""
        changed = [each for each in self._known() if self._is_news(each)]
        changed.sort(key=lambda each: self._standing[each.node].at if each.node in self._standing else 0.0)
        for known in changed[: self._settings.writes_a_round]:
            try:
                await self._write(known)
            except RejectedError as error:  # most likely a later epoch: another has led since
                self._standing[known.node] = known
                self._count("refused")
                _log.warning("NodeProfile %s: %s", known.node, error)
                if error.status == FORBIDDEN:
                    return
            except ApiError as error:
                self._count("failed")
                _log.warning("NodeProfile %s, to be tried again: %s", known.node, error)
                return

    async def _write(self, known: KnownNode) -> None:
        status, path = {"status": status_of(known)}, f"{PATH}/{known.node}/status"
        try:
            await self._means.client.send("PATCH", path, status, content_type=MERGE)
        except MissingError:
            node = orjson.loads(await self._means.client.get(f"/api/v1/nodes/{known.node}"))
            await self._means.client.send("POST", PATH, new_object(known.node, node["metadata"]["uid"]))
            await self._means.client.send("PATCH", path, status, content_type=MERGE)
        self._standing[known.node] = known
        self._count("written")

    def _is_news(self, known: KnownNode) -> bool:
        before = self._standing.get(known.node)
        return bool(known.work) if before is None else differs(before, known)

    def _read(self, items: Iterable[Profile]) -> list[KnownNode]:
        found = []
        for item in items:
            try:
                known = known_from(item)
            except MalformedError as error:
                _log.error("skipped: %s", error)
                continue
            if known is not None:
                self._standing[known.node] = known
                found.append(known)
        return found

    def _count(self, result: str) -> None:
        self._means.metrics.profile_writes.labels(result).inc()
