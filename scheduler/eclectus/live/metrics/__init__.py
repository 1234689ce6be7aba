"""Metrics: what the shell counts, and what the engine and the learner are asked when somebody looks.

kube-scheduler's names and shapes under our prefix where it has such figures, so that its dashboards need one
edit. docs/metrics.md lists them all; none has a label whose values grow with pods or nodes.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest

from eclectus.live.metrics.api import Talking
from eclectus.live.metrics.scheduling import Deciding

__all__ = ["Metrics"]

# A `_created` series beside each other one doubles the page and tells nobody anything.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(Deciding, Talking):
    """All that parts of the shell count; collectors of what others count are registered beside it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        Deciding.__init__(self, self.registry)
        Talking.__init__(self, self.registry)

    def expose(self) -> bytes:
        """The text of /metrics."""
        return generate_latest(self.registry)
