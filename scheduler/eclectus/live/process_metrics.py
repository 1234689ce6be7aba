"""Metrics that the process counts or observes, and what it observes of a pod from the watch to its bind.

`metrics_table.py` has all of them, those that `collectors.py` reads from the engine at each scrape included;
docs/metrics.md describes them. The number of values of a label is bounded, however many pods and nodes there
are.
"""

from __future__ import annotations

import logging
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
from typing_extensions import override

import eclectus
from eclectus.explain.pod import Decision
from eclectus.kubeclient.timing import elapsed
from eclectus.live.metrics_table import FAMILIES, PREFIX
from eclectus.model.commands import Bind, Command, Report
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen
from eclectus.model.objects import Task

_log = logging.getLogger(__name__)

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

    @override
    def collect(self) -> Iterable[Metric]:
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
        self._period = 0  # the number of the current period
        self._current = self._previous = 0.0  # the longest of it, and of the one before

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


# -- pods -------------------------------------------------------------------------------------------

MAX_ATTEMPTS = 14  # with more attempts the label `attempts` is "15+", as in kube-scheduler


class PodLatency:
    """Observes the latency of each pod whose schedulerName is ours, labelled with its attempts.

    `histogram` has one label, `attempts`. An attempt ends with a bind, a refused bind or a report.
    """

    def __init__(self, is_ours: Callable[[str], bool], histogram: Histogram) -> None:
        self._is_ours = is_ours
        self._histogram = histogram
        self._since: dict[str, float] = {}  # uid -> when first seen without gates
        self._attempts: dict[str, int] = {}  # uid -> attempts, the current one included

    def observe_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.gates or task.ended) and self._is_ours(
                    task.profile
                ):
                    self._since.setdefault(task.uid, now)
                case BindConfirmed(uid=uid):
                    self._bound(uid, now)
                case BindRefused(uid=uid):
                    self._count_attempt(uid)
                case TaskGone(uid=uid):
                    self._forget(uid)
                case _:
                    pass  # nodes, and pods of other schedulers
        for command in commands:
            if isinstance(command, Report):
                self._count_attempt(command.uid)

    def _count_attempt(self, uid: str) -> None:
        """One more attempt, unless the pod is gone: what a late refusal left would stay for ever."""
        if uid in self._since:
            self._attempts[uid] = self._attempts.get(uid, 1) + 1

    def _bound(self, uid: str, now: float) -> None:
        since = self._since.get(uid)
        if since is not None:
            attempts = self._attempts.get(uid, 1)
            label = str(attempts) if attempts <= MAX_ATTEMPTS else "15+"
            self._histogram.labels(label).observe(now - since)
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._since.pop(uid, None)
        self._attempts.pop(uid, None)


class PodTrace:
    """Logs what a step means for each pod of ours.

    The messages in the order of a pod: received (or held back by gates), considered, bind sent and bound
    (`live/write/outbox.py`). Why it is not placed is logged with its report, at a lower level.
    """

    def __init__(self, is_ours: Callable[[str], bool], decision: Callable[[str], Decision | None]) -> None:
        self._is_ours = is_ours
        self._decision = decision
        self._seen: dict[str, tuple[str, ...]] = {}  # uid -> gates, of each pending pod that was logged

    @staticmethod
    def is_wanted() -> bool:
        """Whether debug messages are logged."""
        return _log.isEnabledFor(logging.DEBUG)

    def observe_step(self, _now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.ended) and self._is_ours(task.profile):
                    self._received(task)
                case BindRefused(uid=uid, node=node, reason=reason):
                    _log.debug("back in the queue: %s", reason, extra={"uid": uid, "node": node})
                case TaskGone(uid=uid) | BindConfirmed(uid=uid):
                    self._seen.pop(uid, None)
                case _:
                    pass  # nodes, and pods of other schedulers
        for command in commands:
            if isinstance(command, Bind):
                self._considered(command)

    def _received(self, task: Task) -> None:
        if self._seen.get(task.uid) == task.gates:
            return
        self._seen[task.uid] = task.gates
        fields = {"pod": str(task), "uid": task.uid}
        if task.gates:
            _log.debug("received, held back by scheduling gates %s", ", ".join(task.gates), extra=fields)
        else:
            _log.debug(
                "received and queued: class %s, priority %d", task.workload, task.priority, extra=fields
            )

    def _considered(self, bind: Bind) -> None:
        found = self._decision(bind.uid)
        fields = {"pod": f"{bind.namespace}/{bind.name}", "uid": bind.uid, "node": bind.node}
        _log.debug("considered: %s", found or "nothing is known", extra=fields)
