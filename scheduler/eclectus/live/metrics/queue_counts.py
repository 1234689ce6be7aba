"""The engine's own counts, in kube-scheduler's shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.engine.state import QueueCounts
from eclectus.live.metrics.families import Sample, counter, gauge


class CensusCollector(Collector):
    """Asks the engine when somebody asks us."""

    def __init__(self, census: Callable[[], QueueCounts]) -> None:
        self._census = census

    def collect(self) -> Iterable[Metric]:
        """Called when /metrics is asked for."""
        census = self._census()
        queues = {
            "active": census.active,
            "backoff": census.backoff,
            "unschedulable": census.unschedulable,
            "gated": census.gated,
            "line": census.node_queues,
        }
        held = {"nodes": census.nodes, "classes": census.classes, "assumed_pods": census.binding}
        attempts = _counted(census, "attempts", 2)
        incoming = _counted(census, "incoming", 2)
        missed = census.counts.get("missed_wakes", 0)
        yield gauge("pending_pods", "Pods waiting, by queue.", ("queue",), _by_one(queues))
        yield gauge("cache_size", "What the picture of the cluster holds.", ("type",), _by_one(held))
        yield counter("schedule_attempts", "Attempts to schedule.", ("result", "profile"), attempts)
        yield counter("queue_incoming_pods", "Pods put into a queue.", ("queue", "event"), incoming)
        yield counter(
            "pod_scheduled_after_flush",
            "Pods that only the safety flush has woken: each is a defect.",
            (),
            [((), missed)],
        )


def _by_one(figures: dict[str, int]) -> Iterator[Sample]:
    for value, figure in figures.items():
        yield (value,), figure


def _counted(census: QueueCounts, prefix: str, labels: int) -> Iterator[Sample]:
    """The counts `prefix:first label:second label` of the census; a label left out is empty."""
    for key, count in census.counts.items():
        kind, *values = key.split(":", labels)
        if kind == prefix:
            yield tuple((values + [""] * labels)[:labels]), count
