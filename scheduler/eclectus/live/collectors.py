"""Collectors of metrics that are read from the engine at each scrape.

Queue counts have the metric names and labels of kube-scheduler. What is learned, and prices of nodes, are by
group of nodes, class of work and set of constraints; the number of all of these is bounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import get_args

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from eclectus.accounts.node_prices import PriceSummary
from eclectus.cluster.nodes import OTHER
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.engine.counters import PlanCounters, QueueCounts
from eclectus.engine.engine import Engine
from eclectus.explain.node import learned_summary
from eclectus.explain.prices import summary_of_prices
from eclectus.live.process_metrics import Sample, observed
from eclectus.model.learned import ConstraintDemand, LearnedGroup, LearnedSummary, NodeState


class AtScrape(Collector):
    """Has the registry read metrics from a source at each scrape."""

    def __init__(self, metrics: Callable[[], Iterable[Metric]]) -> None:
        self._metrics = metrics

    @override
    def collect(self) -> Iterable[Metric]:
        return self._metrics()


def register_collectors(
    registry: CollectorRegistry, engine: Engine, now: Callable[[], float], settings: Settings
) -> None:
    """Have the registry read from the engine at each scrape."""
    learned, prices = partial(engine.read, learned_summary), partial(engine.read, summary_of_prices)
    registry.register(AtScrape(partial(queue_metrics, engine.queue_counts)))
    registry.register(AtScrape(partial(learned_metrics, learned, now, settings)))
    registry.register(AtScrape(partial(price_metrics, prices, settings)))


def queue_metrics(queue_counts: Callable[[], QueueCounts]) -> Iterator[Metric]:
    """The queue counts of the engine."""
    counts = queue_counts()
    counters = counts.counters
    queues = {
        "active": counts.active,
        "backoff": counts.backoff,
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
    }
    yield observed("pending_pods", _by_one(queues))
    yield observed("nominated_pods", [((), counts.nominated)])
    yield observed("cache_size", _by_one(cached))
    yield observed("schedule_attempts", counters.attempts.items())
    yield observed("queue_incoming_pods", counters.incoming.items())
    yield observed("preemption_attempts", [((), counters.preemption_attempts)])
    yield observed("preemption_victims", [((), counters.preemption_victims)])
    yield observed("placed_by_wait_limit", [((), counters.placed_by_limit)])
    yield observed("expected_wait_seconds", counters.expected_wait_seconds.items())
    yield observed("observed_wait_seconds", counters.observed_wait_seconds.items())
    yield observed("pod_scheduled_after_flush", [((), counters.missed_activations)])
    yield from _plans(counters.plans)


def _plans(plans: PlanCounters) -> Iterator[Metric]:
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


SummariseLearned = Callable[[str, int, float], tuple[list[str], LearnedSummary | None]]
"""(node label, most groups, now) -> names of the groups, and `explain.node.learned_summary`."""


def learned_metrics(
    summarise: SummariseLearned, now: Callable[[], float], settings: Settings
) -> Iterator[Metric]:
    """What is learned; nothing if the learner has no summary."""
    names, summary = summarise(settings.node_group_label, settings.most_groups, now())
    if summary is not None:
        yield from _totals(summary)
        yield from _by_group(names, summary, settings.most_classes)


def _totals(summary: LearnedSummary) -> Iterator[Metric]:
    yield observed("arrival_rate", [((), summary.arrivals)])
    yield observed("service_capacity", [((), summary.capacity)])
    yield observed("arrivals", [((), summary.arrived)])
    yield observed("samples", [((), summary.samples)])
    yield observed("speed_alarms", [((), summary.alarms)])


def _by_group(names: list[str], summary: LearnedSummary, most_classes: int) -> Iterator[Metric]:
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
    yield observed("learned_nodes", ((labels, nodes) for labels, (nodes, _, _) in known.items()))
    yield observed("learned_speed_ratio", ((labels, speed) for labels, (_, speed, _) in known.items()))
    yield observed(
        "learned_confidence_ratio", ((labels, confidence) for labels, (_, _, confidence) in known.items())
    )


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


SummarisePrices = Callable[[str, int], PriceSummary | None]
"""(node label, most groups) -> the prices: explain.prices.summary_of_prices."""


def price_metrics(summarise: SummarisePrices, settings: Settings) -> Iterator[Metric]:
    """The prices; nothing where no policy asks for prices."""
    summary = summarise(settings.node_group_label, settings.most_groups)
    if summary is None:
        return
    most = settings.most_classes
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
