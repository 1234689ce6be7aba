"""The engine's queue counts and counters, with kube-scheduler's metric names and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.engine.counters import PlanCounters, QueueCounts
from eclectus.live.metrics.families import Sample, observed


class QueueCountsCollector(Collector):
    """Asks the engine for its queue counts whenever /metrics is read."""

    def __init__(self, queue_counts: Callable[[], QueueCounts]) -> None:
        self._queue_counts = queue_counts

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        counts = self._queue_counts()
        counters = counts.counters
        queues = {
            "active": counts.active,
            "backoff": counts.backoff,
            "unschedulable": counts.unschedulable,
            "gated": counts.gated,
            "gang": counts.in_gangs,
            "line": counts.node_queues,
        }
        cached = {
            "nodes": counts.nodes,
            "classes": counts.classes,
            "assumed_pods": counts.binding,
            "dag_jobs": counts.dag_jobs,
        }
        yield observed("pending_pods", _by_one(queues))
        yield observed("nominated_pods", [((), counts.nominated)])
        yield observed("cache_size", _by_one(cached))
        yield observed("schedule_attempts", counters.attempts.items())
        yield observed("queue_incoming_pods", counters.incoming.items())
        yield observed("preemption_attempts", [((), counters.preemption_attempts)])
        yield observed("preemption_victims", [((), counters.preemption_victims)])
        yield observed("placed_by_wait_limit", [((), counters.placed_by_limit)])
        yield observed("expected_wait_seconds", counters.expected_wait_seconds.items())
        yield observed("observed_wait_seconds", counters.observed_wait_seconds.items())
        yield observed("pod_scheduled_after_flush", [((), counters.missed_activations)])
        yield from _plans(counters.plans)


def _plans(plans: PlanCounters) -> Iterator[Metric]:
    yield observed("plans", [((), plans.made)])
    yield observed("plan_slips", [((), plans.slips)])
    yield observed("plan_slip_seconds", [((), plans.slip_seconds)])
    yield observed("lent_resource_seconds", _by_resource(plans.lent_seconds))
    yield observed("borrowed_resource_seconds", _by_resource(plans.borrowed_seconds))


def _by_resource(amounts: Mapping[str, float]) -> Iterator[Sample]:
    """In whole units: cores, not thousandths."""
    for name, amount in sorted(amounts.items()):
        yield (name,), amount / 1000 if name == "cpu" else amount


def _by_one(figures: Mapping[str, float]) -> Iterator[Sample]:
    for value, figure in figures.items():
        yield (value,), figure
