"""What is counted of the talk with servers: requests, watches, and what could not be said or read."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class Talking:
    """The API server, and the Prometheus that knows the load of nodes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(f"eclectus_{name}_total", words, labels, registry=registry)

        def gauge(name: str, words: str, *labels: str) -> Gauge:
            return Gauge(f"eclectus_{name}", words, labels, registry=registry)

        self.bind_conflicts = counter("bind_conflicts", "Binds the API server refused.", "reason")
        self.uncertain_answers = counter(
            "uncertain_binds", "Binds whose answer was lost and that were settled by looking."
        )
        self.outbox_depth = gauge("outbox_depth", "Requests waiting or under way.", "queue")
        self.dropped_events = counter("dropped_events", "Kubernetes events not written.", "reason")
        self.malformed_objects = counter(
            "malformed_objects", "API objects that could not be read and were skipped.", "kind"
        )
        self.watch_restarts = counter(
            "watch_restarts", "Watches that ended otherwise than by their time limit.", "kind"
        )
        self.profile_writes = counter("node_profile_writes", "NodeProfiles written.", "result")
        self.load_queries = counter("load_signal_queries", "Queries for the load of nodes.", "result")
        self.load_nodes = gauge("load_signal_nodes", "Nodes whose measured load is known.")
