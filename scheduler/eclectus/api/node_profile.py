"""NodeProfile: what has been learned of one node, kept in the API so that it outlives the scheduler.

The scheduler writes the status but for `lastProbe`, which the operator writes.
"""

from datetime import datetime
from functools import partial
from typing import Any

from msgspec import Struct, json

from eclectus.api.common import NOTABLE, ObjectMeta, Page, has_changed, page_of, rounded, time_text
from eclectus.api.names import API_VERSION, NODE_PROFILE
from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedNode, LearnedWork, NodeState

MAX_CLASSES = 64  # classes of work in one object: those with most samples
DEAD = "Dead"
NOTABLE_PRICE = 0.3  # a change of the price that is worth a write; prices move with the work that arrives
NOTABLE_CLASS_PRICE = 1.0  # likewise of the price for a class, 1 to 4

_STATES: dict[str, NodeState] = {"Unknown": "unknown", "Live": "live", "Suspect": "suspect", DEAD: "dead"}
_STATE_NAMES = {state: name for name, state in _STATES.items()}


class ClassRate(Struct, frozen=True):
    """What is learned of the node at one class of work."""

    name: str
    rate: float  # tasks per second
    samples: int
    confidence: float = 0.0
    price: float | None = None  # so many times as long it counts as running there; None: it has no price


class LastProbe(Struct, frozen=True, rename="camel"):
    """The last benchmark run on the node."""

    probe: str = ""
    number: int = 0
    begun_time: datetime | None = None
    ended_time: datetime | None = None
    reason: str = ""


class NodeProfileStatus(Struct, frozen=True, rename="camel"):
    """`epoch` 0: no scheduler has written it yet."""

    epoch: int = 0
    observed_time: datetime | None = None
    state: str = "Unknown"
    speed: float = 1.0
    confidence: float = 0.0
    classes: tuple[ClassRate, ...] = ()
    price: float | None = None
    last_probe: LastProbe | None = None


class NodeProfile(Struct, frozen=True):
    """A NodeProfile; its name is the node's."""

    metadata: ObjectMeta = ObjectMeta()
    status: NodeProfileStatus = NodeProfileStatus()


decode_page = partial(page_of, json.Decoder(Page[NodeProfile]), NODE_PROFILE)


def known_from(profile: NodeProfile) -> LearnedNode | None:
    """What is learned of the node; None where no scheduler has written it yet. Raises MalformedError."""
    status, name = profile.status, profile.metadata.name
    if not status.epoch or status.observed_time is None:
        return None
    if status.state not in _STATES:
        problem = f"{status.state!r} is none of {', '.join(_STATES)}"
        raise MalformedError(NODE_PROFILE, name, "status.state", problem)
    work = tuple(
        LearnedWork(each.name, each.rate, each.samples, each.confidence, each.price)
        for each in status.classes
    )
    at = status.observed_time.timestamp()
    state, price = _STATES[status.state], status.price
    return LearnedNode(name, status.epoch, at, state, status.speed, status.confidence, work, price)


def status_of(known: LearnedNode) -> dict[str, Any]:
    """The JSON of the status without `lastProbe`, and without a price where none is known."""
    work = sorted(known.work, key=lambda each: (-each.samples, each.workload))[:MAX_CLASSES]
    samples = sum(each.samples for each in known.work)
    observed_time = time_text(known.at)
    price = {} if known.price is None else {"price": rounded(known.price)}
    return price | {
        "epoch": known.epoch,
        "observedTime": observed_time,
        "state": _STATE_NAMES[known.state],
        "speed": rounded(known.speed),
        "confidence": rounded(known.confidence),
        "samples": samples,
        "classes": [_class_rate(each) for each in work],
        "conditions": [_ready_condition(known, samples, observed_time)],
    }


def _class_rate(work: LearnedWork) -> dict[str, Any]:
    price = {} if work.price is None else {"price": rounded(work.price)}
    return price | {
        "name": work.workload,
        "rate": rounded(work.rate),
        "samples": work.samples,
        "confidence": rounded(work.confidence),
    }


def new_object(node: str, uid: str) -> dict[str, Any]:
    """The JSON of a NodeProfile without a status; it is deleted together with the Node that has this uid."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    metadata = {"name": node, "ownerReferences": [owner]}
    return {"apiVersion": API_VERSION, "kind": NODE_PROFILE, "metadata": metadata}


def differs(old: LearnedNode, new: LearnedNode) -> bool:
    """Whether the change is worth a write: another state or price, a tenth of a rate, twice the samples."""
    if old.state != new.state or abs(old.confidence - new.confidence) > NOTABLE:
        return True
    if new.price is not None and abs((old.price or 0.0) - new.price) >= NOTABLE_PRICE:
        return True
    before = {each.workload: each for each in old.work}
    for each in new.work:
        was = before.get(each.workload)
        if was is None or each.samples >= 2 * max(was.samples, 1) or has_changed(was.rate, each.rate):
            return True
        if each.price is not None and abs(each.price - (was.price or 1.0)) >= NOTABLE_CLASS_PRICE:
            return True
    return has_changed(old.speed, new.speed)


def _ready_condition(known: LearnedNode, samples: int, moment: str) -> dict[str, Any]:
    is_measured = known.state != "unknown"
    return {
        "type": "Ready",
        "status": "True" if is_measured else "False",
        "reason": "Measured" if is_measured else "NoSamples",
        "message": f"based on {samples} samples" if is_measured else "no task has ended on this node yet",
        "lastTransitionTime": moment,
    }
