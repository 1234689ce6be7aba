"""One operator process: it takes part in the election and, while it leads, runs kopf in threads of their own.

NodeProbes have one thread, DagJobs, whose pods are in all namespaces, another, Pools, which have no pods, a
third, and pods that may have copies a fourth, because one kopf watches the same namespaces and labels for all
kinds. kopf cancels everything else
in its loop when it ends, so the election and the health server have another loop. A process that loses the
Lease exits: a new process starts from what the API server says.

Only `on.event` handlers are used. kopf writes nothing for them, no annotation and no finalizer, so nothing
ever keeps an object from being deleted. A lost event costs at most `look_seconds`, since the controller syncs
then anyway. kopf spends milliseconds on each event, so only NodeProbes, DagJobs, their pods, Pools, and pods
that ask for copies are watched.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, cast

import kopf
from typing_extensions import override

from eclectus.api.names import DAG_JOB_LABEL, DAG_JOBS, GROUP, NODE_PROBES, POOLS, PROBES_CLAIM, VERSION
from eclectus.api.node_probe import selector
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.api_errors import ADD_TO_CLUSTER_ROLE, ApiError, MissingError
from eclectus.kubeclient.client import ObjectApi, connected
from eclectus.kubeclient.leadership import Claim, Leadership
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.access import access_of
from eclectus.kubeclient.serving.certificate import certificate_of
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.convert import ShapeError
from eclectus_operator.copies.copy_controller import SELECTOR, CopyController
from eclectus_operator.dag_jobs.dag_controller import DagController
from eclectus_operator.login import WatchLogin, credentials, login
from eclectus_operator.metrics import Metrics
from eclectus_operator.node_probes.probe_controller import RETRY_SECONDS, ProbeController
from eclectus_operator.operator_context import Gated, NotLeadingError, OperatorContext
from eclectus_operator.pools.pool_controller import PoolController
from eclectus_operator.settings import REQUEST_SECONDS, LeaseSettings, ServerSettings, Settings

# NodeProbes belong to no namespace: of two installations each would start every probe, and end the other's.
# One installation also runs all DagJobs, and writes the conditions of all Pools.
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
        api = ObjectApi(client)
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        leadership = Leadership(api, identity, lease.election, Random(), [PROBES])
        metrics = Metrics()

        def on_end() -> None:
            loop.call_soon_threadsafe(ended.set)

        threads = [
            SyncLoop(kind, settings, leadership.holds_lease, metrics, on_end) for kind in kinds(settings)
        ]
        live = {"leader-election": leadership.trouble, **{each.name: each.trouble for each in threads}}
        ready = {"api-server": leadership.unanswered}
        app = health.application(live, ready, metrics.expose, access=access_of(server, api))
        listening = listen(server.address, server.port, "--")
        _log.info("serving health checks and metrics on %s", bound_address(listening))
        election = asyncio.create_task(leadership.run())
        async with health.serving(app, listening, certificate):
            try:
                # The Lease can be lost before it leads, while it waits for its claim.
                await _wait_for_first(signalled.wait(), leadership.leading.wait(), asyncio.shield(election))
                if not (signalled.is_set() or election.done()):
                    for each in threads:
                        each.start()
                    await _wait_for_first(signalled.wait(), ended.wait(), asyncio.shield(election))
            finally:
                for each in threads:
                    await asyncio.to_thread(each.stop)
                election.cancel()
                await asyncio.wait([election])
                await leadership.resign()
    return 0 if signalled.is_set() else 1


def kinds(settings: Settings) -> list[Kind]:
    """What this process runs."""
    found = [probes(settings), pools(settings)]
    if settings.dag_jobs:
        found.append(dag_jobs(settings))
    if settings.copy_namespaces:
        found.append(copies(settings))
    return found


async def _wait_for_first(*waits: Awaitable[object]) -> None:
    """Wait for the first one to finish; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


# -- kopf in a thread, and in its loop a controller's syncs, triggered by events of a watch ---------

