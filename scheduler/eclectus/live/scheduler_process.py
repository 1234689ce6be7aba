"""The lifecycle of one scheduler process: standby, leader, shutdown.

The main loop watches, decides and binds. The Lease is renewed and the port is served by a second loop, the
front, on a thread of its own: however long a step of the engine takes, leadership lasts and health checks are
answered. Other pages ask the main loop, so they wait for the step.

At its end a leader sends what is decided, lets end what is under way, and gives the Lease back. The next
leader places pods by what exists once the Lease is free. A bind that is committed later is missing
from that, and two pods may get the same room. So for as long as a request may last nothing is sent
before the Lease is given back; where a write has not ended by then, the Lease is kept and expires.

The parts of the process:

    API server -> reflectors -> inbox -> loop (engine) -> outbox -> API server
                                  ^                         |
                                  +---- answers to binds ---+

The leadership decides whether anything is written. Node profiles, probe load and the load signal exchange
what is learned or measured of nodes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eclectus.api.names import (
    TAPE_PATH,
)
from eclectus.config.process_settings import ProcessSettings
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_nodes
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.api_errors import ADD_TO_CLUSTER_ROLE
from eclectus.kubeclient.client import ObjectApi, connected
from eclectus.kubeclient.credentials import Credentials
from eclectus.kubeclient.leadership import Leadership
from eclectus.kubeclient.serving.access import access_of
from eclectus.kubeclient.serving.certificate import certificate_of, check_files
from eclectus.kubeclient.serving.pages import PageParts
from eclectus.kubeclient.side_loop import entered, on, side_loop
from eclectus.live.loop import StepObserver
from eclectus.live.parts import Parts, build
from eclectus.live.process_metrics import Context
from eclectus.live.write.binder import MARGIN_SECONDS
from eclectus.live.write.outbox import Outbox
from eclectus.model.events import Paused, Resumed

if TYPE_CHECKING:
    from aiohttp import web

    from eclectus.config.configuration import RunningConfiguration
    from eclectus.live.recording import Recorder
    from eclectus.tape import Header

_log = logging.getLogger(__name__)

DRAIN_SECONDS = 10.0  # for sending what is decided; the kubelet grants 30 s by default for all of this
LATE_SECONDS = 0.5  # between two looks at whether the Lease is held for certain
FIRST_BINDS_SECONDS = 1.0  # the longest time that what no bind needs waits for the first binds
# What answers requests, and no bind needs.
SERVING = (
    "eclectus.kubeclient.serving.health",
    "eclectus.live.metrics_page",
    "eclectus.live.pages",
    "eclectus.live.recording",
    "eclectus.live.zpages",
)


async def run(
    engine: Engine,
    names: frozenset[str],
    settings: ProcessSettings,
    credentials: Credentials,
    observers: Sequence[StepObserver] = (),
    *,
    pages: Mapping[str, PageParts] = MappingProxyType({}),
    header: Callable[[], Header],
    running: RunningConfiguration,
) -> int:
    """Run a scheduler; returns the exit code. `names` are the schedulerNames of its profiles.

    `pages` are further JSON pages beside the health checks, by path; `header` is that of tapes on demand.
    `running` is the configuration, which follows its file.
    """
    seconds = settings.client_connection.request_timeout
    async with (
        connected(credentials, seconds, advice=ADD_TO_CLUSTER_ROLE) as client,
        side_loop("front") as front,
        entered(front, connected(credentials, seconds, advice=ADD_TO_CLUSTER_ROLE)) as lease_client,
    ):
        context = Context(client)
        parts = build(engine, names, settings, context, observers, lease_api=ObjectApi(lease_client))
        return await SchedulerProcess(
            engine, settings, context, parts, pages, header, running, front=front
        ).run()


@dataclass(eq=False)
class SchedulerProcess:
    """Starts the parts in order, follows the election, and ends the parts in order."""

    engine: Engine
    settings: ProcessSettings
    context: Context
    parts: Parts
    pages: Mapping[str, PageParts]  # beside those of the scheduler itself, by path
    header: Callable[[], Header]  # of tapes on demand
    running: RunningConfiguration | None  # follows its file, if there is one
    front: asyncio.AbstractEventLoop

    def __post_init__(self) -> None:
        self._started = self.parts.clock.now()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        # A signal has come, or a part has ended: the leadership ends with the Lease.
        self._ending = asyncio.Event()
        self._deciding = asyncio.Event()
        self._is_signalled = False
        self._failure: BaseException | None = None

    async def run(self) -> int:
        """Run until a signal asks to stop (returns 0) or the Lease is lost (1). Raises what a part raised."""
        # 1. SIGTERM and SIGINT ask for an orderly end.
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        # 2. The port is taken before anything is requested: another scheduler may have it.
        server = self.settings.server
        check_files(server)
        listening = listen(server.address, server.port)
        _log.info("serving health checks and metrics", extra={"address": bound_address(listening)})
        try:
            # 3. The parts run until one of them ends or a signal comes. Health checks and metrics are
            #    answered by standbys too.
            self._start_parts(listening)
            await self._ending.wait()
            if self._failure is not None:
                raise self._failure
            # 4. What is decided is sent, and when all binds have ended the Lease is given back.
            return await self._shut_down()
        finally:
            # 5. Whatever still runs is cancelled.
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            listening.close()
            # 6. The last spans are sent once no replica waits for this one any more.
            if self.parts.spans is not None:
                await asyncio.to_thread(self.parts.spans.close)

    def _start_parts(self, listening: socket.socket) -> None:
        parts = self.parts
        self._start("health", self._answer_health_checks(listening))
        parts.watchdog.watch_this()
        self._start("watchdog", on(self.front, parts.watchdog.run()))
        if self.settings.leader_election.leader_elect:
            self._start("leadership", on(self.front, parts.leadership.run()))
        self._start("outbox", parts.outbox.run())
        if parts.flow_solver is not None:
            self._start("flow-solver", parts.flow_solver.run())
        self._start("loop", parts.loop.run())
        self._start("lifecycle", self._follow_then_lead())
        if parts.load_signal is not None:
            self._start("load-signal", parts.load_signal.run())
        if self.running is not None:
            self._start("configuration", self._follow_configuration(self.running))
        if self.settings.visibility.service:
            self._start("visibility", self._serve_visibility())

    async def _follow_then_lead(self) -> None:
        """Follow the cluster as a standby; decide once this process leads."""
        parts = self.parts
        # 1. Try for the Lease before the first list: a process that leads at once needs only one list.
        await on(self.front, parts.leadership.tried.wait())
        listed_as_leader = parts.leadership.leading.is_set()
        # 2. List and watch, so that a standby knows the cluster when it takes over.
        self._start_reflectors()
        # 3. Wait until this process leads.
        await on(self.front, parts.leadership.leading.wait())
        # 4. Catch up unless the first list was made as leader. The last binds of the previous leader may be
        #    missing from our watches; a consistent read made after its lease has expired is of all of them.
        if not listed_as_leader:
            self._start_reflectors()
        for reflector in parts.reflectors:
            await reflector.synced.wait()
        # 5. Read what was learned before, and begin to publish what is learned from now on.
        if self.settings.node_profiles.enabled:
            await parts.node_profiles.recall()
            self._start("node-profiles", parts.node_profiles.run())
            self._start("probe-load", parts.probe_load.run())
        # 6. Let the engine decide.
        parts.inbox.put(Resumed())
        self._deciding.set()
        _log.info("deciding from now on")
        # 7. Decide nothing while a renewal is overdue, as it could not be sent, or pods or nodes are listed
        #    again. For ever: a part that ends stops the process.
        before = True, self._stale_times()
        while True:
            await asyncio.sleep(LATE_SECONDS)
            now = self._may_decide(before[0]), self._stale_times()
            if now != before:
                before = now
                parts.inbox.put(Resumed() if now[0] else Paused())

    def _may_decide(self, decides: bool) -> bool:
        """Whether to decide from now on. After a pause, pods and nodes must be watched again.

        An API server that was away may have come back with an older etcd: the next watch is refused then.
        """
        reflectors = self.parts.reflectors
        if not self.parts.leadership.holds_lease() or any(each.is_stale for each in reflectors):
            return False
        return decides or all(each.is_current() for each in reflectors)

    def _stale_times(self) -> int:
        return sum(reflector.stale_times for reflector in self.parts.reflectors)

    def _start_reflectors(self) -> None:
        """Start to list and watch; a reflector that runs already catches up."""
        for number, reflector in enumerate(self.parts.reflectors):
            # Cleared here, because the task may begin only after the caller has begun to wait for `synced`.
            reflector.synced.clear()
            name = f"reflector-{number}"
            if name in self._tasks:
                self._tasks.pop(name).cancel()
            self._start(name, reflector.run())

    async def _shut_down(self) -> int:
        """Stop to decide, and end the writes as `release` does; returns the exit code."""
        parts, code = self.parts, 0
        if parts.leadership.lost.is_set():
            parts.inbox.put(Paused())
            code = 1  # another process leads; this one restarts as a standby with an empty cache
        parts.loop.stop()
        limit = self.settings.client_connection.request_timeout
        if await release(self._tasks["loop"], parts.outbox, parts.leadership, limit):
            await on(self.front, parts.leadership.resign())
        return code

    def _on_signal(self) -> None:
        self._is_signalled = True
        self._ending.set()

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._on_part_ended)

    def _on_part_ended(self, task: asyncio.Task[None]) -> None:
        """No part may end before the process does: without its watches or its writes it would be useless."""
        if not task.cancelled():
            self._failure = self._failure or task.exception()
            self._ending.set()

    async def _answer_health_checks(self, listening: socket.socket) -> None:
        """Serve until cancelled; requests that come before wait in the socket's backlog."""
        # 1. The first binds go before, and others go on: to import all this takes half a second.
        await self._first_binds()
        for module in SERVING:
            await asyncio.to_thread(import_module, module)
        from eclectus.kubeclient.serving import health

        # 2. What was imported and listed lives long: it need not be traversed again.
        gc.collect()
        gc.freeze()
        # 3. From now on requests are answered. To make a certificate takes time.
        certificate = await asyncio.to_thread(certificate_of, self.settings.server)
        self.parts.advertised.serves(bound_address(listening), certificate)
        serving = health.serving(self._health_server(asyncio.get_running_loop()), listening, certificate)
        async with entered(self.front, serving):
            await asyncio.Event().wait()  # for ever

    def _health_server(self, main: asyncio.AbstractEventLoop) -> web.Application:
        """What the front serves; `main` makes all pages but the health checks."""
        from eclectus.kubeclient.serving import health
        from eclectus.live import metrics_page, zpages
        from eclectus.live.limits import Limits
        from eclectus.live.pages import ExplainPages, speeds_page
        from eclectus.live.recording import RecordingPage

        parts, client = self.parts, self.context.client
        live = {
            "ping": lambda: "",
            "main-loop": parts.watchdog.trouble,
            "loop": parts.loop.trouble,
            "leader-election": parts.leadership.trouble,
        }
        ready = {
            "api-server": parts.leadership.unanswered,
            "sync": self._unsynced,
            "shutdown": lambda: "shutting down" if self._is_signalled else "",
        }
        access = access_of(self.settings.server, ObjectApi(client))
        # Reviews of its own: many of its users must not keep those waiting who read metrics.
        reviews = access_of(self.settings.server, ObjectApi(client))
        explain = ExplainPages(
            self.engine, client, reviews, Limits(), self._why_not_deciding, parts.clock.now
        ).handlers()
        pages: dict[str, PageParts] = {
            "/speeds": partial(speeds_page, self.engine.learn.learned_cells),
            "/statusz": zpages.status(self._started, parts.clock.now, parts.leadership.why_standby),
            **self.pages,
        }
        registry = metrics_page.registry_of(self.context.metrics)
        metrics_page.register_collectors(registry, self.engine, parts.clock.now, self.settings.metrics)
        metrics = partial(metrics_page.text, registry)
        page = RecordingPage(self._recorder(), access, self._why_not_deciding, main)
        return health.application(
            live,
            ready,
            metrics,
            pages,
            access,
            handlers=explain,
            puts=zpages.PUTS,
            posts={TAPE_PATH: page.answer},
            made_by=main,
        )

    def _recorder(self) -> Recorder:
        """Makes tapes on demand."""
        from eclectus.live.recording import Recorder, listed_anew

        parts = self.parts
        return Recorder(
            self.engine,
            parts.inbox,
            parts.loop.observers,
            self.header(),
            lambda: listed_anew(self.context.client, parts.kinds_anew(), parts.clock.now),
            partial(self.engine.read, learned_nodes),
            parts.clock.now,
            lambda: self.context.rng.getrandbits(31),
        )

    async def _serve_visibility(self) -> None:
        """Serve explanations through the API server until cancelled."""
        await self._first_binds()
        await asyncio.to_thread(import_module, "eclectus.live.visibility")
        from eclectus.kubeclient.serving.access import AccessControl
        from eclectus.live.limits import Limits
        from eclectus.live.pages import ExplainPages
        from eclectus.live.said_progress import ProgressPage
        from eclectus.live.visibility import Visibility, caller_of, resources_of

        client, parts = self.context.client, self.parts
        # Its own reviews and limits: those who ask here do not use up those of the other pages.
        limits, why_not = Limits(), self._why_not_deciding
        explain = ExplainPages(
            self.engine,
            client,
            AccessControl(ObjectApi(client)),
            limits,
            why_not,
            parts.clock.now,
            caller_of,
        )
        progress = ProgressPage(self.engine, parts.inbox, parts.phase_weights, limits, why_not, caller_of)
        leads = parts.leadership.holds_lease
        url = client.credentials.endpoint.url
        settings = self.settings.visibility
        visibility = await asyncio.to_thread(Visibility, settings, ObjectApi(client), url, leads)
        await visibility.run(resources_of(explain, progress), self.front)

    async def _follow_configuration(self, running: RunningConfiguration) -> None:
        """Take over from the configuration file what may change, until cancelled."""
        await self._first_binds()
        await asyncio.to_thread(import_module, "eclectus.live.reloading")
        from eclectus.live.reloading import ConfigurationFollower

        counts = self.context.metrics.configuration_reloads
        await ConfigurationFollower(running, self.parts.inbox, self._use, counts).run()

    def _use(self, settings: ProcessSettings) -> None:
        """Of the settings of the process those that may change have changed."""
        parts = self.parts
        parts.outbox.few = settings.client_connection.writes_beside_binds
        parts.node_profiles.settings = settings.node_profiles
        parts.probe_load.interval = settings.node_profiles.interval

    async def _first_binds(self) -> None:
        """Wait until this process decides and has nothing to send, but not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_BINDS_SECONDS):
                await self._deciding.wait()
                await self.parts.outbox.wait_until_empty()

    def _why_not_deciding(self) -> str:
        standby = self.parts.leadership.why_standby()
        waiting = "" if self._deciding.is_set() else "this replica leads, but does not decide yet: ask again"
        return standby or waiting

    def _unsynced(self) -> str:
        synced = all(reflector.synced.is_set() for reflector in self.parts.reflectors)
        return "" if synced else "the first lists are not complete"


async def release(
    loop_end: Awaitable[None], outbox: Outbox, leadership: Leadership, request_seconds: float
) -> bool:
    """End the writes of a loop that has been stopped; returns whether the Lease may be given back.

    `loop_end` is cancelled if it takes too long; `request_seconds` is the time limit of a request.
    """
    # 1. What is decided is sent.
    if not await _ends_within(DRAIN_SECONDS, _drained(loop_end, outbox)):
        problem = "stopped after %g s with requests unsent; the next leader decides for those pods"
        _log.warning(problem, DRAIN_SECONDS)
    # 2. Nothing more is sent. A bind under way ends within the time limit and the margin, and the read that
    #    says how it has ended takes another moment.
    leadership.stop_writing()
    if not await _ends_within(request_seconds + 2 * MARGIN_SECONDS, outbox.wait_until_binds_ended()):
        _log.warning("keeping the lease until it expires: of some binds or evictions the end is not known")
        return False
    # 3. The next leader knows of all binds.
    return True


async def _drained(loop_end: Awaitable[None], outbox: Outbox) -> None:
    await loop_end
    await outbox.wait_until_empty()


async def _ends_within(seconds: float, work: Awaitable[None]) -> bool:
    """Whether the work ends in this time; it is cancelled if not."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True
