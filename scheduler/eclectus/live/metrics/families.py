"""Families of samples for figures that are asked for, not counted: one call each."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

Sample = tuple[tuple[str, ...], float]
"""Values of the labels, and the figure."""


def gauge(name: str, words: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
    """What stands now."""
    family = GaugeMetricFamily(f"eclectus_{name}", words, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family


def counter(name: str, words: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> Metric:
    """What has been counted since the start; `_total` is added to the name."""
    family = CounterMetricFamily(f"eclectus_{name}", words, labels=labels)
    for values, figure in samples:
        family.add_metric(values, figure)
    return family
