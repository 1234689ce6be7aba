"""The parts of a scheduler process, constructed and connected.

    API server -> reflectors -> inbox -> loop (engine) -> outbox -> API server
                                  ^                         |
                                  +---- answers to binds ---+

The leadership decides whether anything is written. Node profiles, probe load and the load signal exchange
what is learned or measured of nodes.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from eclectus.api.names import PART_OF, PART_OF_LABEL, SCHEDULER_NAME_CLAIM, SCHEDULER_NAMES
from eclectus.config.process_settings import LeaderElection, ProcessSettings
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_nodes
from eclectus.explain.pod import decision_about, unmet_by
from eclectus.kubeclient.client import ObjectApi
from eclectus.kubeclient.credentials import SERVICE_ACCOUNT
from eclectus.kubeclient.election import ElectionSettings, LeaderServer, annotations_of
from eclectus.kubeclient.leadership import Claim, Leadership
from eclectus.kubeclient.serving.certificate import ServingCertificate
from eclectus.kubeclient.timing import Clock
from eclectus.live.context import Context
from eclectus.live.inbox import Inbox
from eclectus.live.learned_objects import NodeProfiles, ProbeLoad
from eclectus.live.load_signal import LoadSignal
from eclectus.live.loop import Loop, StepObserver, Watchdog
from eclectus.live.process_metrics import PodLatency, PodTrace, register_collectors
from eclectus.live.watch.reflector import Reflector
from eclectus.live.watch.watched_kinds import WatchedDagJobs, WatchedPods, watched_kinds
from eclectus.live.write.outbox import Known, Outbox


@dataclass(frozen=True)
class Parts:
    """Everything between an engine and an API server. Nothing runs yet."""

    inbox: Inbox
    reflectors: tuple[Reflector, ...]
    outbox: Outbox
    loop: Loop
    leadership: Leadership
    watchdog: Watchdog
    advertised: AdvertisedServer
    clock: Clock
    node_profiles: NodeProfiles
    probe_load: ProbeLoad
    load_signal: LoadSignal | None  # None: no URL is configured


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
    is_ours = names.__contains__
    clock = Clock()
    inbox = Inbox()
    advertised = AdvertisedServer()
    watchdog = Watchdog()
    shared = frozenset(settings.tenancy.shared_workloads)
    pods = WatchedPods(is_ours, shared, engine.needs.get("images", frozenset()))
    jobs = WatchedDagJobs(is_ours, shared)
    register_collectors(context.metrics.registry, engine, clock.now, settings.metrics)
    election = settings.leader_election
    leadership = _leadership(election, names, lease_api, context, advertised=advertised, watchdog=watchdog)
    holds_lease = leadership.holds_lease
    profiles = settings.node_profiles
    known = Known(
        condition_state=pods.condition_states.get,
        take_ignored=pods.take_ignored,
        unmet_preferences=partial(engine.read, unmet_by),
        plan_state=jobs.plan_states.get,
        leader_since=leadership.since,
    )
    instance = f"eclectus-{socket.gethostname()}"[:128]
    outbox = Outbox(context, inbox, known, holds_lease, settings.client_connection, instance=instance)
    kinds = watched_kinds(engine.needs, pods, jobs, known.claims)
    latency = PodLatency(is_ours, context.metrics.sli_seconds)
    return Parts(
        inbox=inbox,
        reflectors=tuple(Reflector(kind, context, inbox, clock.now) for kind in kinds),
        outbox=outbox,
        loop=Loop(
            engine,
            inbox,
            outbox,
            clock.now,
            observe_seconds=context.metrics.steps.observe,
            observers=[latency.observe_step, *_trace(engine, is_ours), *observers],
        ),
        leadership=leadership,
        watchdog=watchdog,
        advertised=advertised,
        clock=clock,
        node_profiles=NodeProfiles(
            context, inbox, partial(engine.read, learned_nodes), holds_lease, profiles
        ),
        probe_load=ProbeLoad(context, engine.learned_load, clock.now, holds_lease, profiles.interval),
        load_signal=LoadSignal(settings.load_signal, inbox, context.metrics)
        if settings.load_signal.url
        else None,
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
    # The Lease says which names are served: `eclectus pending` reads it.
    metadata = {"labels": {PART_OF_LABEL: PART_OF}, "annotations": {SCHEDULER_NAMES: ",".join(sorted(names))}}
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
        on_change=context.metrics.leader.set,
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
