"""Metrics: those that the process counts or observes.

`metrics_table.py` has all of them, those that `collectors.py` reads from the engine at each scrape included;
docs/metrics.md describes them. The number of values of a label is bounded, however many pods and nodes there
are.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import eclectus
from eclectus.kubeclient.timing import elapsed
from eclectus.live.metrics_table import FAMILIES, PREFIX

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


class BuildInfo(Collector):
    """Reads the versions at each scrape: looking them up would cost the start of the scheduler 40 ms."""

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        yield observed("build_info", [((eclectus.__version__, platform.python_version()), 1)])

    def describe(self) -> Iterable[Metric]:
        """The name, for the registry's check at the start."""
        return [observed("build_info", [])]


PERIOD_SECONDS = 60.0  # two scrapes at the usual interval of 30 s


class StepDurations:
    """A histogram, whose buckets show that a rare step was long, and a gauge, which shows how long."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float] = elapsed) -> None:
        self._histogram = histogram(
            "scheduling_algorithm_duration_seconds", registry, [0.0001 * 2**k for k in range(14)]
        )
        gauge("longest_step_seconds", registry).set_function(self.longest)
        self._now = now
        self._period = 0  # the number of the current period, and the longest of it and of the one before
        self._current = self._previous = 0.0

    def observe(self, seconds: float) -> None:
        """A step has taken so long."""
        self._histogram.observe(seconds)
        self._begin_period()
        self._current = max(self._current, seconds)

    def longest(self) -> float:
        """The longest of the last one to two periods, seconds; 0 without any."""
        self._begin_period()
        return max(self._current, self._previous)

    def _begin_period(self) -> None:
        period = int(self._now() / PERIOD_SECONDS)
        if period > self._period:
            self._previous = self._current if period == self._period + 1 else 0.0
            self._current, self._period = 0.0, period


# A `_created` series for each counter and histogram would double the page and is of no use here.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics that the parts of the process update; collectors register with `registry` too."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        # Scheduling decisions.
        buckets = [0.001 * 2**k for k in range(15)]
        self.attempt_seconds = histogram("scheduling_attempt_duration_seconds", registry, buckets)
        buckets = [0.01 * 2**k for k in range(20)]
        self.sli_seconds = histogram("pod_scheduling_sli_duration_seconds", registry, buckets)
        self.steps = StepDurations(registry)
        self.faults = counter("policy_faults", registry)
        self.ignored_preferences = counter("ignored_preferences", registry)
        self.relaxed_preferences = counter("relaxed_preferences", registry)
        self.leader = gauge("leader", registry)
        # Requests to the API server, and to the Prometheus server that measures the load of nodes.
        self.bind_conflicts = counter("bind_conflicts", registry)
        self.uncertain_answers = counter("uncertain_binds", registry)
        self.outbox_depth = gauge("outbox_depth", registry)
        self.dropped_events = counter("dropped_events", registry)
        self.malformed_objects = counter("malformed_objects", registry)
        self.watch_restarts = counter("watch_restarts", registry)
        self.profile_writes = counter("node_profile_writes", registry)
        self.plan_writes = counter("plan_writes", registry)
        self.load_queries = counter("load_signal_queries", registry)
        self.load_nodes = gauge("load_signal_nodes", registry)
        registry.register(BuildInfo())
        ProcessCollector(registry=registry)

    def expose(self) -> bytes:
        """The body of /metrics."""
        return generate_latest(self.registry)
