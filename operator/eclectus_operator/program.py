"""One operator process: elect, and while leading run kopf, in a thread and loop of its own.

kopf cancels whatever else runs in its loop when it ends, so the election and the probes live in another.
Whoever loses the Lease ends: a new process makes a new picture.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, cast

import kopf

from eclectus.model.settings import Setting
from eclectus_operator import health
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.handlers import Work
from eclectus_operator.http import connected, login
from eclectus_operator.lease import Elector, LeaseSettings
from eclectus_operator.settings import Settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServerSettings:
    """Where the process is asked how it is."""

    address: Annotated[str, Setting("address of /livez, /readyz and /metrics")] = "127.0.0.1"
    port: Annotated[
        int, Setting("their port; 0 takes a free one, which the log names", least=0, most=65535)
    ] = 10279


class Operator(threading.Thread):
    """kopf in its own thread. `ended` is called, in that thread, when it is over, however that came."""

    def __init__(
        self,
        settings: Settings,
        leads: Callable[[], bool],
        ended: Callable[[], object],
        metrics: Metrics,
    ) -> None:
        super().__init__(name="kopf", daemon=True)
        self._settings, self._tell_ended = settings, ended
        self._stop_flag = threading.Event()
        self._failure: BaseException | None = None
        self._work = Work(settings, leads, self._failed, metrics)

    def run(self) -> None:
        """Run kopf until told to stop, or until it fails."""
        running = kopf.operator(
            registry=self._work.registry(),
            namespaces=[self._settings.namespace],
            # Else kopf asks for the name of the user, and in a container the number has none.
            identity=cast("Any", self._settings.instance),
            stop_flag=self._stop_flag,
        )
        try:
            asyncio.run(running)
        except Exception as error:
            self._failed(error)
        finally:
            self._tell_ended()

    def stop(self) -> None:
        """Tell it to stop, and wait until it has."""
        self._stop_flag.set()
        if self.is_alive():
            self.join()
        if self._failure is not None:
            _log.error("ended: %s", self._failure)

    def trouble(self) -> str:
        """What is wrong with it while it runs."""
        return self._work.trouble() if self.is_alive() else ""

    def _failed(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop_flag.set()


async def run(settings: Settings, lease: LeaseSettings, server: ServerSettings) -> int:
    """Run until told to stop (0), or until the Lease is lost or something has failed (1)."""
    loop, told, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    async with connected(login, lease.retry_period * 0.9) as api:
        elector = Elector(api, lease, f"{socket.gethostname()}_{uuid.uuid4()}", Random())
        metrics = Metrics()
        operator = Operator(settings, elector.leads, lambda: loop.call_soon_threadsafe(ended.set), metrics)
        live = {"leader-election": elector.trouble, "keeper": operator.trouble}
        ready = {"api-server": elector.unheard}
        runner, address = await health.serve(live, ready, metrics, server.address, server.port)
        _log.info("serving probes on %s", address)
        election = asyncio.create_task(elector.run())
        try:
            await _first(told.wait(), elector.leading.wait())
            if not told.is_set():
                _log.info("leading")
                operator.start()
                await _first(told.wait(), ended.wait(), asyncio.shield(election))
        finally:
            await asyncio.to_thread(operator.stop)
            election.cancel()
            await asyncio.wait([election])
            await elector.resign()
            await runner.cleanup()
    return 0 if told.is_set() else 1


async def _first(*waits: Awaitable[object]) -> None:
    """Wait for the first of some, and no longer for the others."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
