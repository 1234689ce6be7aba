"""Kubernetes events, in kube-scheduler's words, because people and tools read those.

An event is worth less than a bind: events have few places of their own, wait in a bounded queue, and
are dropped and counted when it is full.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Any

from eclectus.config.shell import ClientConnection
from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError, ConflictError, NotDoneError, UnsureError
from eclectus.live.context import Means
from eclectus.live.write.workers import Crew
from eclectus.model.commands import Bind, Report

NAME_MOST = 253  # of a DNS subdomain
NOTE_BYTES = 1024  # the API refuses longer notes
CUT = " ..."
PATIENCE_SECONDS = (
    120.0  # an event that could not be written for so long is dropped (client-go: 12 tries, 10 s apart)
)
BUCKET_EVENTS = 25  # client-go: this many events about one object at once…
BUCKET_SECONDS = 300.0  # …and one more in each such time
BUCKETS_MOST = 4096  # client-go: objects whose buckets are remembered

_log = logging.getLogger(__name__)


class TokenBuckets:
    """How many more events one object may have now."""

    def __init__(self, most: int = BUCKETS_MOST) -> None:
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # uid -> tokens, when counted

    def take(self, uid: str, now: float) -> bool:
        """Whether an event about the object may be written at `now`, seconds; if so, it counts."""
        tokens, counted = self._buckets.pop(uid, (float(BUCKET_EVENTS), now))
        tokens = min(tokens + (now - counted) / BUCKET_SECONDS, BUCKET_EVENTS)
        allowed = tokens >= 1
        self._buckets[uid] = (tokens - allowed, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return allowed


class Recorder:
    """Writes events. `crew.run()` must run."""

    def __init__(self, means: Means, instance: str, connection: ClientConnection) -> None:
        self._means, self._instance = means, instance
        self._most = connection.events_waiting
        self._buckets = TokenBuckets()
        self.crew: Crew[dict[str, Any]] = Crew("events", connection.events_in_flight, self._write)

    def scheduled(self, bind: Bind) -> None:
        """The pod is bound."""
        note = f"Successfully assigned {bind.namespace}/{bind.name} to {bind.node}"
        self._add(bind, "Normal", "Scheduled", "Binding", note)

    def failed(self, report: Report) -> None:
        """The pod fits nowhere, or the attempt failed."""
        if self._buckets.take(report.uid, elapsed()):
            self._add(report, "Warning", "FailedScheduling", "Scheduling", cut(report.message))
        else:
            self._means.metrics.dropped_events.labels("repeated").inc()

    def _add(self, about: Bind | Report, kind: str, reason: str, action: str, note: str) -> None:
        if len(self.crew) >= self._most:
            self._means.metrics.dropped_events.labels("queue full").inc()
            return
        said = {"type": kind, "reason": reason, "action": action, "note": note}
        self.crew.put(body(about, said, self._instance, time.time_ns()))

    async def _write(self, event: dict[str, Any]) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events"
        backoff = Backoff(0.2, 5.0, self._means.rng)
        give_up_at = elapsed() + PATIENCE_SECONDS
        while elapsed() < give_up_at:
            try:
                await self._means.client.send("POST", path, event)
            except ConflictError:  # its name is its own: an earlier try whose answer was lost has written it
                return
            except (NotDoneError, UnsureError) as error:
                await asyncio.sleep(getattr(error, "retry_after", None) or backoff.wait())
            except ApiError as error:
                self._drop("refused", error, event)
                return
            else:
                return
        self._drop("unwritten", None, event)

    def _drop(self, why: str, error: ApiError | None, event: dict[str, Any]) -> None:
        self._means.metrics.dropped_events.labels(why).inc()
        regarding = event["regarding"]
        pod = f"{regarding['namespace']}/{regarding['name']}"
        _log.warning("event %s %s: %s", event["reason"], why, error or "no answer", extra={"pod": pod})


def body(about: Bind | Report, said: dict[str, str], instance: str, at_ns: int) -> dict[str, Any]:
    """An events.k8s.io/v1 Event about a pod; `at_ns` in nanoseconds since the epoch names it too."""
    at = datetime.fromtimestamp(at_ns // 1000 / 1e6, UTC)
    serial = f".{at_ns:x}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "namespace": about.namespace,
            "name": about.name[: NAME_MOST - len(serial)].rstrip("-.") + serial,
        },
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": about.profile,
        "reportingInstance": instance,
        **said,
        "regarding": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
    }


def cut(note: str) -> str:
    """The note within the API's limit, as kube-scheduler cuts it."""
    raw = note.encode()
    if len(raw) <= NOTE_BYTES:
        return note
    return raw[: NOTE_BYTES - len(CUT)].decode(errors="ignore") + CUT
