"""Learning that survives restarts: NodeProfile objects, read when we begin to lead and written now and then.

Only the leader writes, only what somebody would notice (a state, a tenth of a rate, twice the samples), and
no faster than a bound: 5,000 nodes cost at most 18,000 writes an hour while they are being learned, and a few
hundred once they are known. Without the definition of NodeProfile, or the right to write it, the scheduler
works as before and learns anew after a restart.

Several schedulers of one cluster see the same pods and so learn the same. Who has something to write reads
first what the others have written: what they agree on is no news any more then, the later epoch wins, and
what another has written since the last look is left to it for this round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator

import orjson

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus.api.node_profile import NodeProfile, decode_page, differs, known_from, new_object, status_of
from eclectus.config.shell import NodeProfiles as Settings
from eclectus.kubeclient.client import MERGE_PATCH
from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError, RejectedError
from eclectus.live.context import Means
from eclectus.live.inbox import Inbox
from eclectus.model.errors import MalformedError
from eclectus.model.events import NodeRecalled
from eclectus.model.learned import LearnedNode

PAGE = "500"
NODES_A_TURN = 50  # read from the engine at a time: 20 ms with 64 kinds of work
FORBIDDEN = 403

_log = logging.getLogger(__name__)


class NodeProfiles:
    """Reads and writes them. `known` tells what is known now; `leads` whether we may write."""

    def __init__(
        self,
        means: Means,
        inbox: Inbox,
        known: Callable[[], Iterable[LearnedNode]],
        leads: Callable[[], bool],
        settings: Settings,
    ) -> None:
        self._means, self._inbox, self._known, self._leads = means, inbox, known, leads
        self._settings = settings
        self._defined = True  # as far as we know; said once when it changes
        self._standing: dict[str, LearnedNode] = {}  # as last read or written

    async def recall(self) -> None:
        """Tell the engine what was known before. Failing costs learning anew, so it stops nobody."""
        if await self._look() is not None:
            _log.info("recalled what was known of %d nodes", len(self._standing))

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.interval)
            if self._leads():
                await self._write_news(await self._all_known())

    async def _all_known(self) -> list[LearnedNode]:
        """What is known now. Others take turns with it: of 5,000 nodes with much work it takes seconds."""
        found: list[LearnedNode] = []
        for known in self._known():
            found.append(known)
            if not len(found) % NODES_A_TURN:
                await asyncio.sleep(0)
        return found

    async def _look(self) -> set[str] | None:
        """Read what stands there, and tell the engine what others know; nodes of which others have written.

        None if it could not be read.
        """
        try:
            written = await self._read_all()
        except MissingError:
            if self._defined:
                _log.info("NodeProfile is not defined here: what is learned does not outlive this process")
            self._defined = False
        except (ApiError, MalformedError) as error:
            _log.warning("what was learned before could not be read: %s", error)
        else:
            self._defined = True
            return written
        return None

    async def _read_all(self) -> set[str]:
        query, standing = {"limit": PAGE}, dict[str, LearnedNode]()
        while True:
            page = decode_page(await self._means.client.get(NODE_PROFILES_PATH, query))
            read = {known.node: known for known in _read(page.items)}
            await self._inbox.offer([NodeRecalled(known) for known in read.values() if self._is_later(known)])
            standing |= read
            if not page.metadata.continue_:
                before, self._standing = self._standing, standing
                return {node for node, known in standing.items() if not _is_same(known, before.get(node))}
            query["continue"] = page.metadata.continue_

    async def _write_news(self, now: list[LearnedNode]) -> None:
        """What was written longest ago goes first, so that no node starves behind a busy one."""
        if not any(map(self._is_news, now)) or (theirs := await self._look()) is None:
            return
        news = [each for each in now if each.node not in theirs and self._is_news(each)]
        news.sort(key=lambda each: self._standing[each.node].at if each.node in self._standing else 0.0)
        for known in news[: self._settings.writes_a_round]:
            try:
                await self._write(known)
            except RejectedError as error:  # most likely a later epoch, written by another since we looked
                self._count("refused")
                _log.warning("NodeProfile %s: %s", known.node, error)
                if error.status == FORBIDDEN:
                    return
            except ApiError as error:
                self._count("failed")
                _log.warning("NodeProfile %s, to be tried again: %s", known.node, error)
                return

    async def _write(self, known: LearnedNode) -> None:
        status, path = {"status": status_of(known)}, f"{NODE_PROFILES_PATH}/{known.node}/status"
        try:
            await self._means.client.send("PATCH", path, status, content_type=MERGE_PATCH)
        except MissingError:
            await self._make(known.node)
            await self._means.client.send("PATCH", path, status, content_type=MERGE_PATCH)
        self._standing[known.node] = known
        self._count("written")

    async def _make(self, name: str) -> None:
        node = orjson.loads(await self._means.client.get(f"/api/v1/nodes/{name}"))
        try:
            await self._means.client.send(
                "POST", NODE_PROFILES_PATH, new_object(name, node["metadata"]["uid"])
            )
        except ConflictError:
            _log.debug("NodeProfile %s: another has just made it", name)

    def _is_later(self, known: LearnedNode) -> bool:
        before = self._standing.get(known.node)
        return before is None or known.epoch > before.epoch

    def _is_news(self, known: LearnedNode) -> bool:
        before = self._standing.get(known.node)
        if before is None:
            return bool(known.work)
        return known.epoch >= before.epoch and differs(before, known)

    def _count(self, result: str) -> None:
        self._means.metrics.profile_writes.labels(result).inc()


def _is_same(read: LearnedNode, known: LearnedNode | None) -> bool:
    """Whether this is what we have read or written before; times stand there in whole seconds."""
    return known is not None and (read.epoch, int(read.at)) == (known.epoch, int(known.at))


def _read(items: Iterable[NodeProfile]) -> Iterator[LearnedNode]:
    for item in items:
        try:
            known = known_from(item)
        except MalformedError as error:
            _log.error("skipped: %s", error)
            continue
        if known is not None:
            yield known
