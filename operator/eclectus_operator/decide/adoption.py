"""What a restart finds: the pods in the cluster joined with the intents written down before each create.

    in cluster   intended
    yes          yes       adopt
    yes          no        orphan: delete after a grace period, and only if it is this instance's own
    no           yes       lost: create it again under the same name (409: adopt), or give it up
    not ours     yes       taken: the name belongs to somebody else, so a create would meet 409 for ever
    not ours     no        left alone

The order of a create is: write the intent, create the pod, record the result. Wherever a crash falls, one
line of the table settles it. List the pods first and read the intents afterwards: the other way round, a
pod created in between would look like an orphan, while this way it merely looks lost and meets a 409.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eclectus.api.probe_names import NotOurs, ProbeId, recognised


@dataclass(frozen=True)
class Intent:
    """A pod that was to be created, as written down before."""

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
    """An intent and the pod that fulfils it."""

    intent: Intent
    pod: Observed


@dataclass(frozen=True)
class Taken:
    """An intent whose name a pod bears that is not ours."""

    intent: Intent
    pod: Observed
    reason: str


@dataclass(frozen=True)
class Join:
    """The answer, each part in the order of what it was made from.

    `orphans` are to be deleted now, with their uid as precondition. `young` are orphans still within
    their grace period: ask again later.
    """

    adopted: tuple[Adopted, ...]
    orphans: tuple[Observed, ...]
    young: tuple[Observed, ...]
    lost: tuple[Intent, ...]
    taken: tuple[Taken, ...]


def join(
    intents: Iterable[Intent],
    observed: Iterable[Observed],
    instance: str,
    now_seconds: float,
    grace_seconds: float,
) -> Join:
    """Settle what a predecessor left, for one instance."""
    pods = {(pod.namespace, pod.name): pod for pod in observed}
    adopted, lost, taken = [], [], []
    for intent in intents:
        pod = pods.pop((intent.namespace, intent.probe.name), None)
        if pod is None:
            lost.append(intent)
        elif (found := recognised(pod.name, pod.labels, instance)) == intent.probe:
            adopted.append(Adopted(intent, pod))
        else:
            taken.append(Taken(intent, pod, _difference(found)))
    ours = [pod for pod in pods.values() if isinstance(recognised(pod.name, pod.labels, instance), ProbeId)]
    orphans = [pod for pod in ours if not pod.deleting]  # one on its way out needs no second delete
    old = [pod for pod in orphans if now_seconds - pod.created_seconds >= grace_seconds]
    young = [pod for pod in orphans if now_seconds - pod.created_seconds < grace_seconds]
    return Join(tuple(adopted), tuple(old), tuple(young), tuple(lost), tuple(taken))


def _difference(found: ProbeId | NotOurs) -> str:
    return found.reason if isinstance(found, NotOurs) else f"it is attempt {found.attempt}"
