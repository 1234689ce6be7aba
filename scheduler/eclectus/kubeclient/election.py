"""Who leads, as arithmetic on one clock. Pure: Leases and times in, decisions out.

Why two replicas never lead at once. A holder counts from the moment it **sent** its last good renewal
and stops by itself after `renew_deadline`. Another takes over no earlier than `lease_duration` after it
**saw** that renewal, which was later than its sending. Since renew_deadline < lease_duration, the old
leader has stopped before. Each measures its own elapsed time only: no two clocks are ever compared, and
a process that was frozen finds, at its first look at the clock, that its time is over. Two that grab at
once are told apart by the resourceVersion: one write succeeds. What was sent while leading ends within
the gap, because no request may last longer than it (settings).

It is here, and not with the scheduler's other talk with the API server, because the operator elects too.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

from msgspec import Struct


class Terms(Protocol):
    """The times of an election, seconds: `renew_deadline` is less than `lease_duration`."""

    @property
    def lease_duration(self) -> float: ...  # noqa: D102 - the class says it
    @property
    def renew_deadline(self) -> float: ...  # noqa: D102


class Lease(Struct, frozen=True):
    """A coordination.k8s.io/v1 Lease, as far as electing needs it."""

    holder: str = ""
    duration: float = 0.0  # seconds, as its holder promised
    acquired: str = ""  # MicroTime text, carried along and never computed with
    renewed: str = ""
    transitions: int = 0
    version: str = ""  # resourceVersion


class Election:
    """One replica's view of the election."""

    def __init__(self, identity: str, terms: Terms) -> None:
        self.identity, self._terms = identity, terms
        self._seen: Lease | None = None  # as last seen; None: there is none
        self._changed_at = 0.0  # when it last changed, on our clock
        self._sent_at: float | None = None  # when our last good renewal was sent; None: we do not lead

    def leads(self, now: float) -> bool:
        """Whether we surely lead at `now`, seconds of a clock that counts suspended time too."""
        return self.left(now) > 0

    def left(self, now: float) -> float:
        """Seconds for which we surely lead on."""
        return 0.0 if self._sent_at is None else max(self._sent_at + self._terms.renew_deadline - now, 0.0)

    @property
    def holder(self) -> str:
        """Who held the Lease when it was last seen."""
        return self._seen.holder if self._seen else ""

    def saw(self, lease: Lease | None, now: float) -> None:
        """What a GET has shown; None: no such Lease."""
        if lease != self._seen:
            self._seen, self._changed_at = lease, now
        if lease is None or lease.holder != self.identity:
            self._sent_at = None  # somebody took it or removed it: whatever we thought, it is over

    def wish(self, now: float, wall: datetime) -> Lease | None:
        """The Lease we should write now; None: it is another's, and not over."""
        seen = self._seen
        stamp = micro_time(wall)
        duration = self._terms.lease_duration
        if seen is None:
            return Lease(self.identity, duration, stamp, stamp, 0)
        if seen.holder == self.identity and self._sent_at is not None:
            return Lease(self.identity, duration, seen.acquired, stamp, seen.transitions, seen.version)
        free = not seen.holder or now >= self._changed_at + max(seen.duration, duration)
        # Our own name on a Lease whose writing we never saw succeed: it counts from now, as a new term.
        if not free and seen.holder != self.identity:
            return None
        return Lease(self.identity, duration, stamp, stamp, seen.transitions + 1, seen.version)

    def wrote(self, lease: Lease, sent_at: float, now: float) -> None:
        """Our write was accepted. It counts from its sending, not from its answer."""
        self._seen, self._changed_at = lease, now
        self._sent_at = sent_at

    def resign(self) -> Lease | None:
        """Stop leading at once; the Lease to write so that another need not wait, None if it is not ours."""
        ours = self._sent_at is not None
        self._sent_at = None
        seen = self._seen
        if not ours or seen is None:
            return None
        return Lease("", 1, seen.acquired, seen.renewed, seen.transitions, seen.version)


def micro_time(wall: datetime) -> str:
    """A MicroTime: six digits and a Z, which the API server insists on."""
    return wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lease_from(found: dict[str, Any]) -> Lease:
    """A Lease from its JSON object; every field of spec may be missing."""
    spec = found.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        acquired=spec.get("acquireTime") or "",
        renewed=spec.get("renewTime") or "",
        transitions=spec.get("leaseTransitions") or 0,
        version=found.get("metadata", {}).get("resourceVersion", ""),
    )


def lease_body(lease: Lease, namespace: str, name: str) -> dict[str, Any]:
    """The JSON object to write; its version is a precondition where there is one."""
    metadata = {"namespace": namespace, "name": name}
    if lease.version:
        metadata["resourceVersion"] = lease.version
    spec: dict[str, Any] = {
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": int(lease.duration),
        "leaseTransitions": lease.transitions,
    }
    if lease.acquired:
        spec |= {"acquireTime": lease.acquired, "renewTime": lease.renewed}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
