"""Keeps what is learned in objects of the API: NodeProfiles and the load in NodeProbes.

NodeProfiles are read when this process begins to lead, and written periodically.

Only the leader writes, only significant changes (a state, a tenth of a rate, twice the samples), and only a
bounded number per round: 5,000 nodes cost at most 18,000 writes per hour while they are being learned, and
a few hundred once they are known. Without the definition of NodeProfile, or without the right to write it,
the scheduler works as before and learns again after a restart.

Several schedulers of one cluster observe the same pods and so learn the same. A scheduler with something to
write first reads what the others have written. What then no longer differs is not written, the later epoch
wins, and an object that another scheduler has written since the last read is left alone for this round.

How busy the cluster is goes into the status of every NodeProbe; the operator derives its rate from it. Each
round reads one list and patches each NodeProbe whose `status.load` is wrong or old. With rounds of one minute
that is at most 60 writes per hour and NodeProbe, and 12 while nothing changes. If NodeProbe is not defined or
may not be read, nothing is written.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass

import msgspec

from eclectus.api import node_probe, node_profile
from eclectus.api.names import NODE_PROBES_PATH, NODE_PROFILES_PATH
from eclectus.config.process_settings import NodeProfilesSettings as Settings
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError, RejectedError
from eclectus.kubeclient.client import MERGE_PATCH, decoded_pages
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Context
from eclectus.model.errors import MalformedError
from eclectus.model.events import NodeRecalled
from eclectus.model.learned import LearnedLoad, LearnedNode

PAGE_PROFILES = 50  # a step of the engine recalls a page, which takes 20 ms with 64 classes of work
NODES_PER_SLICE = 50  # nodes read or compared before other tasks run: 6 ms with 64 classes of work
FORBIDDEN = 403

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class NodeProfiles:
    """Reads and writes NodeProfiles. `learned_nodes` returns what the engine has learned so far."""

    context: Context
    inbox: Inbox
    learned_nodes: Callable[[], Iterable[LearnedNode]]
    holds_lease: Callable[[], bool]
    settings: Settings

    def __post_init__(self) -> None:
        self._is_defined = True  # whether the cluster defines NodeProfile, as of the last read
        self._stored: dict[str, LearnedNode] = {}  # as last read or written

    async def recall(self) -> None:
        """Send what was learned before to the engine. After a failure the scheduler learns from scratch."""
        if await self._read() is not None:
            _log.info("recalled what was learned of %d nodes", len(self._stored))

    async def run(self) -> None:
        """Write what has changed, until cancelled."""
        while True:
            await asyncio.sleep(self.settings.interval)
            if self.holds_lease():
                await self._write_changes([each async for each in in_slices(self.learned_nodes())])

    async def _read(self) -> set[str] | None:
        """Read all NodeProfiles and send what others have learned to the engine.

        Returns the nodes whose profile another process has written since the last read; None if the
        profiles could not be read.
        """
        try:
            written = await self._read_all()
        except MissingError:
            if self._is_defined:
                _log.info("NodeProfile is not defined in this cluster: learned rates are lost at a restart")
            self._is_defined = False
        except (ApiError, MalformedError) as error:
            _log.warning("NodeProfiles could not be read: %s", error)
        else:
            self._is_defined = True
            return written
        return None

    async def _read_all(self) -> set[str]:
        stored = dict[str, LearnedNode]()
        client, query = self.context.client, {"limit": str(PAGE_PROFILES)}
        async for page in decoded_pages(client, NODE_PROFILES_PATH, query, node_profile.decode_page):
            read = {known.node: known for known in _decoded(page.items)}
            before = self._stored
            later = (
                one for node, one in read.items() if node not in before or one.epoch > before[node].epoch
            )
            await self.inbox.put_all([NodeRecalled(known) for known in later])
            stored |= read
        before, self._stored = self._stored, stored
        return {node for node, known in stored.items() if not _is_same(known, before.get(node))}

    async def _write_changes(self, now: list[LearnedNode]) -> None:
        """Write what has changed, the object written longest ago first, so that each has its turn."""
        changed = [each async for each in in_slices(now) if self._has_changed(each)]
        if not changed or (theirs := await self._read()) is None:
            return
        changed = [
            each async for each in in_slices(now) if each.node not in theirs and self._has_changed(each)
        ]
        changed.sort(key=lambda each: self._stored[each.node].at if each.node in self._stored else 0.0)
        for known in changed[: self.settings.writes_a_round]:
            try:
                await self._write(known)
            except RejectedError as error:  # probably another process has written a later epoch meanwhile
                self.context.metrics.profile_writes.labels("refused").inc()
                _log.warning("NodeProfile %s not written: %s", known.node, error)
                if error.status == FORBIDDEN:
                    return
            except ApiError as error:
                self.context.metrics.profile_writes.labels("failed").inc()
                _log.warning("NodeProfile %s not written, will be tried again: %s", known.node, error)
                return

    async def _write(self, known: LearnedNode) -> None:
        status, path = {"status": node_profile.status_of(known)}, f"{NODE_PROFILES_PATH}/{known.node}/status"
        try:
            await self.context.client.send("PATCH", path, status, content_type=MERGE_PATCH)
        except MissingError:
            await self._create(known.node)
            await self.context.client.send("PATCH", path, status, content_type=MERGE_PATCH)
        self._stored[known.node] = known
        self.context.metrics.profile_writes.labels("written").inc()

    async def _create(self, name: str) -> None:
        node = msgspec.json.decode(await self.context.client.get(f"/api/v1/nodes/{name}"))
        try:
            body = node_profile.new_object(name, node["metadata"]["uid"])
            await self.context.client.send("POST", NODE_PROFILES_PATH, body)
        except ConflictError:
            _log.debug("NodeProfile %s has just been created by another process", name)

    def _has_changed(self, known: LearnedNode) -> bool:
        before = self._stored.get(known.node)
        if before is None:
            return bool(known.work)
        return known.epoch >= before.epoch and node_profile.differs(before, known)


async def in_slices(nodes: Iterable[LearnedNode]) -> AsyncIterator[LearnedNode]:
    """The same nodes. Other tasks run in between, since to read 5,000 nodes takes half a second."""
    for number, each in enumerate(nodes, start=1):
        yield each
        if not number % NODES_PER_SLICE:
            await asyncio.sleep(0)


def _is_same(read: LearnedNode, known: LearnedNode | None) -> bool:
    """Whether `read` is what we have read or written before; NodeProfiles store times in whole seconds."""
    return known is not None and (read.epoch, int(read.at)) == (known.epoch, int(known.at))


def _decoded(items: Iterable[node_profile.NodeProfile]) -> Iterator[LearnedNode]:
    for item in items:
        try:
            known = node_profile.known_from(item)
        except MalformedError as error:
            _log.error("NodeProfile skipped: %s", error)
            continue
        if known is not None:
            yield known


# -- how busy the cluster is, in NodeProbes ---------------------------------------------------------


@dataclass(eq=False)
class ProbeLoad:
    """Writes `status.load` every `interval` seconds while this process holds the Lease.

    `learned_load` returns the load at a time, None while it is not known.
    """

    context: Context
    learned_load: Callable[[float], LearnedLoad | None]
    now: Callable[[], float]
    holds_lease: Callable[[], bool]
    interval: float

    async def run(self) -> None:
        """Write until cancelled. What fails is tried again in the next round."""
        while True:
            await asyncio.sleep(self.interval)
            if not self.holds_lease():
                continue
            try:
                await self._write_load()
            except MissingError:
                _log.debug("NodeProbe is not defined in this cluster")
            except (ApiError, MalformedError) as error:
                _log.warning("the load could not be written to NodeProbes: %s", error)

    async def _write_load(self) -> None:
        now = self.now()
        load = self.learned_load(now)
        if load is None:
            return
        pages = decoded_pages(self.context.client, NODE_PROBES_PATH, {}, node_probe.decode_page)
        for probe in [each async for page in pages for each in page.items]:
            if node_probe.differs(probe, load, now):
                body = {"status": {"load": node_probe.load_of(load, now)}}
                path = f"{NODE_PROBES_PATH}/{probe.metadata.name}/status"
                await self.context.client.send("PATCH", path, body, content_type=MERGE_PATCH)
