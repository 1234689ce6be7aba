"""The parts of a scheduler process, constructed and connected; nothing of them runs yet."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from eclectus.api.names import LEASE_LABEL, PART_OF, PART_OF_LABEL, SCHEDULER_NAME_CLAIM, SCHEDULER_NAMES
from eclectus.config.process_settings import LeaderElection, ProcessSettings
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_nodes
from eclectus.explain.pod import decision_about, unmet_by
from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.credentials import SERVICE_ACCOUNT
from eclectus.kubeclient.election import ElectionSettings, LeaderServer, annotations_of, lease_label
from eclectus.kubeclient.leadership import Claim, Leadership
from eclectus.kubeclient.serving.certificate import ServingCertificate
from eclectus.kubeclient.timing import Clock
from eclectus.live.inbox import Inbox
from eclectus.live.learned_objects import NodeProfiles, ProbeLoad
from eclectus.live.loop import Loop, StepObserver, Watchdog
from eclectus.live.process_metrics import Context, PodLatency, PodTrace
from eclectus.live.watch.reflector import Reflector, WatchedKind
from eclectus.live.watch.watched_kinds import (
    ClaimStates,
    WatchedDagJobs,
    WatchedPods,
    WatchedPools,
    watched_kinds,
)
from eclectus.live.write.outbox import Known, Outbox

if TYPE_CHECKING:
    from eclectus.live.flow_solver import FlowSolver
    from eclectus.live.load_signal import LoadSignal
    from eclectus.live.tracing import PodSpans


class Parts(Struct, frozen=True):
    """Everything between an engine and an API server. Nothing runs yet."""

    inbox: Inbox
    reflectors: tuple[Reflector, ...]
    outbox: Outbox
    flow_solver: FlowSolver | None  # None: no policy asks for one
    loop: Loop
    leadership: Leadership
    watchdog: Watchdog
    advertised: AdvertisedServer
    clock: Clock
    node_profiles: NodeProfiles
    probe_load: ProbeLoad
    load_signal: LoadSignal | None  # None: no URL is configured
    spans: PodSpans | None  # None: no endpoint is configured
    phase_weights: Callable[[str], str | None]  # of a pod that may have a copy, by uid
    kinds_anew: Callable[[], list[WatchedKind]]  # all that are watched but nodes, as if nothing were known


def build(
    engine: Engine,
    names: frozenset[str],
    settings: ProcessSettings,
    context: Context,
    observers: Sequence[StepObserver],
    *,
    lease_api: ObjectApi,
) -> Parts:
    """The parts for one engine; `names` are the schedulerNames of its profiles.

    `lease_api` is the API server for the loop on which the leadership runs.
    """
    is_ours, clock, inbox = names.__contains__, Clock(), Inbox()
    advertised, watchdog = AdvertisedServer(), Watchdog()
    watched = partial(_watched, engine, is_ours, frozenset(settings.tenancy.shared_workloads))
    pods, jobs, pools = watched()
    election, profiles = settings.leader_election, settings.node_profiles
    leadership = _leadership(election, names, lease_api, context, advertised=advertised, watchdog=watchdog)
    holds_lease = leadership.holds_lease
    context.metrics.leader.set_function(holds_lease)
    known = _known(engine, pods, jobs, pools, leadership)
    flow_solver = _flow_solver(engine, inbox, context) if engine.asks_solver else None
    latency = PodLatency(is_ours, context.metrics.sli_seconds)
    spans = _spans(settings, latency, clock) if settings.tracing.endpoint else None
    outbox = Outbox(
        context,
        inbox,
        known,
        holds_lease,
        settings.client_connection,
        instance=f"eclectus-{socket.gethostname()}"[:128],
        solve=None if flow_solver is None else flow_solver.put,
        observe_bound=None if spans is None else spans.observe_bound,
    )
    kinds = watched_kinds(engine.needs, pods, jobs, pools, known.claims)
    observers = [latency.observe_step, *_trace(engine, is_ours), *observers]
    return Parts(
        inbox=inbox,
        reflectors=tuple(Reflector(kind, context, inbox, clock.now) for kind in kinds),
        outbox=outbox,
        flow_solver=flow_solver,
        loop=Loop(engine, inbox, outbox, clock.now, context.metrics.steps.observe, observers),
        leadership=leadership,
        watchdog=watchdog,
        advertised=advertised,
        clock=clock,
        node_profiles=NodeProfiles(
            context, inbox, partial(engine.read, learned_nodes), holds_lease, profiles
        ),
        probe_load=ProbeLoad(context, engine.learn.learned_load, clock.now, holds_lease, profiles.interval),
        load_signal=_load_signal(settings, inbox, context) if settings.load_signal.url else None,
        spans=spans,
        phase_weights=pods.phase_weights,
        kinds_anew=lambda: _but_nodes(watched_kinds(engine.needs, *watched(), ClaimStates())),
    )


def _but_nodes(kinds: Sequence[WatchedKind]) -> list[WatchedKind]:
    return [each for each in kinds if each.name != "nodes"]


def _watched(
    engine: Engine, is_ours: Callable[[str], bool], shared: frozenset[str]
) -> tuple[WatchedPods, WatchedDagJobs, WatchedPools]:
    """What is known of the objects of these kinds: nothing yet."""
    images = engine.needs.get("images", frozenset())
    return WatchedPods(is_ours, shared, images), WatchedDagJobs(is_ours, shared), WatchedPools()


def _flow_solver(engine: Engine, inbox: Inbox, context: Context) -> FlowSolver:
    from eclectus.live.flow_solver import FlowSolver

    return FlowSolver(engine.problem, inbox, context.metrics)


def _load_signal(settings: ProcessSettings, inbox: Inbox, context: Context) -> LoadSignal:
    from eclectus.live.load_signal import LoadSignal

    return LoadSignal(settings.load_signal, inbox, context.metrics)


def _spans(settings: ProcessSettings, latency: PodLatency, clock: Clock) -> PodSpans:
    from eclectus.live.tracing import PodSpans, provider_of

    return PodSpans(provider_of(settings.tracing), latency.seen_at, clock.at)


def _known(
    engine: Engine, pods: WatchedPods, jobs: WatchedDagJobs, pools: WatchedPools, leadership: Leadership
) -> Known:
    """What writes read of what is watched, of the engine and of the leadership."""
    return Known(
        condition_state=pods.condition_states.get,
        take_ignored=pods.take_ignored,
        unmet_preferences=partial(engine.read, unmet_by),
        plan_state=jobs.plan_states.get,
        pool_state=pools.pool_states.get,
        straggler_state=pods.straggler_states.get,
        leader_since=leadership.since,
    )


def _leadership(
    election: LeaderElection,
    names: frozenset[str],
    api: ObjectApi,
    context: Context,
    *,
    advertised: AdvertisedServer,
    watchdog: Watchdog,
) -> Leadership:
    # The Lease says which names are served: `eclectus pending` reads it. The bind fence finds it by a label.
    labels = {PART_OF_LABEL: PART_OF, LEASE_LABEL: lease_label(election.resource_name)}
    metadata = {"labels": labels, "annotations": {SCHEDULER_NAMES: ",".join(sorted(names))}}
    settings = ElectionSettings(
        election.resource_namespace,
        election.resource_name,
        election.lease_duration,
        election.renew_deadline,
        election.retry_period,
        election.leader_elect,
        metadata,
    )
    # Only one installation of a cluster serves a schedulerName: two would over-commit nodes.
    where = "profiles[].schedulerName; in the chart config.profiles"
    advice = f"Serve another name ({where}), or remove one of them"
    return Leadership(
        api,
        f"{socket.gethostname()}_{uuid.uuid4()}",
        settings,
        Random(context.rng.random()),  # of its own: it runs on another thread
        [Claim(f"{SCHEDULER_NAME_CLAIM}{name}", f"schedulerName {name}", advice) for name in names],
        annotations=advertised.annotations,
        hung=watchdog.trouble,
    )


def _trace(engine: Engine, is_ours: Callable[[str], bool]) -> list[StepObserver]:
    """Observes only where debug messages are logged."""
    trace = PodTrace(is_ours, partial(engine.read, decision_about))
    return [trace.observe_step] if PodTrace.is_wanted() else []


class AdvertisedServer:
    """Unknown until the server has its certificate. `folder` is where a pod finds its namespace."""

    def __init__(self, folder: Path = SERVICE_ACCOUNT) -> None:
        self._namespace_file = folder / "namespace"
        self._address = ""
        self._certificate: ServingCertificate | None = None

    def serves(self, address: str, certificate: ServingCertificate | None) -> None:
        """The server answers at this `host:port`; in plain HTTP without a certificate."""
        self._address, self._certificate = address, certificate

    def annotations(self) -> Mapping[str, str]:
        """For the Lease: with the certificate of now, which may be replaced while the process runs."""
        if not self._address:
            return {}
        certificate = "" if self._certificate is None else self._certificate.fingerprint
        return annotations_of(LeaderServer(self._address, certificate, *self._pod()))

    def _pod(self) -> tuple[str, str]:
        """Namespace and name of the pod; empty outside of one."""
        try:
            return self._namespace_file.read_text().strip(), socket.gethostname()  # which is the pod's name
        except FileNotFoundError:
            return "", ""
