"""The page /metrics, written at each scrape.

From what the process has counted (`process_metrics.py`) and from the engine. Queue counts have the metric
names and labels of kube-scheduler. What is learned, and prices of nodes, are by group of nodes, class of work
and set of constraints; the number of all values of a label is bounded, however many pods and nodes there are.
"""

import platform
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import get_args

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from typing_extensions import override

import eclectus
from eclectus.accounts.node_prices import PriceSummary
from eclectus.cluster.nodes import OTHER
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.engine.counters import QueueCounts
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_summary, summary_of_prices
from eclectus.explain.pools import standings
from eclectus.live.metrics_table import FAMILIES, PREFIX
from eclectus.live.process_metrics import Histogram, Measured, Metrics
from eclectus.model.explanation import PoolStanding
from eclectus.model.learned import ConstraintDemand, LearnedGroup, LearnedSummary, NodeState

HOT_NODES_MOST = 20  # for which pods with data wait

Sample = tuple[tuple[str, ...], float]
"""(label values, value)."""


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


# -- metrics that the process counts ---------------------------------------------------------------


def registry_of(metrics: Metrics) -> CollectorRegistry:
    """What the process has counted, and what it is, read at each scrape."""
    registry = CollectorRegistry()
    for source in (lambda: counted(metrics), build_info):
        registry.register(AtScrape(source))
    ProcessCollector(registry=registry)
    return registry


def text(registry: CollectorRegistry) -> bytes:
    """The body of /metrics."""
    return generate_latest(registry)


def counted(metrics: Metrics) -> Iterator[Metric]:
    """What the process has counted."""
    for figure in metrics.figures:
        yield observed(figure.family.name, ((values, each.value) for values, each in figure.series.items()))
    for measured in metrics.histograms:
        yield _histogram(measured)


def _histogram(measured: Measured[Histogram]) -> Metric:
    family = measured.family
    found = HistogramMetricFamily(PREFIX + family.name, family.help, labels=family.labels)
    for values, each in measured.series.items():
        bounds = [*map(floatToGoString, each.bounds), "+Inf"]
        found.add_metric(values, list(zip(bounds, accumulate(each.counts), strict=True)), each.sum)
    return found


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

    def gains() -> Iterable[Metric]:
        known = engine.read(lambda state: state.held.gains.best_known(most))
        return (observed("data_gain_ratio", _by_one(dict(known))),)

    def hot_nodes() -> Iterable[Metric]:
        nodes = engine.read(lambda state: state.held.most_waited_for(HOT_NODES_MOST))
        return (observed("data_waiting_pods", _by_one(dict(nodes))),)

    for metrics in (lambda: queue_metrics(engine.queue_counts()), learned, prices, pools, gains, hot_nodes):
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
    yield from _copy_metrics(counts)
    yield observed("plans", [((), plans.made)])
    yield observed("plan_slips", [((), plans.slips)])
    yield observed("plan_slip_seconds", [((), plans.slip_seconds)])
    yield observed("lent_resource_seconds", _by_resource(plans.lent_seconds))
    yield observed("borrowed_resource_seconds", _by_resource(plans.borrowed_seconds))


def _copy_metrics(counts: QueueCounts) -> Iterator[Metric]:
    copies, data = counts.counters.copies, counts.counters.data
    yield observed("straggling_pods", [((), counts.straggling)])
    yield observed("copies_started", [((), copies.started)])
    yield observed("copies_settled", _by_one({"won": copies.won, "lost": copies.lost}))
    yield observed("copies_refused", _by_one(copies.refused))
    yield observed("copy_seconds", _by_one(copies.seconds))
    yield observed("data_starts", _by_one(data.starts))
    yield observed("data_bytes", _by_one(data.bytes))
    yield observed("data_wait_seconds", _by_one(data.wait_seconds))


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
    yield observed("learned_node_speed_ratio", (((node,), speed) for node, speed in summary.extremes))
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
