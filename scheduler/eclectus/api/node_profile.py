"""NodeProfile objects: what is learned of a node, as it stands in the API so that it outlives the process."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import DecodeError, Struct, field, json

from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedNode, LearnedWork, NodeState

PATH = "/apis/eclectus.dev/v1alpha1/nodeprofiles"
API_VERSION = "eclectus.dev/v1alpha1"
KIND = "NodeProfile"
WORK_MOST = 64  # kinds of work an object holds: those with most samples
NOTABLE = 0.1  # relative change of a rate, absolute change of a confidence, that is worth a write
DIGITS = 4  # of numbers that people read

_STATES: dict[str, NodeState] = {"Unknown": "unknown", "Live": "live", "Suspect": "suspect", "Dead": "dead"}
_NAMES = {state: name for name, state in _STATES.items()}


class _Work(Struct, frozen=True):
    name: str
    rate: float
    samples: int
    confidence: float = 0.0


class Probe(Struct, frozen=True, rename="camel"):
    """How the last run of a NodeProbe there ended."""

    ended_time: datetime | None = None
    reason: str = ""


class _Status(Struct, frozen=True, rename="camel"):
    epoch: int = 0
    observed_time: datetime | None = None
    state: str = "Unknown"
    speed: float = 1.0
    confidence: float = 0.0
    classes: tuple[_Work, ...] = ()
    last_probe: Probe | None = None


class _Metadata(Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""
    continue_: str = field(default="", name="continue")


class Profile(Struct, frozen=True):
    """One object, as far as a scheduler reads it."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class Page(Struct, frozen=True):
    """One page of a list."""

    metadata: _Metadata = _Metadata()
    items: tuple[Profile, ...] = ()


def decode_page(raw: bytes) -> Page:
    """A page of a list. Raises MalformedError: one bad object spoils its page; the schema lets none in."""
    try:
        return json.decode(raw, type=Page)
    except DecodeError as error:
        raise MalformedError("NodeProfileList", "?", "items", str(error)) from error


def known_from(profile: Profile) -> LearnedNode | None:
    """What it says; None where nothing was ever written. Raises MalformedError."""
    status, name = profile.status, profile.metadata.name
    if not status.epoch or status.observed_time is None:
        return None
    if status.state not in _STATES:
        raise MalformedError(KIND, name, "status.state", f"{status.state!r} is none of {', '.join(_STATES)}")
    work = tuple(LearnedWork(each.name, each.rate, each.samples, each.confidence) for each in status.classes)
    at = status.observed_time.timestamp()
    return LearnedNode(name, status.epoch, at, _STATES[status.state], status.speed, status.confidence, work)


def status_of(known: LearnedNode) -> dict[str, Any]:
    """The object's status, but for `lastProbe`, which is the operator's."""
    work = sorted(known.work, key=lambda each: (-each.samples, each.workload))[:WORK_MOST]
    samples = sum(each.samples for each in known.work)
    moment = datetime.fromtimestamp(known.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "epoch": known.epoch,
        "observedTime": moment,
        "state": _NAMES[known.state],
        "speed": _short(known.speed),
        "confidence": _short(known.confidence),
        "samples": samples,
        "classes": [
            {
                "name": each.workload,
                "rate": _short(each.rate),
                "samples": each.samples,
                "confidence": _short(each.confidence),
            }
            for each in work
        ],
        "conditions": [_ready(known, samples, moment)],
    }


def new_object(node: str, uid: str) -> dict[str, Any]:
    """The object without a status; it goes with its Node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    metadata = {"name": node, "ownerReferences": [owner]}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata}


def differs(one: LearnedNode, other: LearnedNode) -> bool:
    """Whether people or another process would notice: a state, a tenth of a rate, twice the samples."""
    if one.state != other.state or abs(one.confidence - other.confidence) > NOTABLE:
        return True
    before = {each.workload: each for each in one.work}
    for each in other.work:
        was = before.get(each.workload)
        if was is None or each.samples >= 2 * max(was.samples, 1) or _far(was.rate, each.rate):
            return True
    return _far(one.speed, other.speed)


def _far(one: float, other: float) -> bool:
    return abs(one - other) > NOTABLE * max(abs(one), abs(other))


def _ready(known: LearnedNode, samples: int, moment: str) -> dict[str, Any]:
    measured = known.state != "unknown"
    return {
        "type": "Ready",
        "status": "True" if measured else "False",
        "reason": "Measured" if measured else "NoSamples",
        "message": f"rests on {samples} samples" if measured else "nothing has run there to its end yet",
        "lastTransitionTime": moment,
    }


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
