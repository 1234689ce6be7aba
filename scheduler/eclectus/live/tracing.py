"""OpenTelemetry spans of placed pods: `pod`, from when it was seen to the answer to its bind, over two more.

    pod     seen without gates . . . . . . . . . . . . . . . . . . . the API server has bound it
    queue   seen without gates . . . decided
    bind                                        first request sent . . . the API server has bound it

The moments are those of the metrics (`PodLatency`, the outbox); a pod's spans are made when it is bound, all
three at once, so nothing is kept for pods that wait. A pod that was refused waits in `queue` until the last
decision. Attributes are names alone, nothing of what a pod says about itself.

The library samples, queues up to a bound, and sends on a thread of its own. Scheduling never depends on it:
what cannot be sent is dropped there, with a line of the log.
"""

import logging
from collections.abc import Callable
from threading import Thread

from eclectus.config.process_settings import TracingSettings
from eclectus.kubeclient.timing import elapsed
from eclectus.model.commands import Bind
from eclectus.model.errors import SettingsError

try:
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    from opentelemetry.trace import SpanKind, set_span_in_context
except ImportError as error:
    advice = "from a checkout, pip install '.[otel]'"
    raise SettingsError("tracing.endpoint", f"is set, but its packages are missing: {advice}") from error

EXPORT_SECONDS = 5.0  # of one batch, repetitions included
FLUSH_SECONDS = 3.0  # at the end, which the kubelet grants 30 s; draining and the Lease take up to 22 of them

_log = logging.getLogger(__name__)


def provider_of(settings: TracingSettings) -> TracerProvider:
    """What samples spans and sends them to the collector. TLS is verified; no switch turns that off."""
    provider = TracerProvider(
        ParentBased(TraceIdRatioBased(settings.sampled_ratio)),
        Resource.create({SERVICE_NAME: "eclectus"}),
        shutdown_on_exit=False,  # would wait for 30 s: `close` is called
    )
    exporter = OTLPSpanExporter(settings.endpoint, timeout=EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class PodSpans:
    """Makes the spans of each pod that is bound.

    `seen_at` returns when a pod was seen, seconds since the epoch; `at` makes such seconds of `elapsed`.
    """

    def __init__(
        self,
        provider: TracerProvider,
        seen_at: Callable[[str], float | None],
        at: Callable[[float], float],
    ) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("eclectus")
        self._seen_at = seen_at
        self._at = at

    def observe_bound(self, bind: Bind, decided: float, sent: float) -> None:
        """The API server has bound the pod just now (a BoundObserver)."""
        seen, answered = self._seen_at(bind.uid), self._at(elapsed())
        if seen is None:  # it was deleted while its bind was under way
            return
        attributes = {
            "k8s.namespace.name": bind.namespace,
            "k8s.pod.name": bind.name,
            "k8s.pod.uid": bind.uid,
            "k8s.node.name": bind.node,
            "eclectus.profile": bind.profile,
        }
        pod = self._tracer.start_span("pod", Context(), attributes=attributes, start_time=_nanoseconds(seen))
        if pod.is_recording():
            parent = set_span_in_context(pod, Context())
            self._add("queue", parent, SpanKind.INTERNAL, seen, self._at(decided))
            self._add("bind", parent, SpanKind.CLIENT, self._at(sent), answered)
        pod.end(_nanoseconds(answered))

    def _add(self, name: str, parent: Context, kind: SpanKind, start: float, end: float) -> None:
        self._tracer.start_span(name, parent, kind, start_time=_nanoseconds(start)).end(_nanoseconds(end))

    def close(self) -> None:
        """Send what is left, for so long as the end of the process may take; blocking."""
        sending = Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(FLUSH_SECONDS)
        if sending.is_alive():
            _log.warning("tracing: spans unsent after %g s are lost; look after the collector", FLUSH_SECONDS)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
