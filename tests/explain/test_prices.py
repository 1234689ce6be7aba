"""What explanations, NodeProfiles and metrics show of node prices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from builders import make_engine, make_node, make_task
from eclectus.explain.node import node_explanation, priced, summary_of_prices
from eclectus.explain.pod import explain_pod
from eclectus.framework import Place
from eclectus.maths.numbers import Floats
from eclectus.model.learned import ConstraintDemand, LearnedNode, LearnedWork, NodePrice
from eclectus.model.objects import ClassKey
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.phoenix import ScarceNodesLast
from worlds import World

ARM = (("arch", "arm"),)


class BetterUsed(ScarceNodesLast):
    """Lets pods of class `sort` that request one core count as running 2.5 times as long on rows 2 and 3."""

    rows = 64

    def class_prices(self) -> Mapping[ClassKey, Floats]:
        factor = np.ones(self.rows)
        factor[2:4] = 2.5
        return {(make_task("any", workload="sort").spec, "sort"): factor}


def scarce(place: Place | None = None) -> World:
    """Nodes of two cores, n0 and n1 of them arm; five pods need arm and one runs anywhere."""
    nodes = [make_node(f"n{at}", cpu=2, labels=dict(ARM) if at < 2 else {}) for at in range(4)]
    found = World(make_engine(place or ScarceNodesLast()), *nodes)
    found.add(*(make_task(f"t{at}", node_selector=ARM) for at in range(5)))
    found.add(make_task("any", workload="sort"))
    found.step(after=10.0)
    return found


def price_of(world: World, name: str) -> NodePrice:
    """What the node of a pod costs it."""
    placement = explain_pod(world.engine, "default", name, world.now).placement
    assert placement is not None
    assert placement.price is not None
    return placement.price


def test_a_pod_that_waits_is_shown_what_is_demanded_of_its_nodes() -> None:
    found = explain_pod(scarce().engine, "default", "t4", 10.0)
    assert found.state == "unschedulable"
    assert found.constraint_demand == ConstraintDemand("arch=arm", 5 / 8, 0.5)


def test_a_pod_on_a_node_is_shown_what_the_node_costs() -> None:
    world = scarce()
    for name, price in (("any", 0.1), ("t0", 1.4)):
        found = price_of(world, name)
        assert (found.scarcity, found.least, found.work) == pytest.approx((price, price, 1.0))


def test_and_how_much_longer_it_counts_as_running_there() -> None:
    assert price_of(scarce(BetterUsed()), "any").work == 2.5


def test_a_node_shows_its_price() -> None:
    engine = scarce().engine
    prices = [engine.read(node_explanation, f"n{at}").price for at in range(4)]
    assert prices == pytest.approx([1.4, 1.4, 0.1, 0.1])


def test_metrics_have_the_mean_of_each_group() -> None:
    summary = scarce(BetterUsed()).engine.read(summary_of_prices, "arch", 5)
    assert summary is not None
    assert dict(summary.groups) == {"arm": pytest.approx(1.4), "none": pytest.approx(0.1)}
    assert set(summary.classes) == {("arm", "sort", 1.0), ("none", "sort", 2.5)}


def test_what_was_learned_of_nodes_gets_their_prices() -> None:
    state, work = scarce(BetterUsed()).engine._state, (LearnedWork("sort", 1.0, 1, 0.5),)
    learned = [LearnedNode(name, 1, 0.0, "live", 1.0, 0.5, work) for name in ("n0", "gone", "n3")]
    found = {each.node: (each.price, each.work[0].price) for each in priced(state, learned)}
    assert found == {
        "n0": (pytest.approx(1.4), 1.0),
        "gone": (None, None),
        "n3": (pytest.approx(0.1), 2.5),
    }


def test_prices_of_before_rows_were_added_are_left_out() -> None:
    policy = BetterUsed()
    policy.rows = 3
    summary = scarce(policy).engine.read(summary_of_prices, "arch", 5)
    assert summary is not None
    assert summary.classes == ()
    assert price_of(scarce(policy), "any").work == 2.5  # its row is among those of before


def test_where_no_policy_asks_for_prices_there_are_none() -> None:
    world = scarce(LeastAllocated())
    placement = explain_pod(world.engine, "default", "any", world.now).placement
    assert placement is not None
    assert placement.price is None
    assert world.engine.read(node_explanation, "n0").price is None
    assert explain_pod(world.engine, "default", "t4", world.now).constraint_demand is None
    assert world.engine.read(summary_of_prices, "arch", 5) is None
