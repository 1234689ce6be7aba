"""Metrics that the process counts or observes, and what it observes of a pod from the watch to its bind.

`metrics_table.py` has all of them, docs/metrics.md describes them. Some are read from the engine at each
scrape. Queue counts have the metric names and labels of kube-scheduler. What is learned, and prices of nodes,
are by group of nodes, class of work and set of constraints; the number of all values of a label is bounded,
however many pods and nodes there are.
"""

import logging
import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar, get_args

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
from eclectus.accounts.node_prices import PriceSummary
from eclectus.cluster.nodes import OTHER
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.engine.counters import QueueCounts
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_summary, summary_of_prices
from eclectus.explain.pod import Decision
from eclectus.explain.pools import standings
from eclectus.kubeclient.client import ApiClient
from eclectus.kubeclient.timing import elapsed
from eclectus.live.metrics_table import FAMILIES, PREFIX
from eclectus.model.commands import Bind, Command, Report
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen
from eclectus.model.explanation import PoolStanding
from eclectus.model.learned import ConstraintDemand, LearnedGroup, LearnedSummary, NodeState
from eclectus.model.objects import Task

_log = logging.getLogger(__name__)

Sample = tuple[tuple[str, ...], float]
"""(label values, value)."""


# -- metrics that the process counts ---------------------------------------------------------------


_M = TypeVar("_M", Counter, Gauge, Histogram)


def registered(kind: type[_M], name: str, registry: CollectorRegistry, **options: Any) -> _M:
    """A metric of the table, of this kind."""
    family = FAMILIES[name]
    return kind(family.full_name, family.help, family.labels, registry=registry, **options)


# -- metrics that are read at each scrape ----------------------------------------------------------


def observed(name: str, samples: Iterable[Sample]) -> Metric:
    """A gauge or a counter of the table with its present values; counters count from the process's start."""
    family = FAMILIES[name]
    kind = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    found = kind(PREFIX + family.name, family.help, labels=family.labels)
    for values, figure in samples:
        found.add_metric(values, figure)
    return found


@dataclass(frozen=True)
class AtScrape(Collector):
    """Has the registry read metrics from a source at each scrape."""

    metrics: Callable[[], Iterable[Metric]]

    @override
    def collect(self) -> Iterable[Metric]:
        return self.metrics()


def build_info() -> Iterator[Metric]:
    """The versions; not at the start of the scheduler, where looking them up would cost 40 ms."""
    yield observed("build_info", [((eclectus.__version__, platform.python_version()), 1)])


PERIOD_SECONDS = 60.0  # two scrapes at the usual interval of 30 s


