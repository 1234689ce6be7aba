"""Metrics of requests to servers: binds, watches, and objects that could not be read or written."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class ApiMetrics:
    """Requests to the API server, and to the Prometheus server that measures the load of nodes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, help_text: str, *labels: str) -> Counter:
            return Counter(f"eclectus_{name}_total", help_text, labels, registry=registry)

        def gauge(name: str, help_text: str, *labels: str) -> Gauge:
            return Gauge(f"eclectus_{name}", help_text, labels, registry=registry)

        self.bind_conflicts = counter("bind_conflicts", "Binds that the API server has refused.", "reason")
        self.uncertain_answers = counter(
            "uncertain_binds", "Binds whose answer was lost, so that the pod was read to find out the result."
        )
        self.outbox_depth = gauge("outbox_depth", "Requests that wait or are in flight.", "queue")
        self.dropped_events = counter(
            "dropped_events", "Kubernetes events that were dropped instead of written.", "reason"
        )
        self.malformed_objects = counter(
            "malformed_objects", "API objects that could not be decoded and were skipped.", "kind"
        )
        self.watch_restarts = counter(
            "watch_restarts", "Watches and lists that ended with an error and were restarted.", "kind"
        )
        self.profile_writes = counter("node_profile_writes", "Writes of NodeProfile objects.", "result")
        self.load_queries = counter(
            "load_signal_queries", "Queries for the measured load of nodes.", "result"
        )
        self.load_nodes = gauge("load_signal_nodes", "Nodes whose measured load is known.")
