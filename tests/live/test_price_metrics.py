"""Metrics of node prices: by group of nodes, class of work and set of constraints, all bounded."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from builders import make_engine, make_node, make_task
from eclectus.accounts.node_prices import PriceSummary
from eclectus.config.process_settings import MetricsSettings
from eclectus.engine.engine import Engine
from eclectus.live.metrics_page import AtScrape, price_metrics, register_collectors
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.phoenix import ScarceNodesLast
from worlds import World

ARM, SETTINGS = (("arch", "arm"),), MetricsSettings(node_group_label="arch")


def scraped(engine: Engine, settings: MetricsSettings = SETTINGS) -> dict[str, dict[str, float]]:
    """Metric -> label value -> value, of the metrics of prices."""
    registry = CollectorRegistry()
    register_collectors(registry, engine, lambda: 0.0, settings)
    return {
        family.name.removeprefix("eclectus_"): {
            next(iter(sample.labels.values())): sample.value for sample in family.samples
        }
        for family in registry.collect()
        if family.name.startswith(("eclectus_node_price", "eclectus_class_price", "eclectus_constraint"))
    }


def test_prices_and_what_makes_them() -> None:
    nodes = [make_node(f"n{at}", cpu=2, labels=dict(ARM) if at < 2 else {}) for at in range(4)]
    world = World(make_engine(ScarceNodesLast()), *nodes)
    world.add(*(make_task(f"t{at}", node_selector=ARM) for at in range(3)), make_task("any"))
    world.step(after=10.0)
    found = scraped(world.engine)
    assert found["constraint_demand_ratio"] == {"arch=arm": 3 / 8, "any node": 1 / 8}
    assert found["constraint_supply_ratio"] == {"arch=arm": 0.5, "any node": 1.0}
    assert found["node_price"] == {"arm": pytest.approx(0.9), "none": pytest.approx(0.1)}


def test_of_many_sets_the_scarcest_are_shown() -> None:
    nodes = [make_node(f"n{at}", cpu=9, labels={"kind": f"k{at}"}) for at in range(5)]
    world = World(make_engine(ScarceNodesLast()), *nodes)
    world.add(*(make_task(f"t{at}", cpu=1 + at, node_selector=(("kind", f"k{at}"),)) for at in range(5)))
    world.step(after=10.0)
    found = scraped(world.engine, MetricsSettings(most_classes=2, most_groups=2))
    assert list(found["constraint_demand_ratio"]) == ["kind=k4", "kind=k3"]
    assert len(found["node_price"]) <= 2


def test_of_many_classes_of_work_the_dearest_are_shown() -> None:
    of_arm = [("arm", f"w{at}", 1.0 + at) for at in range(3)]
    classes = (*of_arm, ("none", "w0", 1.0), ("none", "w2", 1.0))
    registry = CollectorRegistry()
    summary = PriceSummary(groups=(), sets=(), classes=classes)
    registry.register(AtScrape(lambda: price_metrics(summary, 2)))
    samples = [sample for family in registry.collect() for sample in family.samples]
    assert {(each.labels["group"], each.labels["class"]): each.value for each in samples} == {
        ("arm", "w1"): 2.0,
        ("arm", "w2"): 3.0,
        ("none", "w2"): 1.0,
    }


def test_there_are_none_where_no_policy_asks_for_prices() -> None:
    assert scraped(make_engine(LeastAllocated())) == {}
