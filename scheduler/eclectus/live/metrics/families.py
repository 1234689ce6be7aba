"""How a metric of the table is made: counted by the process, or read at each scrape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from eclectus.live.metrics.table import FAMILIES, PREFIX

Sample = tuple[tuple[str, ...], float]
"""(label values, value)."""


# -- metrics that the process counts ---------------------------------------------------------------


def counter(name: str, registry: CollectorRegistry) -> Counter:
    """A counter of the table, registered."""
    family = FAMILIES[name]
    return Counter(family.full_name, family.help, family.labels, registry=registry)


def gauge(name: str, registry: CollectorRegistry) -> Gauge:
    """A gauge of the table, registered."""
    family = FAMILIES[name]
    return Gauge(family.full_name, family.help, family.labels, registry=registry)


def histogram(name: str, registry: CollectorRegistry, buckets: Sequence[float]) -> Histogram:
    """A histogram of the table, registered."""
    family = FAMILIES[name]
    return Histogram(family.full_name, family.help, family.labels, registry=registry, buckets=buckets)


# -- metrics that are read at each scrape ----------------------------------------------------------


def observed(name: str, samples: Iterable[Sample]) -> Metric:
    """A gauge or a counter of the table with its present values; counters count from the process's start."""
    family = FAMILIES[name]
    kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    found = kind(PREFIX + family.name, family.help, labels=family.labels)
    for values, figure in samples:
        found.add_metric(values, figure)
    return found
