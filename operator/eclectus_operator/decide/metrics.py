"""The operator's metrics: how and in which stage runs ended, and DagJobs (docs/reference/metrics.md)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest

from eclectus.api.node_probe import EndedBy, Outcome
from eclectus_operator.decide.dag_jobs.metrics import DagMetrics
from eclectus_operator.decide.stages import YIELDED

_FAILURES: dict[EndedBy, str] = {"Pod": "failed", "Operator": "overdue", "Other": "lost"}

# A `_created` series for each other one would double the page.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counted in kopf's thread, read in the health server's: prometheus_client locks both."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._probes = Counter(
            "eclectus_probes",
            "Probes that have ended: succeeded, failed, overdue (ended by the operator), yielded (to a pod "
            "that needed the room), or lost (refused, or deleted by others).",
            ["outcome", "stage"],
            registry=self.registry,
        )
        self.dag_jobs = DagMetrics(self.registry)

    def ended(self, outcome: Outcome) -> None:
        """Count a run that has ended; its NodeProbe's status counts it too."""
        self._probes.labels(_label(outcome), outcome.stage).inc()

    def expose(self) -> bytes:
        """The page /metrics."""
        return generate_latest(self.registry)


def _label(outcome: Outcome) -> str:
    if outcome.reason == YIELDED:
        return "yielded"
    return "succeeded" if outcome.succeeded else _FAILURES[outcome.ended_by]
