"""Metrics of node prices by group of nodes and class of work, and of sets of constraints; all are bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.accounts.node_prices import PriceSummary
from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.live.metrics.families import Sample, observed
from eclectus.model.learned import ConstraintDemand

Summarise = Callable[[str, int], PriceSummary | None]
"""(node label, most groups) -> the prices: Engine.price_summary."""


class PricesCollector(Collector):
    """Reads the prices at each scrape. Yields nothing where no policy asks for prices."""

    def __init__(self, summarise: Summarise, settings: Settings) -> None:
        self._summarise, self._settings = summarise, settings

    def collect(self) -> Iterable[Metric]:
        """The metrics at the time of a scrape."""
        summary = self._summarise(self._settings.node_group_label, self._settings.most_groups)
        if summary is None:
            return
        most = self._settings.most_classes
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