class StepDurations:
    """A histogram, whose buckets show that a rare step was long, and a gauge, which shows how long."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float] = elapsed) -> None:
        name, buckets = "scheduling_algorithm_duration_seconds", [0.0001 * 2**k for k in range(14)]
        self._histogram = registered(Histogram, name, registry, buckets=buckets)
        registered(Gauge, "longest_step_seconds", registry).set_function(self.longest)
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
        self.attempt_seconds = registered(
            Histogram, "scheduling_attempt_duration_seconds", registry, buckets=buckets
        )
        buckets = [0.01 * 2**k for k in range(20)]
        self.sli_seconds = registered(
            Histogram, "pod_scheduling_sli_duration_seconds", registry, buckets=buckets
        )
        self.steps = StepDurations(registry)
        self.faults = registered(Counter, "policy_faults", registry)
        self.ignored_preferences = registered(Counter, "ignored_preferences", registry)
        self.relaxed_preferences = registered(Counter, "relaxed_preferences", registry)
        self.leader = registered(Gauge, "leader", registry)
        # Requests to the API server, and to the Prometheus server that measures the load of nodes.
        self.bind_conflicts = registered(Counter, "bind_conflicts", registry)
        self.uncertain_answers = registered(Counter, "uncertain_binds", registry)
        self.outbox_depth = registered(Gauge, "outbox_depth", registry)
        self.dropped_events = registered(Counter, "dropped_events", registry)
        self.malformed_objects = registered(Counter, "malformed_objects", registry)
        self.watch_restarts = registered(Counter, "watch_restarts", registry)
        self.profile_writes = registered(Counter, "node_profile_writes", registry)
        self.plan_writes = registered(Counter, "plan_writes", registry)
        self.pool_writes = registered(Counter, "pool_writes", registry)
        self.load_queries = registered(Counter, "load_signal_queries", registry)
        self.load_nodes = registered(Gauge, "load_signal_nodes", registry)
        registry.register(AtScrape(build_info))
        ProcessCollector(registry=registry)

    def expose(self) -> bytes:
        """The body of /metrics."""
        return generate_latest(self.registry)


@dataclass(frozen=True)
class Context:
    """What every part shares: the client of the API server, the metrics, and a source of back-off jitter."""

    client: ApiClient
    metrics: Metrics = field(default_factory=Metrics)
    rng: Random = field(default_factory=Random)


# -- metrics of the engine, and of what is learned --------------------------------------------------


def register_collectors(
    registry: CollectorRegistry, engine: Engine, now: Callable[[], float], settings: Settings
) -> None:
    """Have the registry read from the engine at each scrape."""
    groups, most = (settings.node_group_label, settings.most_groups), settings.most_classes

    def learned() -> Iterable[Metric]:
        names, summary = engine.read(learned_summary, *groups, now())
        return () if summary is None else learned_metrics(names, summary, most)

    def prices() -> Iterable[Metric]:
        summary = engine.read(summary_of_prices, *groups)
        return () if summary is None else price_metrics(summary, most)

    def pools() -> Iterable[Metric]:
        return pool_metrics(engine.read(lambda state: list(standings(state, now()))))

    for metrics in (lambda: queue_metrics(engine.queue_counts()), learned, prices, pools):
        registry.register(AtScrape(metrics))


def queue_metrics(counts: QueueCounts) -> Iterator[Metric]:
    """The queue counts of the engine."""
    counters, plans = counts.counters, counts.counters.plans
    queues = {
        "active": counts.active,
        "arriving": counts.arriving,
        "backoff": counts.backoff,
        "quota": counts.held_back,
        "unschedulable": counts.unschedulable,
        "gated": counts.gated,
        "gang": counts.in_gangs,
        "line": counts.node_queues,
    }
    cached = {
        "nodes": counts.nodes,
        "classes": counts.classes,
        "assumed_pods": counts.binding,
        "dag_jobs": counts.dag_jobs,
        "resources": counts.resources,
    }
    yield observed("pending_pods", _by_one(queues))
    yield observed("nominated_pods", [((), counts.nominated)])
    yield observed("cache_size", _by_one(cached))
    yield observed("schedule_attempts", counters.attempts.items())
    yield observed("queue_incoming_pods", counters.incoming.items())
    yield observed("preemption_attempts", [((), counters.preemption_attempts)])
    yield observed("preemption_victims", [((), counters.preemption_victims)])
    yield observed("reclaim_dry_run_victims", [((), counters.dry_run_victims)])
    yield observed("placed_by_wait_limit", [((), counters.placed_by_limit)])
    yield observed("expected_wait_seconds", counters.expected_wait_seconds.items())
    yield observed("observed_wait_seconds", counters.observed_wait_seconds.items())
    yield observed("pod_scheduled_after_flush", [((), counters.missed_activations)])
    yield observed("plans", [((), plans.made)])
    yield observed("plan_slips", [((), plans.slips)])
    yield observed("plan_slip_seconds", [((), plans.slip_seconds)])
    yield observed("lent_resource_seconds", _by_resource(plans.lent_seconds))
    yield observed("borrowed_resource_seconds", _by_resource(plans.borrowed_seconds))


def _by_resource(amounts: Mapping[str, float]) -> Iterator[Sample]:
    """In whole units: cores, not thousandths."""
    for name, amount in sorted(amounts.items()):
        yield (name,), amount / 1000 if name == "cpu" else amount


def _by_one(figures: Mapping[str, float]) -> Iterator[Sample]:
    for value, figure in figures.items():
        yield (value,), figure


def learned_metrics(names: list[str], summary: LearnedSummary, most_classes: int) -> Iterator[Metric]:
    """What is learned, by groups of nodes with these names and by classes of work."""
    yield observed("arrival_rate", [((), summary.arrivals)])
    yield observed("service_capacity", [((), summary.capacity)])
    yield observed("arrivals", [((), summary.arrived)])
    yield observed("samples", [((), summary.samples)])
    yield observed("speed_alarms", [((), summary.alarms)])
    nodes = {(group, state): count for group, state, count in summary.states}
    states = [
        ((name, state), nodes.get((group, state), 0))
        for group, name in enumerate(names)
        for state in get_args(NodeState)
    ]
    known = {
        (names[group], workload): _mean(parts)
        for (group, workload), parts in _bounded(summary.work, most_classes).items()
    }
    yield observed("nodes", states)
    for at, name in enumerate(("learned_nodes", "learned_speed_ratio", "learned_confidence_ratio")):
        yield observed(name, [(labels, means[at]) for labels, means in known.items()])


def _bounded(work: Iterable[LearnedGroup], most: int) -> dict[tuple[int, str], list[LearnedGroup]]:
    """The entries by (group, class), at most `most` classes: those with the fewest samples become `other`."""
    work = list(work)
    samples = defaultdict[str, float](float)
    for each in work:
        samples[each.workload] += each.samples
    ranked = sorted(samples, key=lambda name: (-samples[name], name))
    named = set(ranked if len(ranked) <= most else ranked[: most - 1])
    found: dict[tuple[int, str], list[LearnedGroup]] = {}
    for each in work:
        name = each.workload if each.workload in named else OTHER
        found.setdefault((each.group, name), []).append(each)
    return found


def _mean(parts: list[LearnedGroup]) -> tuple[int, float, float]:
    """(nodes, mean speed, mean confidence); a node counts once per class."""
    nodes = sum(each.nodes for each in parts)
    speed = sum(each.nodes * each.speed for each in parts) / nodes
    return nodes, speed, sum(each.nodes * each.confidence for each in parts) / nodes


Labels = tuple[str, ...]
POOLS_MOST = 99  # with a name of their own


def pool_metrics(largest_first: Sequence[PoolStanding]) -> Iterator[Metric]:
    """How pools stand; of no more than so many, and of all others together."""
    amounts = {name: defaultdict[Labels, float](float) for name in ("pool_held", "pool_share", "pool_demand")}
    counts = {name: defaultdict[Labels, float](float) for name in ("pool_waiting_pods", "pool_running_jobs")}
    below = defaultdict[Labels, float](float)
    for at, pool in enumerate(largest_first):
        name = pool.path if at < POOLS_MOST else OTHER
        for each in pool.resources:
            unit = 1000 if each.resource == "cpu" else 1
            for of, amount in zip(amounts, (each.held, each.share, each.demand), strict=True):
                amounts[of][name, each.resource] += amount / unit
        counts["pool_waiting_pods"][name,] += pool.waiting_pods
        counts["pool_running_jobs"][name,] += pool.running_jobs
        for kind, seconds in (("minimum", pool.below_minimum), ("share", pool.below_share)):
            below[name, kind] = max(below[name, kind], seconds or 0.0)
    for of, found in (*amounts.items(), *counts.items()):
        yield observed(of, found.items())
    yield observed("pool_below_share_seconds", below.items())


def price_metrics(summary: PriceSummary, most: int) -> Iterator[Metric]:
    """The prices; of classes of work and sets of constraints as many as `most`."""
    sets = _scarcest(summary.sets, most)
    yield observed("node_price", (((name,), price) for name, price in summary.groups))
    yield observed("class_price_ratio", _dearest(summary.classes, most))
    yield observed("constraint_demand_ratio", (((name,), demand) for name, demand, _ in sets))
    yield observed("constraint_supply_ratio", (((name,), supply) for name, _, supply in sets))


def _dearest(classes: Sequence[tuple[str, str, float]], most: int) -> list[Sample]:
    """Those of the classes of work whose highest price is the highest, in all groups."""
    highest = defaultdict[str, float](float)
    for _, workload, price in classes:
        highest[workload] = max(highest[workload], price)
    named = set(sorted(highest, key=lambda name: (-highest[name], name))[:most])
    return [((group, workload), price) for group, workload, price in classes if workload in named]


def _scarcest(sets: Iterable[ConstraintDemand], most: int) -> list[tuple[str, float, float]]:
    """(name, demand, supply) of the sets with the most demand for their supply; sets of one name are one."""
    demand, supply = defaultdict[str, float](float), dict[str, float]()
    for each in sets:
        name = each.constraints
        demand[name] += each.demand
        supply[name] = max(each.supply, supply.get(name, 0.0))
    ranked = sorted(supply, key=lambda name: (-demand[name] / supply[name], name))
    return [(name, demand[name], supply[name]) for name in ranked[:most]]


# -- pods -------------------------------------------------------------------------------------------

MAX_ATTEMPTS = 14  # with more attempts the label `attempts` is "15+", as in kube-scheduler


class PodLatency:
    """Observes the latency of each pod whose schedulerName is ours, labelled with its attempts.

    `histogram` has one label, `attempts`. An attempt ends with a bind, a refused bind or a report.
    """

    def __init__(self, is_ours: Callable[[str], bool], histogram: Histogram) -> None:
        self._is_ours = is_ours
        self._histogram = histogram
        # uid -> when first seen without gates; attempts, the current one included
        self._waiting: dict[str, tuple[float, int]] = {}

    def observe_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.gates or task.ended) and self._is_ours(
                    task.profile
                ):
                    self._waiting.setdefault(task.uid, (now, 1))
                case BindConfirmed(uid=uid):
                    self._bound(uid, now)
                case BindRefused(uid=uid):
                    self._count_attempt(uid)
                case TaskGone(uid=uid):
                    self._waiting.pop(uid, None)
        for command in commands:
            if isinstance(command, Report):
                self._count_attempt(command.uid)

    def _count_attempt(self, uid: str) -> None:
        """One more attempt, unless the pod is gone: what a late refusal left would stay for ever."""
        if uid in self._waiting:
            since, attempts = self._waiting[uid]
            self._waiting[uid] = since, attempts + 1

    def _bound(self, uid: str, now: float) -> None:
        if uid in self._waiting:
            since, attempts = self._waiting.pop(uid)
            label = str(attempts) if attempts <= MAX_ATTEMPTS else "15+"
            self._histogram.labels(label).observe(now - since)


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
