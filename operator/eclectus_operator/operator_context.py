"""What every part of a sync uses: the API server, the settings, the clock, and the operator's events."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from typing_extensions import override

from eclectus.api.common import ObjectMeta, micro_time_text
from eclectus.api.dag_job import DagJobMeta
from eclectus.api.names import API_VERSION, DAG_JOB, NODE_PROBE, OPERATOR
from eclectus.kubeclient.api_errors import ApiError, MissingError
from eclectus.kubeclient.client import ApiClient, Object, ObjectApi
from eclectus_operator.cluster_nodes import NodePool
from eclectus_operator.metrics import Metrics
from eclectus_operator.observed import Metadata
from eclectus_operator.settings import Settings

CLUSTER_NAMESPACE = "default"  # the API server accepts events about cluster-scoped objects in no other one
_NOTE_CHARACTERS = 1024  # the API server accepts no longer note
_log = logging.getLogger(__name__)


class NotLeadingError(ApiError):
    """Nothing was sent: the Lease is not certainly ours, so another replica may lead by now."""


class Gated(ObjectApi):
    """Sends only reads while `holds_lease` is False; else it raises NotLeadingError."""

    def __init__(self, client: ApiClient, holds_lease: Callable[[], bool]) -> None:
        super().__init__(client)
        self._holds_lease = holds_lease

    @override
    async def send(self, method: str, path: str, *given: Any, **options: Any) -> Object:
        if method != "GET" and not self._holds_lease():
            message = "not sent: this replica does not hold the lease"
            raise NotLeadingError(f"{method} {path}", message=message)
        return await super().send(method, path, *given, **options)


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

    async def delete(self, path: str, uid: str, version: str | None = None, **options: Any) -> bool:
        """Delete the object with this uid and version, if one is given. Whether it was there.

        `options`: of the request, such as `gracePeriodSeconds`. Raises ApiError; ConflictError where another
        object has the name, or where this one has changed since that version.
        """
        wanted = {"uid": uid} if version is None else {"uid": uid, "resourceVersion": version}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": wanted, **options}
        try:
            await self.api.send("DELETE", path, body)
        except MissingError:
            return False
        return True

    async def record(
        self, about: ObjectMeta | Metadata, action: str, reason: str, note: str, *, is_warning: bool = True
    ) -> None:
        """Write an event about an object. One that cannot be written is logged and dropped."""
        regarding = {"apiVersion": API_VERSION, "kind": NODE_PROBE, "name": about.name, "uid": about.uid}
        namespace, now = CLUSTER_NAMESPACE, self.now()
        if isinstance(about, DagJobMeta):
            namespace = about.namespace
            regarding |= {"kind": DAG_JOB, "namespace": namespace}
        elif isinstance(about, Metadata):
            namespace = about.namespace
            regarding |= {"apiVersion": "v1", "kind": "Pod", "namespace": namespace}
        name = f"{about.name[:40].rstrip('.-')}.{int(now * 1e9):x}"
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time_text(now),
            "reportingController": OPERATOR,
            "reportingInstance": self.settings.instance,
            "regarding": regarding,
            "type": "Warning" if is_warning else "Normal",
            "action": action,
            "reason": reason[:128],
            "note": note[:_NOTE_CHARACTERS],
        }
        try:
            await self.api.send("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)
        except ApiError as error:
            _log.warning("event not written: %s", error)


@dataclass
class Sync:
    """A sync of whatever kind of object, and when the next one is due."""

    context: OperatorContext
    wake_at: float = field(default=float("inf"), kw_only=True)  # seconds since the epoch

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.context.now()

    def wake_by(self, moment: float) -> None:
        """Sync again at this moment at the latest."""
        self.wake_at = min(self.wake_at, moment)
