"""One scheduler process: its parts, put together, started in order and ended in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from eclectus.config.shell import LeaderElection
from eclectus.config.shell import Shell as Settings
from eclectus.engine.counters import QueueCounts
from eclectus.framework import LearnedCell
from eclectus.kubeclient import health
from eclectus.kubeclient.client import ApiClient, ObjectClient, connected
from eclectus.kubeclient.clock import Clock
from eclectus.kubeclient.credentials import Credentials
from eclectus.kubeclient.election import ElectionSettings
from eclectus.kubeclient.elector import Elector
from eclectus.live.context import Means
from eclectus.live.inbox import Inbox
from eclectus.live.learned.load_signal import LoadSignal
from eclectus.live.learned.node_profiles import NodeProfiles
from eclectus.live.learned.probe_load import ProbeLoad
from eclectus.live.loop import Decider, Loop, Witness
from eclectus.live.metrics.learned import LearnedCollector
from eclectus.live.metrics.queue_counts import QueueCountsCollector
from eclectus.live.pod_latency import Waits
from eclectus.live.watch.reflector import Reflector
from eclectus.live.watch.watched import Nodes, Pods
from eclectus.live.write.binder import Binder
from eclectus.live.write.conditions import Conditions
from eclectus.live.write.event_recorder import Recorder
from eclectus.live.write.outbox import Outbox
from eclectus.model.events import Paused, Resumed
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary

DRAIN_SECONDS = 10.0  # for what is decided to go out after SIGTERM; kubelets grant 30 s by default

_log = logging.getLogger(__name__)


class Engine(Decider, Protocol):
    """An engine that can also be counted, and asked what it has learned."""

    def queue_counts(self) -> QueueCounts:
        """How many pods stand where."""

    def learned_cells(self) -> Sequence[LearnedCell]:
        """What has been learned of every node."""

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """The same, for another process to recall."""

    def learned_load(self, now: float) -> LearnedLoad | None:
        """How busy all nodes are."""

    def learned_summary(self, label: str, most: int, now: float) -> tuple[list[str], LearnedSummary | None]:
        """What is known in all, and the names of its groups."""


class Shell:
    """Everything between an engine and an API server. `ours`: whether a schedulerName is ours."""

    def __init__(
        self,
        engine: Engine,
        ours: Callable[[str], bool],
        settings: Settings,
        client: ApiClient,
        witnesses: Sequence[Witness] = (),
    ) -> None:
        connection, host, clock = settings.client_connection, socket.gethostname(), Clock()
        means = Means(client)
        self._settings, self._metrics = settings, means.metrics
        self._metrics.registry.register(QueueCountsCollector(engine.queue_counts))
        self._metrics.registry.register(LearnedCollector(engine.learned_summary, clock.now, settings.metrics))
        self._inbox = Inbox()
        pods = Pods(ours)
        self._reflectors = [Reflector(kind, means, self._inbox, clock.now) for kind in (Nodes(), pods)]
        self._elector = Elector(
            ObjectClient(client),
            f"{host}_{uuid.uuid4()}",
            _election_settings(settings.leader_election),
            means.rng,
            self._metrics.leader.set,
        )
        leads = self._elector.holds_lease
        self._outbox = Outbox(
            Binder(means, leads, connection.request_timeout),
            Conditions(means, pods.standing.get, leads, connection),
            Recorder(means, f"eclectus-{host}"[:128], connection),
            self._inbox,
            in_flight=connection.requests_in_flight,
            metrics=means.metrics,
        )
        self._learned = engine.learned_cells
        waits = Waits(ours, self._metrics.sli_seconds)
        self._loop = Loop(
            engine,
            self._inbox,
            self._outbox,
            clock.now,
            step_seconds=self._metrics.step_seconds,
            witnesses=[waits.note, *witnesses],
        )
        signalled = settings.load_signal
        self._load_signal = LoadSignal(signalled, self._inbox, self._metrics) if signalled.url else None
        self._profiles = NodeProfiles(means, self._inbox, engine.learned_nodes, leads, settings.node_profiles)
        self._probe_load = ProbeLoad(
            means, engine.learned_load, clock.now, leads, settings.node_profiles.interval
        )
        self._stopping = False
        self._over = asyncio.Event()  # told to stop, lost the Lease, or a part has failed
        self._failure: BaseException | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> int:
        """Run until told to stop (0) or the Lease is lost (1). Raises what no part should ever raise."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._told_to_stop)
        runner, address = await health.serve(
            self._probes(), self._settings.server.address, self._settings.server.port
        )
        _log.info("serving probes and metrics", extra={"address": address})
        try:
            return await self._live()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await runner.cleanup()

    async def _live(self) -> int:
        if self._settings.leader_election.leader_elect:
            self._start("elector", self._elector.run())
        self._start("outbox", self._outbox.run())
        self._start("loop", self._loop.run())
        self._start("career", self._career())
        if self._load_signal is not None:
            self._start("load-signal", self._load_signal.run())
        await self._over.wait()
        if self._failure is not None:
            raise self._failure
        code = 0
        if self._elector.lost.is_set():
            self._inbox.put(Paused())
            code = 1  # another leads: start anew, with a picture of its making
        await self._end()
        return code

    async def _career(self) -> None:
        """Follow the cluster as a standby, then lead."""
        # A first try before the first list: who leads at once need not list twice.
        await self._elector.tried.wait()
        lists_are_ours = self._elector.leading.is_set()
        self._follow()
        await self._elector.leading.wait()
        if not lists_are_ours:
            # What the last leader bound just before may not have reached our watches. A list made
            # after its time was over has it all.
            self._follow()
        for reflector in self._reflectors:
            await reflector.synced.wait()
        if self._settings.node_profiles.enabled:
            await self._profiles.recall()
            self._start("node-profiles", self._profiles.run())
            self._start("probe-load", self._probe_load.run())
        _spare_the_collector()
        self._inbox.put(Resumed())
        _log.info("deciding from here on")
        await asyncio.Event().wait()  # parts end when they fail; this one has no end of its own

    def _follow(self) -> None:
        for number, reflector in enumerate(self._reflectors):
            reflector.synced.clear()  # here, not when the task first runs: somebody waits for it before that
            name = f"reflector-{number}"
            if name in self._tasks:
                self._tasks.pop(name).cancel()
            self._start(name, reflector.run())

    async def _end(self) -> None:
        """What is decided goes out, then the Lease goes back: the next leader's list has it all."""
        self._loop.stop()
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._tasks["loop"]
                await self._outbox.drained()
        except TimeoutError:
            _log.warning("ended before everything was sent; the next scheduler decides it again")
        await self._elector.resign()

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._part_ended)

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        """No part may end before the whole does: one that failed in silence would leave us deaf or dumb."""
        if not task.cancelled():
            self._failure = self._failure or task.exception()
            self._over.set()

    def _told_to_stop(self) -> None:
        self._stopping = True
        self._over.set()

    def _probes(self) -> Any:
        live = {"ping": lambda: "", "loop": self._loop.trouble, "leader-election": self._elector.trouble}
        ready = {"sync": self._unsynced, "shutdown": lambda: "shutting down" if self._stopping else ""}
        return health.application(
            live, ready, self._metrics.expose, {"/speeds": lambda: msgspec.json.encode(self._learned())}
        )

    def _unsynced(self) -> str:
        synced = all(reflector.synced.is_set() for reflector in self._reflectors)
        return "" if synced else "the first lists are not complete"


async def run(
    engine: Engine,
    ours: Callable[[str], bool],
    settings: Settings,
    credentials: Credentials,
    witnesses: Sequence[Witness] = (),
) -> int:
    """Run a scheduler; its exit code."""
    async with connected(credentials, settings.client_connection.request_timeout) as client:
        return await Shell(engine, ours, settings, client, witnesses).run()


def _election_settings(settings: LeaderElection) -> ElectionSettings:
    return ElectionSettings(
        settings.resource_namespace,
        settings.resource_name,
        settings.lease_duration,
        settings.renew_deadline,
        settings.retry_period,
        settings.leader_elect,
    )


def _spare_the_collector() -> None:
    """What is known after the first lists lives long: the collector need not walk it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
