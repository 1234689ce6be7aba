"""Metric families for values that are read at each scrape instead of being counted."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

Sample = tuple[tuple[str, ...], float]
"""(label values, value)."""


def gauge(name: str, help_text: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
    """A gauge `eclectus_NAME`."""
    family = GaugeMetricFamily(f"eclectus_{name}", help_text, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family


def counter(name: str, help_text: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
    """A counter `eclectus_NAME_total`, counted since the start of the process."""
    family = CounterMetricFamily(f"eclectus_{name}", help_text, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family
