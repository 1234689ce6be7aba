"""Metrics with kube-scheduler's names and shapes under our prefix, so that its dashboards need one edit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.core.state import Census

_PROFILE = ["result", "profile"]

# A `_created` series beside each other one doubles the page and tells nobody anything.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """What the shell counts. What the engine counts is read from its census when somebody asks."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.attempt_seconds = Histogram(
            "eclectus_scheduling_attempt_duration_seconds",
            "From the decision to the API server's answer to the bind.",
            _PROFILE,
            buckets=[0.001 * 2**k for k in range(15)],
            registry=registry,
        )
        self.sli_seconds = Histogram(
            "eclectus_pod_scheduling_sli_duration_seconds",
            "From first seeing a pod without gates to its bind.",
            ["attempts"],
            buckets=[0.01 * 2**k for k in range(20)],
            registry=registry,
        )
        self.step_seconds = Histogram(
            "eclectus_scheduling_algorithm_duration_seconds",
            "One step of the engine, however many pods it placed.",
            buckets=[0.0001 * 2**k for k in range(14)],
            registry=registry,
        )
        self.bind_conflicts = Counter(
            "eclectus_bind_conflicts_total", "Binds the API server refused.", ["reason"], registry=registry
        )
        self.uncertain_answers = Counter(
            "eclectus_uncertain_binds_total",
            "Binds whose answer was lost and that were settled by looking.",
            registry=registry,
        )
        self.load_queries = Counter(
            "eclectus_load_signal_queries_total",
            "Queries for the load of nodes.",
            ["result"],
            registry=registry,
        )
        self.load_nodes = Gauge(
            "eclectus_load_signal_nodes", "Nodes whose measured load is known.", registry=registry
        )
        self.profile_writes = Counter(
            "eclectus_node_profile_writes_total",
            "NodeProfiles written.",
            ["result"],
            registry=registry,
        )
        self.outbox_depth = Gauge(
            "eclectus_outbox_depth", "Requests waiting or under way.", ["queue"], registry=registry
        )
        self.dropped_events = Counter(
            "eclectus_dropped_events_total", "Kubernetes events not written.", ["reason"], registry=registry
        )
        self.malformed_objects = Counter(
            "eclectus_malformed_objects_total",
            "API objects that could not be read and were skipped.",
            ["kind"],
            registry=registry,
        )
        self.watch_restarts = Counter(
            "eclectus_watch_restarts_total",
            "Watches that ended otherwise than by their time limit.",
            ["kind"],
            registry=registry,
        )
        self.faults = Counter(
            "eclectus_policy_faults_total",
            "Actions a policy must not take and the engine refused.",
            ["policy"],
            registry=registry,
        )
        self.leader = Gauge("eclectus_leader", "1 while this replica decides.", registry=registry)

    def expose(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self.registry)


class CensusCollector(Collector):
    """The engine's own counts, in kube-scheduler's shapes."""

    def __init__(self, census: Callable[[], Census]) -> None:
        self._census = census

    def collect(self) -> Iterable[Metric]:
        """Called when /metrics is asked for."""
        census = self._census()
        yield _gauge(
            "eclectus_pending_pods",
            "Pods waiting, by queue.",
            "queue",
            {
                "active": census.active,
                "backoff": census.backoff,
                "unschedulable": census.unschedulable,
                "gated": census.gated,
                "line": census.in_line,
            },
        )
        yield _gauge(
            "eclectus_cache_size",
            "What the picture of the cluster holds.",
            "type",
            {"nodes": census.nodes, "classes": census.classes, "assumed_pods": census.binding},
        )
        yield _counter(census, "eclectus_schedule_attempts", "Attempts to schedule.", "attempts", _PROFILE)
        yield _counter(
            census, "eclectus_queue_incoming_pods", "Pods put into a queue.", "incoming", ["queue", "event"]
        )
        missed = CounterMetricFamily(
            "eclectus_pod_scheduled_after_flush",
            "Pods that only the safety flush has woken: each is a defect.",
        )
        missed.add_metric([], census.counts.get("missed_wakes", 0))
        yield missed


def _gauge(name: str, words: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family


def _counter(census: Census, name: str, words: str, prefix: str, labels: list[str]) -> Metric:
    """The counts `prefix:first label:second label` of the census; a label left out is empty."""
    family = CounterMetricFamily(name, words, labels=labels)
    for key, count in census.counts.items():
        kind, *values = key.split(":", len(labels))
        if kind == prefix:
            family.add_metric((values + [""] * len(labels))[: len(labels)], count)
    return family
