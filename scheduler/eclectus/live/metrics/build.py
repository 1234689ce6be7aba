"""Which Eclectus runs: the metric `build_info`, as other components of Kubernetes have it."""

from __future__ import annotations

import platform
from collections.abc import Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import eclectus
from eclectus.live.metrics.families import observed


class BuildInfo(Collector):
    """Reads the versions at each scrape: looking them up would cost the start of the scheduler 40 ms."""

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        yield observed("build_info", [((eclectus.__version__, platform.python_version()), 1)])

    def describe(self) -> Iterable[Metric]:
        """The name, for the registry's check at the start."""
        return [observed("build_info", [])]
