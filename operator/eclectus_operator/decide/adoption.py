"""Which pods belong to which recorded runs: after a restart, and in every sync.

    in cluster   recorded
    yes          yes       adopted
    yes          no        orphan: delete it after a grace period, and only if it is this instance's own
    no           yes       lost: create it again under the same name (409: adopt it), or give the run up
    foreign      yes       taken: a pod that is not ours has the name, so a create would always meet 409
    foreign      no        left alone

A pod is created in this order: record the run, create the pod, record the pod. Wherever a crash falls, one
line of the table applies. Pods must be listed before the records are read: otherwise a pod created in between
would look like an orphan; this way it looks lost, and its creation meets 409.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eclectus.api.common import time_seconds
from eclectus.api.node_probe import NodeProbe
from eclectus.api.probe_names import NotOurs, ProbeId, recognised
from eclectus_operator.objects import pods
from eclectus_operator.objects.observed import Pod
from eclectus_operator.settings import Settings


@dataclass(frozen=True)
class Intent:
    """The pod of a recorded run."""

    namespace: str
    probe: ProbeId


@dataclass(frozen=True)
class Observed:
    """A pod as listed. `created_seconds`: on the clock of `join`'s `now_seconds`."""

    namespace: str
    name: str
    uid: str
    labels: Mapping[str, str]
    created_seconds: float
    deleting: bool = False


@dataclass(frozen=True)
class Adopted:
    """A recorded run's pod that exists."""

    intent: Intent
    pod: Observed


@dataclass(frozen=True)
class Taken:
    """A recorded run whose pod's name a foreign pod has."""

    intent: Intent
    pod: Observed
    reason: str


@dataclass(frozen=True)
class Join:
    """The result, each part in the order of the input.

    `orphans` are to be deleted now, with their uid as precondition. `young` are orphans still within the
    grace period: check them again later.
    """

    adopted: tuple[Adopted, ...]
    orphans: tuple[Observed, ...]
    young: tuple[Observed, ...]
    lost: tuple[Intent, ...]
    taken: tuple[Taken, ...]


def join(
    intents: Iterable[Intent],
    listed: Iterable[Observed],
    instance: str,
    now_seconds: float,
    grace_seconds: float,
) -> Join:
    """Join the recorded runs with the pods of one instance."""
    by_name = {(pod.namespace, pod.name): pod for pod in listed}
    adopted, lost, taken = [], [], []
    for intent in intents:
        pod = by_name.pop((intent.namespace, intent.probe.name), None)
        if pod is None:
            lost.append(intent)
        elif (found := recognised(pod.name, pod.labels, instance)) == intent.probe:
            adopted.append(Adopted(intent, pod))
        else:
            taken.append(Taken(intent, pod, _difference(found)))
    ours = [
        pod for pod in by_name.values() if isinstance(recognised(pod.name, pod.labels, instance), ProbeId)
    ]
    orphans = [pod for pod in ours if not pod.deleting]  # a terminating pod needs no second delete
    old = [pod for pod in orphans if now_seconds - pod.created_seconds >= grace_seconds]
    young = [pod for pod in orphans if now_seconds - pod.created_seconds < grace_seconds]
    return Join(tuple(adopted), tuple(old), tuple(young), tuple(lost), tuple(taken))


def intents_of(probe: NodeProbe, settings: Settings) -> list[Intent]:
    """The recorded runs of a NodeProbe, as the pods that should exist."""
    return [
        Intent(settings.namespace, pods.identity(probe, run, settings.instance)) for run in probe.status.runs
    ]


def observed(pod: Pod) -> Observed:
    """A pod, as `join` takes it."""
    meta = pod.metadata
    created = time_seconds(meta.creation_timestamp) if meta.creation_timestamp else 0.0
    is_deleting = meta.deletion_timestamp is not None
    return Observed(meta.namespace, meta.name, meta.uid, meta.labels or {}, created, is_deleting)


def _difference(found: ProbeId | NotOurs) -> str:
    return found.reason if isinstance(found, NotOurs) else f"it is attempt {found.attempt}"