USER_AGENT = "eclectus-operator"
# The API server closes a watch after WATCH_SECONDS, and a connection without even a bookmark for
# SILENT_SECONDS counts as dead: without both, a watch can stay silent for hours. Whole numbers: kopf puts the
# first into the URL as it is, and the API server refuses a fraction.
WATCH_SECONDS, SILENT_SECONDS = 270, 70
HUNG_SECONDS = 120.0  # beyond look_seconds, until a controller that does not sync counts as hung
BATCH_SECONDS = 0.2  # events that arrive together cause one sync


Controller = ProbeController | DagController | PoolController | CopyController


@dataclass(frozen=True)
class Kind:
    """What one loop runs."""

    name: str  # of the loop
    plural: str  # of the custom resource that is watched; empty: none is
    pod_selector: str  # label selector of the pods that are watched; empty: none are
    where: dict[str, Any]  # arguments of kopf.operator: the namespaces that are watched
    controller: Callable[[OperatorContext], Controller]


def probes(settings: Settings) -> Kind:
    """The NodeProbes of the cluster."""
    where = {"namespaces": [settings.namespace]}
    return Kind("controller", NODE_PROBES, selector(settings.instance), where, ProbeController)


def dag_jobs(settings: Settings) -> Kind:
    """The DagJobs of the cluster, whose pods are in all namespaces."""
    return Kind("dag-jobs", DAG_JOBS, DAG_JOB_LABEL, {"clusterwide": True}, DagController)


def pools(_settings: Settings) -> Kind:
    """The Pools of the cluster."""
    return Kind(POOLS, POOLS, "", {"clusterwide": True}, PoolController)


def copies(settings: Settings) -> Kind:
    """The pods that ask for copies, in the namespaces that the admin has named."""
    return Kind("copies", "", SELECTOR, {"namespaces": list(settings.copy_namespaces)}, CopyController)


