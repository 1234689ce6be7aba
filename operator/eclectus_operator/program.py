"""One operator process: it takes part in the election and, while it leads, runs kopf in a thread of its own.

kopf cancels everything else in its loop when it ends, so the election and the health server have another
loop. A process that loses the Lease exits: a new process starts from what the API server says.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
import uuid
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, cast

import kopf

from eclectus.api.names import PROBES_CLAIM
from eclectus.kubeclient.client import ObjectClient, connected
from eclectus.kubeclient.leadership import Claim, Leadership
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import access_of
from eclectus.kubeclient.serving.certificate import certificate_of
from eclectus.kubeclient.serving.listening import bound_address, listen
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.handlers import USER_AGENT, Work
from eclectus_operator.login import credentials, login
from eclectus_operator.settings import LeaseSettings, ServerSettings, Settings

# NodeProbes belong to no namespace: of two installations each would start every probe, and end the other's.
PROBES = Claim(
    PROBES_CLAIM,
    "running the probes of this cluster",
    "Set operator.enabled to false in one of the two releases, or remove one of them",
)
_log = logging.getLogger(__name__)


class KopfThread(threading.Thread):
    """kopf in a thread. `on_end` is called in that thread when kopf has ended, for whatever reason."""

    def __init__(
        self,
        settings: Settings,
        holds_lease: Callable[[], bool],
        on_end: Callable[[], object],
        metrics: Metrics,
    ) -> None:
        super().__init__(name="kopf", daemon=True)
        self._settings, self._on_end = settings, on_end
        self._stop_flag = threading.Event()
        self._failure: BaseException | None = None
        self._work = Work(settings, holds_lease, self._failed, metrics)

    def run(self) -> None:
        """Run kopf until it is asked to stop or fails."""
        running = kopf.operator(
            registry=self._work.registry(),
            namespaces=[self._settings.namespace],
            # By default kopf asks for the user's name, which a numeric user of a container does not have.
            identity=cast("Any", self._settings.instance),
            stop_flag=self._stop_flag,
        )
        try:
            asyncio.run(running)
        except Exception as error:
            self._failed(error)
        finally:
            self._on_end()

    def stop(self) -> None:
        """Tell it to stop, and wait until it has."""
        self._stop_flag.set()
        if self.is_alive():
            self.join()
        if self._failure is not None:
            _log.error("ended: %s", self._failure)

    def trouble(self) -> str:
        """What is wrong with the controller while kopf runs; empty if nothing is."""
        return self._work.trouble() if self.is_alive() else ""

    def _failed(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop_flag.set()


async def run(settings: Settings, lease: LeaseSettings, server: ServerSettings) -> int:
    """Run until a signal (exit code 0), or until the Lease is lost or something has failed (1)."""
    loop, signalled, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    certificate = certificate_of(server)
    async with connected(credentials(login), lease.retry_period, USER_AGENT) as client:
        api = ObjectClient(client)
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        leadership = Leadership(api, identity, lease.election, Random(), [PROBES])
        metrics = Metrics()
        kopf_thread = KopfThread(
            settings, leadership.holds_lease, lambda: loop.call_soon_threadsafe(ended.set), metrics
        )
        live = {"leader-election": leadership.trouble, "controller": kopf_thread.trouble}
        ready = {"api-server": leadership.unanswered}
        app = health.application(live, ready, metrics.expose, access=access_of(server, api))
        listening = listen(server.address, server.port, "--")
        _log.info("serving health checks and metrics on %s", bound_address(listening))
        runner = await health.serve(app, listening, certificate)
        election = asyncio.create_task(leadership.run())
        try:
            await _wait_for_first(signalled.wait(), leadership.leading.wait())
            if not signalled.is_set():
                kopf_thread.start()
                await _wait_for_first(signalled.wait(), ended.wait(), asyncio.shield(election))
        finally:
            await asyncio.to_thread(kopf_thread.stop)
            election.cancel()
            await asyncio.wait([election])
            await leadership.resign()
            await runner.cleanup()
    return 0 if signalled.is_set() else 1


async def _wait_for_first(*waits: Awaitable[object]) -> None:
    """Wait for the first one to finish; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
