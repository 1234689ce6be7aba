"""What every part of a sync uses: the context of the operator, and the snapshot of the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from eclectus.api.names import NODE_PROBES_PATH
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus
from eclectus.kubeclient.client import Object, ObjectApi, Query
from eclectus.kubeclient.errors import ApiError, MissingError
from eclectus_operator.control.nodes import NodePool
from eclectus_operator.decide.metrics import Metrics
from eclectus_operator.objects import convert, events
from eclectus_operator.objects.observed import Pod
from eclectus_operator.settings import Settings

_log = logging.getLogger(__name__)


class NotLeadingError(ApiError):
    """Nothing was sent: the Lease is not certainly ours, so another replica may lead by now."""


class Gated:
    """An ObjectApi that sends only reads while `holds_lease` is False."""

    def __init__(self, api: ObjectApi, holds_lease: Callable[[], bool]) -> None:
        self._api, self._holds_lease = api, holds_lease

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Query | None = None,
        *,
        metadata_only: bool = False,
        seconds: float | None = None,
        most_bytes: int | None = None,
    ) -> Object:
        """See ObjectApi. Raises ApiError, NotLeadingError among them."""
        if method != "GET" and not self._holds_lease():
            raise NotLeadingError(
                f"{method} {path}", message="not sent: this replica does not hold the lease"
            )
        return await self._api.send(
            method, path, body, query, metadata_only=metadata_only, seconds=seconds, most_bytes=most_bytes
        )


@dataclass(frozen=True)
class OperatorContext:
    """The API server, the settings, the clock (seconds since the epoch) and the random source."""

    api: ObjectApi
    pool: NodePool
    settings: Settings
    now: Callable[[], float]
    rng: Random
    metrics: Metrics = field(default_factory=Metrics)

    @property
    def pods_path(self) -> str:
        """Path of the probe pods."""
        return f"/api/v1/namespaces/{self.settings.namespace}/pods"


@dataclass
class Snapshot:
    """The probe pods by name and the NodeProbes by uid, each as last read or written in this sync."""

    pods: dict[str, Pod]
    probes: dict[str, NodeProbe] = field(default_factory=dict)
    invalid: set[str] = field(default_factory=set)  # uids of those whose spec cannot be obeyed
    unreadable: set[str] = field(default_factory=set)  # run ids of those whose runs cannot be read
    yielding: set[str] = field(default_factory=set)  # names of the pods that must yield their room, or have
    wake_at: float = float("inf")  # when the next sync is due, seconds since the epoch

    def wake_by(self, moment: float) -> None:
        """Sync again at this moment at the latest."""
        self.wake_at = min(self.wake_at, moment)

    def count_runs(self) -> int:
        """The runs in progress, of all NodeProbes."""
        return sum(len(probe.status.runs) for probe in self.probes.values())

    def busy_nodes(self) -> set[str]:
        """Names of the nodes with a run in progress."""
        return {run.node for probe in self.probes.values() for run in probe.status.runs}


async def write_status(
    context: OperatorContext, snapshot: Snapshot, probe: NodeProbe, status: NodeProbeStatus
) -> NodeProbe:
    """Write a NodeProbe's status if it has changed. The NodeProbe as it is then.

    Raises ApiError; ConflictError when somebody else has written since it was read.
    """
    if status == probe.status:
        return probe
    path = f"{NODE_PROBES_PATH}/{probe.metadata.name}/status"
    answer = await context.api.send("PATCH", path, convert.status_patch(probe, status))
    written = convert.read(answer, NodeProbe)
    snapshot.probes[written.metadata.uid] = written
    return written


async def delete_pod(
    context: OperatorContext, snapshot: Snapshot, name: str, uid: str, *, at_once: bool
) -> None:
    """Delete the pod with this uid, and no other of its name; not an error if it is gone. Raises ApiError.

    `at_once`: without a grace period, so without waiting for its node.
    """
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
    grace = {"gracePeriodSeconds": 0} if at_once else {}
    is_gone = at_once
    try:
        await context.api.send("DELETE", f"{context.pods_path}/{name}", {**body, **grace})
    except MissingError:
        is_gone = True
    if is_gone:
        snapshot.pods.pop(name, None)
    _log.info("deleted %s", name)


async def record_event(context: OperatorContext, event: dict[str, Any]) -> None:
    """Write an event. One that cannot be written is logged and dropped."""
    stamped = events.stamped(event, context.settings.instance, context.now())
    try:
        await context.api.send("POST", events.path(stamped), stamped)
    except ApiError as error:
        _log.warning("event not written: %s", error)
