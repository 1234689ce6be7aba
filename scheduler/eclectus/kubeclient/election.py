"""Leader election by a Lease, as arithmetic on one clock. Pure: Leases and times in, decisions out.

Why two replicas never lead at once. A leader counts from the moment it **sent** its last successful renewal
and stops by itself after `renew_deadline`. A standby takes over no earlier than `lease_duration` after it
**observed** that renewal, which was later than its sending. Since renew_deadline < lease_duration, the old
leader has stopped before. Each measures elapsed time on its own clock only: no two clocks are ever compared,
and a process that was suspended finds, at its first look at the clock, that its time is over. If two replicas
try at once, the resourceVersion lets one write succeed. A bind that the leader sent ends within the gap
between the two times, because no request may last longer than it (the settings ensure that); with `bindFence`
the API server refuses it as late instead.

An annotation of the Lease says where the leader's server is, and by what its certificate is known: whoever
may read the Lease can so reach the leader and verify its certificate, whatever has signed that.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field, json
from msgspec.structs import replace

from eclectus.api.common import NOT_JSON
from eclectus.api.names import SERVER
from eclectus.model.errors import MalformedError

LEASE_LABEL_LENGTH = 16  # as in charts/eclectus/templates/bindfence.yaml


class ElectionSettings(Struct, frozen=True):
    """Which Lease, and the times in seconds: `renew_deadline` is less than `lease_duration`."""

    namespace: str
    name: str
    lease_duration: float
    renew_deadline: float
    retry_period: float
    enabled: bool = True  # False: this process always leads
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # labels and annotations


def lease_label(name: str) -> str:
    """The value by which the chart's policy selects the Lease of this name, which may be too long for it."""
    return sha256(name.encode()).hexdigest()[:LEASE_LABEL_LENGTH]


class Lease(Struct, frozen=True):
    """A coordination.k8s.io/v1 Lease, as far as the election reads it."""

    holder: str = ""
    duration: float = 0.0  # seconds, as its holder promised
    acquired: str = ""  # a MicroTime, copied and never computed with
    renewed: str = ""
    transitions: int = 0
    version: str = ""  # resourceVersion


class Election:
    """One replica's view of the election. Times are seconds of a clock that counts suspended time too."""

    def __init__(self, identity: str, settings: ElectionSettings) -> None:
        self.identity = identity
        self._settings = settings
        self._lease: Lease | None = None  # as last observed; None: there is none
        self._changed_at = 0.0  # when it last changed, on our clock
        self._sent_at: float | None = None  # when our last successful renewal was sent; None: we do not lead

    def leads(self, now: float) -> bool:
        """Whether this replica certainly leads at `now`."""
        return self.seconds_left(now) > 0

    def seconds_left(self, now: float) -> float:
        """For how long this replica certainly leads on. May be called from any thread."""
        sent_at = self._sent_at
        return 0.0 if sent_at is None else max(sent_at + self._settings.renew_deadline - now, 0.0)

    @property
    def holder(self) -> str:
        """The holder of the Lease when it was last observed."""
        return self._lease.holder if self._lease else ""

    @property
    def since(self) -> str:
        """When the Lease was acquired, as last observed; each holder's time is later than the last one's."""
        return self._lease.acquired if self._lease else ""

    def observed(self, lease: Lease | None, now: float) -> None:
        """A GET has returned this Lease; None: there is no such Lease."""
        if lease != self._lease:
            self._lease, self._changed_at = lease, now
        if lease is None or lease.holder != self.identity:
            self._sent_at = None  # another process took or removed it: leadership is over at once

    def desired(self, now: float, wall: datetime) -> Lease | None:
        """The Lease to write now; None: another replica holds it and its time is not over."""
        lease, stamp, duration = self._lease, micro_time(wall), self._settings.lease_duration
        if lease is None:
            return Lease(self.identity, duration, stamp, stamp, 0)
        if lease.holder == self.identity and self._sent_at is not None:
            return Lease(self.identity, duration, lease.acquired, stamp, lease.transitions, lease.version)
        is_free = not lease.holder or now >= self._changed_at + max(lease.duration, duration)
        # A Lease that names us, but whose write we never saw succeed, is acquired anew, as a new term.
        if not is_free and lease.holder != self.identity:
            return None
        acquired = _later(wall, lease.acquired)
        return Lease(self.identity, duration, acquired, stamp, lease.transitions + 1, lease.version)

    def committed(self, lease: Lease, sent_at: float, now: float) -> None:
        """The API server accepted our write. The term counts from its sending, not from its answer."""
        self._lease, self._changed_at = lease, now
        self._sent_at = sent_at

    def resign(self) -> Lease | None:
        """Stop leading at once. The Lease to write for a standby to take at once; None if we did not lead."""
        lease = None if self._sent_at is None else self._lease
        self._sent_at = None
        return None if lease is None else replace(lease, holder="", duration=1.0)


def _later(wall: datetime, before: str) -> str:
    """The time of now as a MicroTime; a later one if another clock has written a later one before."""
    with suppress(ValueError):
        wall = max(wall, datetime.fromisoformat(before) + timedelta(microseconds=1))
    return micro_time(wall)


def micro_time(wall: datetime) -> str:
    """A MicroTime: six digits and a Z, as the API server requires."""
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


def lease_body(
    lease: Lease, settings: ElectionSettings, annotations: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The JSON object to write, with these annotations besides those of the settings.

    Its resourceVersion, if it has one, is a precondition.
    """
    metadata: dict[str, Any] = {"namespace": settings.namespace, "name": settings.name, **settings.metadata}
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
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


class LeaderServer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The server of a scheduler that leads."""

    address: str  # host:port on which it listens, an IPv6 address in brackets
    certificate: str = ""  # SHA-256 of its certificate, hexadecimal; empty: plain HTTP
    namespace: str = ""  # of its pod
    pod: str = ""  # name of its pod; empty: it does not run in a pod

    @property
    def host(self) -> str:
        """The host of the address."""
        return self.address.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port of the address."""
        return int(self.address.rpartition(":")[2])


def annotations_of(server: LeaderServer) -> dict[str, str]:
    """The annotation for the Lease."""
    return {SERVER: json.encode(server).decode()}


def leader_server(lease: str, annotations: Mapping[str, str]) -> LeaderServer | None:
    """What the annotations of a Lease of this name say; None if they do not say it. Raises MalformedError."""
    if SERVER not in annotations:
        return None
    try:
        found = json.decode(annotations[SERVER], type=LeaderServer)
        _check = found.port
    except (*NOT_JSON, ValueError) as error:
        raise MalformedError("Lease", lease, f"annotation {SERVER}", str(error)) from error
    return found
