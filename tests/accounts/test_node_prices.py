"""Node prices: what moves them and when, and that they are those of a plain sum over sets."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from builders import make_cluster, make_node, make_task
from eclectus.accounts.node_prices import (
    LEAST_CHANGE,
    LEAST_CHANGE_ABSOLUTE,
    MEAN_SECONDS,
    PRICE_STEP,
    SAMPLE_SECONDS,
    SETS_PER_STEP,
    NodePricing,
)
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.constraint_set import constraint_set
from eclectus.maths.scarcity import UNIT
from eclectus.model.learned import ConstraintDemand
from eclectus.model.objects import Node

ARM, DISK = (("arch", "arm"),), (("disk", "ssd"),)


def nodes() -> list[Node]:
    """n0 to n3 of four cores each; n0 and n1 are arm, n0 has an ssd."""
    labels = [{"arch": "arm", "disk": "ssd"}, {"arch": "arm"}, {}, {}]
    return [make_node(f"n{at}", cpu=4, labels=each) for at, each in enumerate(labels)]


class Timed:
    """Prices of a cluster, and the time."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or make_cluster(*nodes())
        self.pricing, self.now = NodePricing(self.cluster), 0.0
        self.pricing.update(self.now)

    def pass_time(self, seconds: float = SAMPLE_SECONDS) -> None:
        """Steps without events, as many as one repricing takes at the most."""
        self.now += seconds
        for _ in range(1 + 1024 // SETS_PER_STEP):
            self.pricing.update(self.now)

    def price(self) -> list[float]:
        """Of each node, rounded to what is published."""
        return [round(each, 3) for each in self.pricing.current.price[: len(self.cluster.names)].tolist()]

    def wait(self, count: int, selector: tuple[tuple[str, str], ...] = (), cpu: float = 1) -> None:
        for _ in range(count):
            number = len(self.pricing.demand._counted)
            self.pricing.demand.wait(make_task(f"t{number}", cpu=cpu, node_selector=selector))


def test_a_price_is_the_sum_over_the_sets_of_demand_over_supply() -> None:
    timed = Timed()
    timed.wait(4)  # of 16 cores
    timed.wait(2, ARM)  # of 8
    timed.wait(2, ARM + DISK)  # of 4
    timed.pass_time()
    assert timed.price() == [1.0, 0.5, 0.25, 0.25]


def test_nothing_is_dear_before_anything_is_counted() -> None:
    timed = Timed()
    timed.wait(4, ARM)
    assert timed.price() == [0.0] * 4


def test_the_price_follows_the_mean_over_minutes() -> None:
    timed = Timed()
    timed.pass_time(100 * MEAN_SECONDS)
    timed.wait(8, ARM)
    timed.pass_time(MEAN_SECONDS * np.log(2))
    halfway = timed.price()[0]
    timed.pass_time(10 * MEAN_SECONDS)
    assert (halfway, timed.price()[0]) == (pytest.approx(0.5, abs=PRICE_STEP), 1.0)


def test_a_sample_counts_what_was_so_since_the_last_one() -> None:
    timed = Timed()
    timed.now = 3600.0
    timed.wait(8, ARM)  # arrives in the step in which a sample was due
    timed.pricing.demand.leave("uid-none")
    timed.pass_time(0.0)
    timed.pass_time()
    assert timed.price()[0] == 1.0


def test_services_leave_less_supply() -> None:
    timed = Timed()
    timed.cluster.hold(0, make_task("service", cpu=2, long_running=True))
    timed.wait(3, ARM)
    timed.pass_time()
    assert timed.price() == [0.5, 0.5, 0.0, 0.0]


def test_small_changes_move_no_price_and_start_no_ranking_over() -> None:
    timed = Timed()
    timed.wait(80, ARM, cpu=0.05)
    timed.pass_time()
    epoch = timed.pricing.current.epoch
    timed.wait(7, ARM, cpu=0.05)
    timed.pass_time(100 * MEAN_SECONDS)
    assert (timed.pricing.current.epoch, timed.price()[0]) == (epoch, 0.5)
    timed.wait(20, ARM, cpu=0.05)
    timed.pass_time(100 * MEAN_SECONDS)
    assert timed.pricing.current.epoch == epoch + 1


def test_a_set_that_nobody_asks_for_any_more_is_forgotten() -> None:
    timed = Timed()
    timed.wait(8, ARM)
    timed.pass_time()
    for uid in list(timed.pricing.demand._counted):
        timed.pricing.demand.leave(uid)
    for _ in range(2):
        timed.pass_time(20 * MEAN_SECONDS)
    assert timed.price() == [0.0] * 4
    assert (len(timed.pricing.demand.sets), list(timed.pricing.figures())) == (0, [])


def test_nodes_that_come_go_and_change_their_labels() -> None:
    timed = Timed()
    timed.wait(4, ARM)
    timed.pass_time()
    timed.cluster.set_node(make_node("n1", cpu=4))
    timed.pass_time()
    assert timed.price() == [1.0, 0.0, 0.0, 0.0]
    timed.cluster.drop_node("n0")
    for at in range(70):  # more than there were rows for
        timed.cluster.set_node(make_node(f"new{at}", cpu=4, labels={"arch": "arm"} if at < 2 else {}))
    assert len(timed.pricing.current.price) == timed.cluster.capacity
    timed.pass_time()
    priced = {name for name, price in zip(timed.cluster.names, timed.price(), strict=True) if price}
    assert priced == {"new0", "new1"}


def test_the_price_up_to_which_long_work_finds_nodes() -> None:
    timed = Timed()
    timed.wait(4, ARM)
    demand = timed.pricing.demand
    for at in range(18):
        demand.wait(make_task(f"short{at}", cpu=0.01, estimate=1.0))
    demand.wait(make_task("long", cpu=7, estimate=60.0))
    timed.pass_time()
    assert demand.is_long("uid-long")
    cheap = timed.pricing.current.long_limit
    assert timed.price()[2] == pytest.approx(cheap)  # 7 / .9 of the 8 cores that are not arm
    demand.wait(make_task("longer", cpu=1, estimate=600.0))
    timed.pass_time(100 * MEAN_SECONDS)
    assert timed.pricing.current.long_limit == pytest.approx(timed.price()[0])


def test_a_step_reprices_a_bounded_number_of_sets_and_publishes_all_at_once() -> None:
    timed = Timed()
    for at in range(SETS_PER_STEP + 1):
        timed.wait(1, (("arch", "arm"), *(((f"k{at}", "v"),) if at else ())))
    timed.pricing.update(SAMPLE_SECONDS)
    assert timed.pricing.current.epoch == 1  # there are rows
    timed.pricing.update(SAMPLE_SECONDS)
    assert timed.pricing.current.epoch == 2


def test_the_figures_are_shares_of_all_nodes() -> None:
    timed = Timed()
    timed.wait(2, ARM)
    timed.pass_time()
    (figures,) = timed.pricing.figures()
    assert figures == ConstraintDemand("arch=arm", 2 / 16, 0.5)
    assert timed.pricing.figures_of(constraint_set(make_task("x", node_selector=ARM).spec)) == figures
    assert timed.pricing.figures_of(constraint_set(make_task("x").spec)) is None


@pytest.mark.parametrize("seed", range(5))
def test_prices_by_differences_are_those_of_a_plain_sum(seed: int) -> None:
    random, timed = Random(seed), Timed()
    selectors = [(), ARM, DISK, ARM + DISK]
    for _ in range(40):
        for _ in range(random.randrange(6)):
            timed.wait(1, random.choice(selectors), cpu=random.choice([0.1, 0.5, 1]))
        for uid in list(timed.pricing.demand._counted):
            if random.random() < 0.2:
                timed.pricing.demand.leave(uid)
        if random.random() < 0.3:
            labels = dict(random.choice(selectors))
            timed.cluster.set_node(
                make_node(f"n{random.randrange(6)}", cpu=random.choice([2, 4]), labels=labels)
            )
        timed.pass_time(random.choice([1.0, 10.0, 100.0]))
    timed.pass_time(50 * MEAN_SECONDS)
    timed.pass_time(50 * MEAN_SECONDS)
    assert timed.pricing._units[: len(timed.cluster.names)] * UNIT == pytest.approx(
        plain_prices(timed), rel=LEAST_CHANGE, abs=4 * LEAST_CHANGE_ABSOLUTE
    )


def plain_prices(timed: Timed) -> list[float]:
    """From the tasks that are counted and the labels of nodes."""
    cluster, prices = timed.cluster, [0.0] * len(timed.cluster.names)
    demand: dict[tuple[tuple[str, str], ...], float] = {}
    for each in timed.pricing.demand._counted.values():
        cpu = dict(each.spec.requests)["cpu"]
        demand[each.spec.node_selector] = demand.get(each.spec.node_selector, 0) + cpu
    for selector, cpu in demand.items():
        found = [cluster.node(name) for name in cluster.names]
        rows = [row for row, node in enumerate(found) if node and set(selector) <= set(node.labels)]
        supply = sum(cluster.allocatable[row, 1] for row in rows)
        for row in rows:
            prices[row] += min(cpu / supply, 4.0)
    return prices
