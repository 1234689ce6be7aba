"""What it costs to keep node prices up to date, and to place a pod while they are, by nodes and sets."""

import time
from collections.abc import Iterator
from itertools import combinations

from eclectus.accounts.node_prices import MEAN_SECONDS, SETS_PER_STEP, NodePricing
from eclectus.cluster.nodes import Cluster
from eclectus.model.events import TaskSeen
from eclectus.model.objects import Node, Pairs
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.phoenix import ScarceNodesLast
from eclectus_bench.steps.driver import Driver, make_node, make_spec, make_task

PROPERTIES = 20  # labels, each on half of the nodes; a set asks for up to three of them
FIRST_RATIO = 0.05  # of the demand of a set of three properties to its supply; it doubles each time
TIMES_MOST = 6  # up to which no ratio reaches the most that counts


def every_demand_moves(nodes: int, sets: int, times: int) -> Iterator[list[float]]:
    """CPU time of the steps in which the prices of all nodes follow the demand of all sets, milliseconds."""
    cluster = Cluster(nodes)
    for number in range(nodes):
        cluster.set_node(_node(number))
    pricing, now = NodePricing(cluster), 0.0
    pricing.update(now)
    cpu = int(FIRST_RATIO * nodes / 8 * 32_000)
    for turn in range(min(times, TIMES_MOST)):
        for number, selector in enumerate(selectors(sets)):
            task = make_task(f"pod-{turn}-{number}", make_spec(cpu * 2**turn, node_selector=selector))
            pricing.demand.wait(task)
        now += 100 * MEAN_SECONDS
        epoch, found = pricing.current.epoch, list[float]()
        for _ in range(sets // SETS_PER_STEP + 1):
            began = time.process_time()
            pricing.update(now)
            found.append((time.process_time() - began) * 1e3)
        if pricing.current.epoch == epoch:
            raise RuntimeError("no price has changed")
        yield found


def priced(nodes: int, sets: int) -> Driver:
    """An engine with `place: phoenix` in which a pod of every set runs and prices are published."""
    place = ScarceNodesLast()
    driver = Driver(FifoOrder(), [_node(number) for number in range(nodes)], place=place, learn=Unlearned())
    for number, selector in enumerate(selectors(sets)):
        spec = make_spec(node_selector=selector)
        driver.bind_one(TaskSeen(make_task(f"pod-{number}", spec)))
    for _ in range(2 + sets // SETS_PER_STEP):
        driver.step_at(driver.now + MEAN_SECONDS)
    return driver


def selectors(count: int) -> list[Pairs]:
    """Different sets of one to three properties."""
    labels = [(f"property-{at:02}", "yes") for at in range(PROPERTIES)]
    every = [each for size in (1, 2, 3) for each in combinations(labels, size)]
    return every[:count]


def _node(number: int) -> Node:
    """A node with about half of the properties: those of the bits of a number that looks random."""
    bits = number * 2654435761 >> 7
    labels = tuple((f"property-{at:02}", "yes") for at in range(PROPERTIES) if bits >> at & 1)
    node = make_node(number)
    return Node(node.name, node.allocatable, tuple(sorted((*node.labels, *labels))))
