"""Replicas of the scheduler, with the parts that run in a cluster: network, clock and signals are played.

A replica that ends is started again, as the kubelet does. Its front has a process of its own, so that a long
step keeps the main loop alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from types import SimpleNamespace
from typing import Any

from typing_extensions import override

from eclectus.config.configuration import parse
from eclectus.kubeclient import leadership, timing
from eclectus.kubeclient.client import ObjectApi
from eclectus.live import scheduler_process
from eclectus.live.process_metrics import Context
from eclectus.live.scheduler_process import SchedulerProcess
from eclectus.live.write import event_recorder, evictor, status_patches
from eclectus_e2e.chaos.network import Network, SimulatedClient
from eclectus_e2e.chaos.virtual_time import EPOCH_SECONDS, PROCESS, Process, VirtualLoop, run_in

RESTART_SECONDS = 2.0  # of a process that has ended, until it runs again


class _Front:
    """The second loop of a replica: the same loop, in the context of another process."""

    def __init__(self, loop: VirtualLoop, process: Process) -> None:
        self._loop = loop
        self._process = process

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        run_in(self._process, self._loop.call_soon, callback, *args)

    def create_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self._loop.create_task(work)


class _SimulatedProcess(SchedulerProcess):
    """Serves no port."""

    async def _answer_health_checks(self, listening: Any) -> None:
        await asyncio.Event().wait()


@dataclass(eq=False)
class Replica:
    """One replica, restarted for ever. `crashes` are exceptions that ended it."""

    name: str
    loop: VirtualLoop
    network: Network
    configuration_text: str
    rng: Random
    crashes: list[BaseException] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self.main = Process(self.name)
        self.front = Process(self.name)
        self.step_seconds = 0.0  # that each step takes
        self._tasks: list[
            asyncio.Task[Any]
        ] = []  # kept, so that killed ones are not collected with a warning

    def start(self) -> None:
        """Start a new process."""
        self.main = Process(self.name)
        self.front = Process(self.name)
        self._tasks.append(run_in(self.main, self.loop.create_task, self._run()))

    def kill(self) -> None:
        """SIGKILL; it is started again after a while."""
        for process in (self.main, self.front):
            process.is_killed = True
            self.network.break_watches(process)
        self.network.later(RESTART_SECONDS, self.start)

    def terminate(self) -> None:
        """SIGTERM: it gives the Lease back, and is started again."""
        run_in(self.main, self._process._on_signal)  # noqa: SLF001 — what the loop calls on a signal

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        processes = (self.main, self.front)
        for process in processes:
            process.is_paused = True
        for process in processes:
            self.network.later(seconds, self.loop.go_on, process)

    def pause_in_write(self, seconds: float) -> None:
        """SIGSTOP between the check of the Lease and the next bind, which is sent after SIGCONT."""
        self.network.before_write[self.main] = "/binding", lambda: self.pause(seconds)

    def cut(self, seconds: float) -> None:
        """No packet passes for a while."""
        processes = (self.main, self.front)
        self.network.cut.update(processes)
        self.network.later(seconds, self.network.connect, processes)

    async def _run(self) -> None:
        main = self.main
        try:
            await self._serve()
        except Exception as error:
            self.crashes.append(error)
        if not main.is_killed:
            main.is_killed = self.front.is_killed = True
            self.network.later(RESTART_SECONDS, self.start)

    async def _serve(self) -> None:
        configuration = parse(self.configuration_text)  # anew: its policies belong to one engine
        settings = configuration.process
        limit = settings.client_connection.request_timeout
        client = SimulatedClient(self.network, self.main, limit)
        lease_client = SimulatedClient(self.network, self.front, limit)
        engine = configuration.engine()
        context = Context(client, rng=Random(self.rng.random()))
        parts = scheduler_process.build(
            engine,
            frozenset({"eclectus"}),
            settings,
            context,
            [self._observe],
            lease_api=ObjectApi(lease_client),
        )
        front: Any = _Front(self.loop, self.front)
        self._process = _SimulatedProcess(engine, settings, context, parts, {}, front=front)
        await self._process.run()

    def _observe(self, *_: object) -> None:
        """After a step: it has taken some time, in which the main loop did nothing else."""
        self.steps += 1
        if self.step_seconds:
            main = self.main
            main.is_paused = True
            self.network.later(self.step_seconds, self.loop.go_on, main)


class SimulatedMachine:
    """Clocks, host names, random identities and ports as the simulated processes see them."""

    def __init__(self, loop: VirtualLoop, rng: Random) -> None:
        def wall() -> float:
            process = PROCESS.get()
            return EPOCH_SECONDS + loop.time() + (process.wall_step_seconds if process else 0.0)

        def host() -> str:
            process = PROCESS.get()
            return process.name if process else "nobody"

        class Wall(datetime):
            """A datetime whose `now` is the process' own."""

            @classmethod
            @override
            def now(cls, tz: Any = None) -> Wall:
                return cls.fromtimestamp(wall(), tz)

        clock = SimpleNamespace(
            time=wall,
            time_ns=lambda: int(wall() * 1e9),
            clock_gettime=lambda _: loop.time(),
            CLOCK_BOOTTIME=0,
        )
        uuids = SimpleNamespace(uuid4=lambda: f"{rng.getrandbits(64):016x}")
        listening = SimpleNamespace(close=lambda: None)
        self._replaced: list[tuple[Any, str, Any]] = [
            (timing, "time", clock),
            (event_recorder, "time", clock),
            *((module, "datetime", Wall) for module in (leadership, evictor, status_patches)),
            (scheduler_process, "uuid", uuids),
            (scheduler_process, "socket", SimpleNamespace(gethostname=host)),
            (scheduler_process, "listen", lambda *_: listening),
            (scheduler_process, "bound_address", lambda _: "simulated"),
        ]

    def __enter__(self) -> None:
        self._kept = [(module, name, getattr(module, name)) for module, name, _ in self._replaced]
        for module, name, value in self._replaced:
            setattr(module, name, value)

    def __exit__(self, *_: object) -> None:
        for module, name, value in self._kept:
            setattr(module, name, value)
