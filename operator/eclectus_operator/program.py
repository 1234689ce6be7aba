"""One operator process: it takes part in the election and, while it leads, runs kopf in threads of their own.

NodeProbes have one thread, and DagJobs, whose pods are in all namespaces, another, because one kopf watches
the same namespaces and labels for all kinds. kopf cancels everything else in its loop when it ends, so the
election and the health server have another loop. A process that loses the Lease exits: a new process starts
from what the API server says.
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
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.api_errors import ADD_TO_CLUSTER_ROLE
from eclectus.kubeclient.client import ObjectClient, connected
from eclectus.kubeclient.leadership import Claim, Leadership
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import access_of
from eclectus.kubeclient.serving.certificate import certificate_of
from eclectus_operator.login import credentials, login
from eclectus_operator.metrics import Metrics
from eclectus_operator.settings import LeaseSettings, ServerSettings, Settings
from eclectus_operator.sync_loop import USER_AGENT, DagLoop, ProbeLoop, SyncLoop

# NodeProbes belong to no namespace: of two installations each would start every probe, and end the other's.
# One installation also runs all DagJobs.
PROBES = Claim(
    PROBES_CLAIM,
    "running the probes and DAG jobs of this cluster",
    "Set operator.enabled to false in one of the two releases, or remove one of them",
)
_log = logging.getLogger(__name__)


MakeLoop = Callable[[Callable[[BaseException], None]], SyncLoop]
"""Makes a loop from what it calls when it cannot go on."""


class KopfThread(threading.Thread):
    """kopf in a thread. `on_end` is called in that thread when kopf has ended, for whatever reason."""

    def __init__(self, name: str, make: MakeLoop, instance: str, on_end: Callable[[], object]) -> None:
        super().__init__(name=name, daemon=True)
        self._instance = instance
        self._on_end = on_end
        self._stop_flag = threading.Event()
        self._failure: BaseException | None = None
        self._loop = make(self._failed)

    def run(self) -> None:
        """Run kopf until it is asked to stop or fails."""
        running = kopf.operator(
            registry=self._loop.registry(),
            # By default kopf asks for the user's name, which a numeric user of a container does not have.
            identity=cast("Any", self._instance),
            stop_flag=self._stop_flag,
            **self._loop.where,
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
            _log.error("%s ended: %s", self.name, self._failure)

    def trouble(self) -> str:
        """What is wrong with the controller while kopf runs; empty if nothing is."""
        return self._loop.trouble() if self.is_alive() else ""

    def _failed(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop_flag.set()


async def run(settings: Settings, lease: LeaseSettings, server: ServerSettings) -> int:
    """Run until a signal (exit code 0), or until the Lease is lost or something has failed (1)."""
    loop, signalled, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    certificate = certificate_of(server)
    async with connected(credentials(login), lease.retry_period, USER_AGENT, ADD_TO_CLUSTER_ROLE) as client:
        api = ObjectClient(client)
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        leadership = Leadership(api, identity, lease.election, Random(), [PROBES])
        metrics = Metrics()
        makers = _makers(settings, leadership.holds_lease, metrics)
        threads = [
            KopfThread(name, make, settings.instance, lambda: loop.call_soon_threadsafe(ended.set))
            for name, make in makers.items()
        ]
        live = {"leader-election": leadership.trouble, **{each.name: each.trouble for each in threads}}
        ready = {"api-server": leadership.unanswered}
        app = health.application(live, ready, metrics.expose, access=access_of(server, api))
        listening = listen(server.address, server.port, "--")
        _log.info("serving health checks and metrics on %s", bound_address(listening))
        runner = await health.serve(app, listening, certificate)
        election = asyncio.create_task(leadership.run())
        try:
            await _wait_for_first(signalled.wait(), leadership.leading.wait())
            if not signalled.is_set():
                for each in threads:
                    each.start()
                await _wait_for_first(signalled.wait(), ended.wait(), asyncio.shield(election))
        finally:
            for each in threads:
                await asyncio.to_thread(each.stop)
            election.cancel()
            await asyncio.wait([election])
            await leadership.resign()
            await runner.cleanup()
    return 0 if signalled.is_set() else 1


def _makers(settings: Settings, holds_lease: Callable[[], bool], metrics: Metrics) -> dict[str, MakeLoop]:
    """Name -> what runs in a thread of its own."""
    found: dict[str, MakeLoop] = {
        "controller": lambda failed: ProbeLoop(settings, holds_lease, failed, metrics)
    }
    if settings.dag_jobs:
        found["dag-jobs"] = lambda failed: DagLoop(settings, holds_lease, failed, metrics)
    return found


async def _wait_for_first(*waits: Awaitable[object]) -> None:
    """Wait for the first one to finish; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
