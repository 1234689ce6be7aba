"""Replicas of the scheduler, with the parts that run in a cluster: network, clock and signals are played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, ClassVar

from typing_extensions import override

from eclectus.config.configuration import parse
from eclectus.engine.engine import Engine
from eclectus.kubeclient.client import ObjectApi
from eclectus.live.parts import build
from eclectus.live.process_metrics import Context
from eclectus.live.scheduler_process import SchedulerProcess
from eclectus.tape import Header
from eclectus_e2e.chaos.network import SimulatedClient
from eclectus_e2e.chaos.replicas import Replica
from eclectus_e2e.chaos.virtual_time import Process, VirtualLoop, run_in


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
class Scheduler(Replica):
    """One scheduler. Its front has a process of its own: a long step keeps the main loop alone."""

    configuration_text: str = field(kw_only=True)
    on_step: Callable[[str, Mapping[str, int]], None] = field(kw_only=True)
    steps: int = 0

    loops: ClassVar[int] = 2
    write_paths: ClassVar[tuple[str, ...]] = ("/binding",)

    @override
    async def _serve(self) -> None:
        configuration = parse(self.configuration_text)  # anew: its policies belong to one engine
        settings = configuration.process
        limit = settings.client_connection.request_timeout
        client = SimulatedClient(self.network, self.main, limit)
        lease_client = SimulatedClient(self.network, self.parts[1], limit)
        engine = configuration.engine()
        self._measure(engine)
        context = Context(client, rng=Random(self.rng.random()))
        parts = build(
            engine,
            frozenset({"eclectus"}),
            settings,
            context,
            [self._observe],
            lease_api=ObjectApi(lease_client),
        )
        front: Any = _Front(self.loop, self.parts[1])
        header = partial(Header, "chaos", self.configuration_text, configuration.seed)
        await _SimulatedProcess(engine, settings, context, parts, {}, header, None, front=front).run()

    def _measure(self, engine: Engine) -> None:
        """Have it reported what each step spends on the specs of pods."""
        fuel = engine._event_handlers._specs.late.fuel  # noqa: SLF001 — nothing else tells
        renew = fuel.renew

        def renewed() -> None:
            self.on_step(self.name, fuel.spent)
            renew()

        fuel.renew = renewed  # type: ignore[method-assign]

    def _observe(self, *_: object) -> None:
        """After a step: it has taken some time, in which the main loop did nothing else."""
        self.steps += 1
        if self.step_seconds:
            main = self.main
            main.is_paused = True
            self.network.later(self.step_seconds, self.loop.go_on, main)
