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
import uuid
from collections.abc import Awaitable
from random import Random

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
        metrics, kinds = Metrics(), [ProbeLoop, DagLoop] if settings.dag_jobs else [ProbeLoop]
        threads: list[SyncLoop] = [
            kind(settings, leadership.holds_lease, metrics, lambda: loop.call_soon_threadsafe(ended.set))
            for kind in kinds
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


async def _wait_for_first(*waits: Awaitable[object]) -> None:
    """Wait for the first one to finish; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