class SyncLoop(threading.Thread):
    """A controller and the watches that trigger it.

    `holds_lease`: whether anything may be written. `on_end` is called in this thread when kopf has ended, for
    whatever reason.
    """

    def __init__(
        self,
        kind: Kind,
        settings: Settings,
        holds_lease: Callable[[], bool],
        metrics: Metrics,
        on_end: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(name=kind.name, daemon=True)
        self._kind = kind
        self._settings = settings
        self._holds_lease = holds_lease
        self._metrics = metrics
        self._on_end = on_end
        self._stop_flag = threading.Event()
        self._failure: BaseException | None = None
        self._trigger = asyncio.Event()
        self._generations: dict[str, int] = {}  # by uid, of the objects whose specs are obeyed
        self._task: asyncio.Task[None] | None = None
        self._controller: Controller | None = None  # to be used in kopf's loop alone
        self._synced_at = time.monotonic()

    @override
    def run(self) -> None:
        self._synced_at = time.monotonic()  # it may have waited for the Lease for long
        running = kopf.operator(
            registry=self.registry(),
            # By default kopf asks for the user's name, which a numeric user of a container does not have.
            identity=cast("Any", self._settings.instance),
            stop_flag=self._stop_flag,
            **self._kind.where,
        )
        try:
            asyncio.run(running)
        except Exception as error:
            self._fail(error)
        finally:
            self._on_end()

    def stop(self) -> None:
        """Stop kopf, and wait until it has ended."""
        self._stop_flag.set()
        if self.is_alive():
            self.join()
        if self._failure is not None:
            _log.error("%s ended: %s", self.name, self._failure)

    def trouble(self) -> str:
        """What is wrong; empty if syncs come as they should, or it does not run. For any thread."""
        silent = time.monotonic() - self._synced_at
        is_hung = self.is_alive() and silent > self._settings.look_seconds + HUNG_SECONDS
        return f"no sync for {silent:.0f} s" if is_hung else ""

    def registry(self) -> kopf.OperatorRegistry:
        """The handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(WatchLogin(login).log_in)
        kopf.on.startup(registry=registry)(self._start)
        kopf.on.cleanup(registry=registry)(self._end)
        if self._kind.plural:
            kopf.on.event(GROUP, VERSION, self._kind.plural, registry=registry)(self._on_object)
        if self._kind.pod_selector:
            kopf.on.event("", "v1", "pods", registry=registry)(self._on_pod)
        return registry

    async def _on_object(self, event: Any, **_: Any) -> None:
        meta, is_gone = event["object"]["metadata"], event["type"] == "DELETED"
        before = self._generations.pop(meta["uid"], None)
        if not is_gone:
            self._generations[meta["uid"]] = meta["generation"]
        if is_gone or before != meta["generation"]:  # a changed status is our own write, or can wait
            self._notice(meta.get("namespace", ""), meta["name"])

    async def _on_pod(self, event: Any, **_: Any) -> None:
        meta = event["object"]["metadata"]
        self._notice(meta["namespace"], meta.get("labels", {}).get(DAG_JOB_LABEL, ""))

    def _notice(self, namespace: str, name: str) -> None:
        """Ask for a sync after an event of a NodeProbe or Pool, of a DagJob of this name, or of a pod.

        An event says only which job it is about: the sync of that job reads what has happened. Without a
        controller yet it is dropped: that lists everything first.
        """
        if isinstance(self._controller, DagController):
            if not name:
                return
            self._controller.notice((namespace, name))
        if self._controller is not None:
            self._trigger.set()

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings, self._kind.pod_selector)
        self._task = asyncio.create_task(self._work(), name="controller")
        self._task.add_done_callback(self._ended)

    async def _end(self, **_: Any) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._stop_flag.set()

    async def _work(self) -> None:
        """Sync, rest, sync again. Raises MissingError where the custom resource is not defined."""
        async with connected(credentials(login), REQUEST_SECONDS, USER_AGENT, ADD_TO_CLUSTER_ROLE) as client:
            api = Gated(client, self._holds_lease)
            now = steady_clock()
            context = OperatorContext(api, NodePool(api, now), self._settings, now, Random(), self._metrics)
            self._controller = controller = self._kind.controller(context)
            while True:
                seconds = await _sync(controller)
                self._synced_at = time.monotonic()
                await self._rest(seconds)

    async def _rest(self, seconds: float) -> None:
        """Wait for an event, at most for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._trigger.wait()
        except TimeoutError:
            return
        await asyncio.sleep(BATCH_SECONDS)
        self._trigger.clear()


def steady_clock() -> Callable[[], float]:
    """Seconds since the epoch by the clock of now; later steps of that clock change nothing.

    Back-offs, time limits and deadlines are differences of such times. By a clock that is set back by an hour
    a job would wait for so long, and by one that is set forward it would be past its deadline.
    """
    began, at = time.time(), time.monotonic()
    return lambda: began + time.monotonic() - at


def configure(settings: kopf.OperatorSettings, pod_selector: str) -> None:
    """Set kopf's own settings."""
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_SECONDS + SILENT_SECONDS
    settings.watching.connect_timeout = REQUEST_SECONDS
    settings.watching.inactivity_timeout = SILENT_SECONDS
    if pod_selector:
        settings.watching.label_selectors["", "v1", "pods"] = pod_selector
    settings.networking.request_timeout = 60.0
    settings.scanning.disabled = True  # it needs rights to namespaces and definitions
    settings.peering.standalone = True  # of two operators with one priority, kopf's peering stops both
    settings.posting.enabled = False  # the controller writes the events


async def _sync(controller: Controller) -> float:
    """Seconds until the next sync."""
    try:
        return await controller.sync()
    except MissingError:
        raise
    except NotLeadingError as error:
        _log.info("%s", error)
    except (ApiError, ShapeError) as error:
        _log.warning("sync failed: %s", error)
    return RETRY_SECONDS
