"""What each rule costs on small and on large clusters, in CPU time, and the table of it."""

import gc
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from eclectus.model.events import Event, TaskSeen
from eclectus.policies.order.fifo import FifoOrder
from eclectus_bench.rules.rule import Rule
from eclectus_bench.rules.table import RULES
from eclectus_bench.steps.driver import Driver

FLAT_MOST = 1.3  # a decision on the largest cluster over one on the smallest


@dataclass(frozen=True)
class Course:
    """On how many nodes, and how many pods of each rule are measured.

    `warm`: pods bound before. The first of a class starts work over all nodes, such as release rates, which
    is done in slices: on 15,000 nodes in the steps of some 30 pods, 2.5 ms each.
    """

    node_counts: tuple[int, ...]
    pods: int
    warm: int


FULL = Course(node_counts=(500, 5_000, 15_000), pods=40, warm=40)
QUICK = Course(node_counts=(100, 400), pods=5, warm=2)


@dataclass(frozen=True)
class RuleCost:
    """One rule on so many nodes: medians of CPU time over its pods, in microseconds.

    `decision`: a pod arrives and is bound, two steps. `with_pod`: the step in which its claim and volume
    arrive, 0 for rules without. `change`: the step in which something changes that the rule takes notice of;
    what it leaves to do is done by the next decision.
    """

    rule: str
    nodes: int
    decision: float
    with_pod: float
    change: float


def measure(course: Course = FULL) -> Iterator[list[RuleCost]]:
    """The costs of each rule, all its numbers of nodes; each number in a process of its own."""
    context = multiprocessing.get_context("forkserver")  # its processes have nothing but these imports
    context.set_forkserver_preload([__name__])
    for number in range(len(RULES)):
        costs = []
        for nodes in course.node_counts:
            with ProcessPoolExecutor(1, context) as pool:
                costs.append(pool.submit(_cost_of, number, nodes, course).result())
        yield costs


def _cost_of(number: int, nodes: int, course: Course) -> RuleCost:
    """By its number in the table, because rules hold functions that cannot be sent to a process."""
    return cost(RULES[number], nodes, course)


def cost(rule: Rule, nodes: int, course: Course) -> RuleCost:
    """Measure one rule on so many nodes."""
    driver = Driver(FifoOrder(), [rule.node(at) for at in range(nodes)], place=rule.place())
    if there := rule.there(nodes):
        driver.step(*there)
    decisions, arrivals, changes = list[float](), list[float](), list[float]()
    gc.collect()
    for at in range(course.warm + course.pods):
        arrivals.append(_spent(driver, *rule.with_pod(at)))
        driver.milliseconds = 0.0
        driver.bind_one(TaskSeen(rule.pod(at)))
        decisions.append(driver.milliseconds)
        changes.append(_spent(driver, *rule.change(at)))
    figures = (median(each[course.warm :]) * 1e3 for each in (decisions, arrivals, changes))
    return RuleCost(rule.name, nodes, *figures)


def _spent(driver: Driver, *events: Event) -> float:
    """CPU time of a step with these events, in milliseconds; 0 without any."""
    driver.milliseconds = 0.0
    if events:
        driver.step(*events)
    return driver.milliseconds


# -- for people ------------------------------------------------------------------------------------------


def head(node_counts: Sequence[int]) -> str:
    """The first line of the table."""
    columns = "".join(f"{f'{count:,} nodes':>14}" for count in node_counts)
    return f"{'decisions a second, by rule':<62}{columns}{'flat':>7}{'change, µs':>16}"


def line(costs: Sequence[RuleCost]) -> str:
    """One rule: decisions a second by nodes, how much more one costs on most nodes, a change there."""
    rates = "".join(f"{1e6 / each.decision:>14,.0f}" for each in costs)
    changes = f"{costs[0].change + costs[0].with_pod:.0f} .. {costs[-1].change + costs[-1].with_pod:.0f}"
    return f"{costs[0].rule:<62}{rates}{flatness(costs):>7.2f}{changes:>16}  {_verdict(costs)}".rstrip()


def flatness(costs: Sequence[RuleCost]) -> float:
    """The cost of a decision on the most nodes over that on the fewest."""
    return costs[-1].decision / costs[0].decision


def _verdict(costs: Sequence[RuleCost]) -> str:
    grows = next(rule.grows for rule in RULES if rule.name == costs[0].rule)
    if flatness(costs) <= FLAT_MOST:
        return f"<= {FLAT_MOST:g} met"
    return f"grows: {grows}" if grows else f"<= {FLAT_MOST:g} MISSED"


def content(found: Sequence[Sequence[RuleCost]]) -> list[dict[str, Any]]:
    """The part of report.json: a rule on so many nodes, and how much more a decision costs on most nodes."""
    return [{**asdict(each), "flat": flatness(costs)} for costs in found for each in costs]
