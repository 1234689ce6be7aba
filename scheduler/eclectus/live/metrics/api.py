"""Metrics of requests to servers: binds, watches, and objects that could not be read or written."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from eclectus.live.metrics.families import counter, gauge


class ApiMetrics:
    """Requests to the API server, and to the Prometheus server that measures the load of nodes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.bind_conflicts = counter("bind_conflicts", registry)
        self.uncertain_answers = counter("uncertain_binds", registry)
        self.outbox_depth = gauge("outbox_depth", registry)
        self.dropped_events = counter("dropped_events", registry)
        self.malformed_objects = counter("malformed_objects", registry)
        self.watch_restarts = counter("watch_restarts", registry)
        self.profile_writes = counter("node_profile_writes", registry)
        self.plan_writes = counter("plan_writes", registry)
        self.load_queries = counter("load_signal_queries", registry)
        self.load_nodes = gauge("load_signal_nodes", registry)
