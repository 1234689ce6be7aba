"""The scheduler's part of a NodeProbe's status: how busy the cluster is (docs/operator.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from msgspec import DecodeError, Struct, field, json

from eclectus.model.errors import MalformedError
from eclectus.model.learned import LearnedLoad

PATH = "/apis/eclectus.dev/v1alpha1/nodeprobes"
CLASSES_MOST = 64  # kinds of work an object holds: those that come most
NOTABLE = 0.1  # relative change of a rate, absolute change of a share, that is worth a write
FRESH_SECONDS = 300.0  # said again after this; the operator uses no word older than ten minutes
DIGITS = 4  # of numbers that people read


class _Share(Struct, frozen=True):
    name: str
    share: float


class _Load(Struct, frozen=True, rename="camel"):
    arrival_rate: float
    service_rate: float
    observed_time: datetime
    classes: tuple[_Share, ...] = ()


class _Status(Struct, frozen=True):
    load: _Load | None = None


class _Metadata(Struct, frozen=True, rename="camel"):
    name: str = ""
    continue_: str = field(default="", name="continue")


class Probe(Struct, frozen=True):
    """A NodeProbe, as far as a scheduler reads it."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class Page(Struct, frozen=True):
    """One page of a list."""

    metadata: _Metadata = _Metadata()
    items: tuple[Probe, ...] = ()


def decode_page(raw: bytes) -> Page:
    """A page of a list. Raises MalformedError."""
    try:
        return json.decode(raw, type=Page)
    except DecodeError as error:
        raise MalformedError("NodeProbeList", "?", "items", str(error)) from error


def load_of(known: LearnedLoad, at: float) -> dict[str, Any]:
    """`status.load`; `at` in seconds since the epoch."""
    shares = sorted(known.shares, key=lambda each: (-each[1], each[0]))[:CLASSES_MOST]
    return {
        "arrivalRate": _short(known.arrivals),
        "serviceRate": _short(known.capacity),
        "observedTime": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "classes": [{"name": name, "share": _short(share)} for name, share in shares],
    }


def differs(probe: Probe, known: LearnedLoad, at: float) -> bool:
    """Whether what stands on a NodeProbe should be written anew."""
    said = probe.status.load
    if said is None or at - said.observed_time.timestamp() >= FRESH_SECONDS:
        return True
    if said.service_rate and not known.capacity:
        return False  # who has just begun takes back nothing that another knows
    if _far(said.arrival_rate, known.arrivals) or _far(said.service_rate, known.capacity):
        return True
    before, now = {each.name: each.share for each in said.classes}, dict(known.shares)
    return any(
        abs(before.get(name, 0.0) - now.get(name, 0.0)) > NOTABLE for name in before.keys() | now.keys()
    )


def _far(one: float, other: float) -> bool:
    return abs(one - other) > NOTABLE * max(abs(one), abs(other))


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
