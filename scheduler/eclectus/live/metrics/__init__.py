"""Metrics: those that the process counts, and collectors that read the engine at each scrape.

`table.py` has all of them; docs/reference/metrics.md lists them. The number of values of a label is bounded,
however many pods and nodes there are.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest

from eclectus.live.metrics.api import ApiMetrics
from eclectus.live.metrics.build import BuildInfo
from eclectus.live.metrics.scheduling import SchedulingMetrics

__all__ = ["Metrics"]

# A `_created` series for each counter and histogram would double the page and is of no use here.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics(SchedulingMetrics, ApiMetrics):
    """The metrics that the parts of the process update; collectors register with `registry` too."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        SchedulingMetrics.__init__(self, self.registry)
        ApiMetrics.__init__(self, self.registry)
        self.registry.register(BuildInfo())
        ProcessCollector(registry=self.registry)

    def expose(self) -> bytes:
        """The body of /metrics."""
        return generate_latest(self.registry)
