"""Kubernetes events about pods, with the reasons and notes of kube-scheduler, which people and tools know.

A bind matters more than an event: events stand back behind binds (`outbox.py`), and have a bounded queue;
they are dropped and counted when it is full. Why a pod could not be scheduled is not written any more once
something newer is known of it.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from eclectus.api.common import micro_time_text
from eclectus.kubeclient.api_errors import ApiError, ConflictError
from eclectus.kubeclient.timing import elapsed
from eclectus.live.process_metrics import Context
from eclectus.live.write.write_queues import UNDONE, Persistence, Pool
from eclectus.model.commands import Bind, Evict, MarkStraggling, Report, ReportReclaim, Warn

MAX_NAME_LENGTH = 253  # of a DNS subdomain
MAX_NOTE_BYTES = 1024  # the API refuses longer notes
ELLIPSIS = " ..."
PATIENCE_SECONDS = 120.0  # an event not written for this long is dropped; client-go: 12 tries, 10 s apart
BUCKET_EVENTS = 25  # client-go: the burst of events per object
BUCKET_SECONDS = 300.0  # client-go: the time in which one more is allowed
MAX_BUCKETS = 4096  # client-go: beyond this number the least recently used bucket is forgotten

About = Bind | Evict | MarkStraggling | Report | ReportReclaim | Warn
"""What names a pod, for an event about it."""

_log = logging.getLogger(__name__)


class TokenBuckets:
    """Limits the rate of events per object."""

    def __init__(self, capacity: int = MAX_BUCKETS) -> None:
        self._capacity = capacity
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # uid -> (tokens, as of when)

    def take(self, uid: str, now: float) -> bool:
        """Whether an event about the object may be written at `now` (seconds); takes a token if so."""
        tokens, counted = self._buckets.pop(uid, (float(BUCKET_EVENTS), now))
        tokens = min(tokens + (now - counted) / BUCKET_SECONDS, BUCKET_EVENTS)
        allowed = tokens >= 1
        self._buckets[uid] = (tokens - allowed, now)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)
        return allowed


class EventRecorder:
    """Writes events; `workers.run()` must run."""

    def __init__(
        self,
        context: Context,
        instance: str,
        capacity: int,
        in_flight: int,
        slot: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        self._context = context
        self._instance = instance
        self._capacity = capacity  # events that wait
        # Events are written without the Lease too: they say what has been done.
        self._persistence = Persistence(context.rng, lambda: True, least_pause=0.2, slot=slot)
        self._buckets = TokenBuckets()
        # By uid the FailedScheduling that is not written yet.
        self._failed: dict[str, dict[str, Any]] = {}
        self.workers: Pool[dict[str, Any]] = Pool("events", in_flight, self._write)

    def scheduled(self, bind: Bind, relaxed: str = "") -> None:
        """Record that the pod has been bound; `relaxed` ends the note."""
        note = f"Successfully assigned {bind.namespace}/{bind.name} to {bind.node}{relaxed}"
        self._add(bind, "Normal", "Scheduled", "Binding", truncate(note) if relaxed else note)

    def ignored(self, bind: Bind, note: str) -> None:
        """Record that the pod was placed without regard to a preference."""
        self._add(bind, "Warning", "PreferenceIgnored", "Scheduling", truncate(note))

    def preempted(self, evict: Evict) -> None:
        """Record that the pod was deleted to make room for another."""
        if evict.pool:
            note = f"Pool {evict.pool} takes back its {evict.claim} on node {evict.node}"
            self._add(evict, "Normal", "Reclaimed", "Reclaiming", f"{note} for pod {evict.preemptor}")
            return
        note = f"Preempted by pod {evict.preemptor} on node {evict.node}"
        if evict.claim:
            note += ": its work may begin anew, and that pod would lose more"
        self._add(evict, "Normal", "Preempted", "Preempting", note)

    def warned(self, warn: Warn) -> None:
        """Record what is wrong with a pod that is placed all the same."""
        self._add(warn, "Warning", warn.reason, "Scheduling", truncate(warn.message))

    def marked(self, mark: MarkStraggling) -> None:
        """Record that a running pod is late, or is so no more."""
        self._add(mark, "Normal", mark.reason, "Speculating", truncate(mark.message))

    def would_reclaim(self, report: ReportReclaim) -> None:
        """Record whom a pool would evict for the pod, which only tries that out."""
        pods = "1 pod" if report.victims == 1 else f"{report.victims} pods"
        of = f" of {', '.join(report.pools)}" if report.pools else ""
        takes = f"pool {report.pool} would take its {report.claim} back on node {report.node}"
        note = f"Dry run: {takes}; it would evict {pods}{of}"
        self._add(report, "Normal", "WouldReclaim", "Reclaiming", truncate(note))

    def failed(self, report: Report) -> None:
        """Record that the pod could not be scheduled."""
        if self._buckets.take(report.uid, elapsed()):
            self.outdate(report.uid)
            note = truncate(report.message)
            event = self._add(report, "Warning", "FailedScheduling", "Scheduling", note)
            if event is not None:
                self._failed[report.uid] = event
        else:
            self._context.metrics.dropped_events.labels("repeated").inc()

    def outdate(self, uid: str) -> None:
        """Drop what says that the pod could not be scheduled, as far as it is not written yet."""
        event = self._failed.pop(uid, None)
        if event is not None:
            event.clear()

    def _add(self, about: About, kind: str, reason: str, action: str, note: str) -> dict[str, Any] | None:
        if len(self.workers) >= self._capacity:
            self._context.metrics.dropped_events.labels("queue full").inc()
            return None
        fields = {"type": kind, "reason": reason, "action": action, "note": note}
        event = event_body(about, fields, self._instance, time.time_ns())
        self.workers.put(event)
        return event

    async def _write(self, event: dict[str, Any]) -> None:
        if not event:
            return
        about, reason = event["regarding"], event["reason"]

        async def post() -> None:
            if event:
                path = f"/apis/events.k8s.io/v1/namespaces/{about['namespace']}/events"
                await self._context.client.send("POST", path, event)

        try:
            if await self._persistence.attempt(post, UNDONE, PATIENCE_SECONDS) is not None:
                self._drop("unwritten", None, about, reason)
        except ConflictError:  # the name is unique: an earlier try, whose answer was lost, has written it
            pass
        except ApiError as error:
            self._drop("refused", error, about, reason)
        if self._failed.get(about["uid"]) is event:
            del self._failed[about["uid"]]

    def _drop(self, why: str, error: ApiError | None, about: dict[str, str], reason: str) -> None:
        self._context.metrics.dropped_events.labels(why).inc()
        pod = f"{about['namespace']}/{about['name']}"
        _log.warning("event %s %s: %s", reason, why, error or "no answer", extra={"pod": pod})


def event_body(about: About, fields: dict[str, str], instance: str, at_ns: int) -> dict[str, Any]:
    """An events.k8s.io/v1 Event about a pod. `at_ns`, nanoseconds since the epoch, makes its name unique."""
    serial = f".{at_ns:x}"
    body = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "namespace": about.namespace,
            "name": about.name[: MAX_NAME_LENGTH - len(serial)].rstrip("-.") + serial,
        },
        "eventTime": micro_time_text(at_ns // 1000 / 1e6),
        "reportingController": about.profile,
        "reportingInstance": instance,
        **fields,
        "regarding": _reference(about.namespace, about.name, about.uid),
    }
    if isinstance(about, Evict):
        body["related"] = _reference(about.preemptor_namespace, about.preemptor_name, about.preemptor)
    return body


def _reference(namespace: str, name: str, uid: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": name, "uid": uid}


def truncate(note: str) -> str:
    """The note within the API's limit, truncated as in kube-scheduler."""
    raw = note.encode()
    if len(raw) <= MAX_NOTE_BYTES:
        return note
    return raw[: MAX_NOTE_BYTES - len(ELLIPSIS)].decode(errors="ignore") + ELLIPSIS
