"""What is counted of probes: how each ended, and in which stage. docs/metrics.md lists it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics, generate_latest

from eclectus.api.node_probe import EndedBy, Outcome
from eclectus_operator.decide.stages import MADE_WAY

_FAILURES: dict[EndedBy, str] = {"Pod": "failed", "Operator": "overdue", "Other": "lost"}

# A `_created` series beside each other one doubles the page and tells nobody anything.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counted where kopf runs, read where /metrics is asked for: prometheus_client locks both."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._probes = Counter(
            "eclectus_probes", "Probes that have ended.", ["outcome", "stage"], registry=self.registry
        )

    def ended(self, outcome: Outcome) -> None:
        """A run has ended, and is counted in its NodeProbe's status too."""
        self._probes.labels(_word(outcome), outcome.stage).inc()

    def expose(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self.registry)


def _word(outcome: Outcome) -> str:
    if outcome.reason == MADE_WAY:
        return "made_way"
    return "succeeded" if outcome.succeeded else _FAILURES[outcome.ended_by]
