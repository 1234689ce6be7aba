"""Metrics of node prices by group of nodes, and of the scarcest sets of constraints; both are bounded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from eclectus.config.process_settings import MetricsSettings as Settings
from eclectus.framework.node_prices import PriceSummary, SetFigures
from eclectus.live.metrics.families import observed

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
        sets = _scarcest(summary.sets, self._settings.most_classes)
        yield observed("node_price", (((name,), price) for name, price in summary.groups))
        yield observed("constraint_demand_ratio", (((name,), demand) for name, demand, _ in sets))
        yield observed("constraint_supply_ratio", (((name,), supply) for name, _, supply in sets))


def _scarcest(sets: Iterable[SetFigures], most: int) -> list[tuple[str, float, float]]:
    """(name, demand, supply) of the sets with the most demand for their supply; sets of one name are one."""
    demand, supply = defaultdict[str, float](float), dict[str, float]()
    for each in sets:
        demand[each.name] += each.demand
        supply[each.name] = max(each.supply, supply.get(each.name, 0.0))
    ranked = sorted(supply, key=lambda name: (-demand[name] / supply[name], name))
    return [(name, demand[name], supply[name]) for name in ranked[:most]]
