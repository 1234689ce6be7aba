"""How the longest queue grows with the number of machines: as log n with one choice, as log log n with two.

With one choice in proportion to speed every machine is a queue of its own, of which the load a is that of
the whole: P(Q >= i) = a^i. With two choices every class of speed has P(Q >= i) = a^(2^i - 1), in the limit of
many machines. Queues then are nearly independent, so the longest of n has the mean sum of
1 - (1 - P(Q >= i))^n over i: about ln n / ln(1/a), and about log2(ln n / ln(1/a)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import expm1, log, log1p, log2
from statistics import fmean, linear_regression
from typing import Any

from eclectus.engine.state import State
from eclectus.sim.base.machine import Machine
from eclectus_bench.rosella.machines import MEAN_SPEED, world

LOAD = 0.6  # the higher, the longer it takes until the longest queue is as long as it will be
NODES = 25, 100, 400, 1600

Tail = Callable[[int], float]
"""The share of the machines that have so many tasks or more."""


def one_choice(at_least: int) -> float:
    """In proportion to speed."""
    return float(LOAD**at_least)


def two_choices(at_least: int) -> float:
    """The shorter queue of two, in the limit of many machines."""
    return float(LOAD ** (2**at_least - 1))


@dataclass(frozen=True)
class Law:
    """How the longest queue grows, and the scale on which that is a straight line."""

    name: str
    tail: Tail
    scale_name: str
    scale: Callable[[float], float]


ONE = Law("one choice", one_choice, "ln n", log)
TWO = Law("two choices", two_choices, "log2 ln n", lambda nodes: log2(log(nodes)))
LAWS = ONE, TWO


@dataclass(frozen=True)
class Contestant:
    """A policy, and the law by which it grows."""

    place: Mapping[str, Any]
    law: Law
    knows_speeds: bool = True  # the true ones, as in the law


CONTESTANTS = {
    "pss": Contestant({"policy": "pss"}, ONE),
    "pot": Contestant({"policy": "pot", "queue": "lines"}, TWO, knows_speeds=False),
    "paper": Contestant({"policy": "rosella", "view": "sample", "compare": "sq"}, TWO),
}


@dataclass(frozen=True)
class QueueCase:
    """One run; the second half of it is measured."""

    policy: str
    nodes: int
    seed: int
    times: float = 50.0  # it lasts, in mean times of a task on a slow machine
    tasks_least: int = 10_000  # of few machines more are needed for as narrow an interval

    @property
    def tasks(self) -> int:
        """That arrive."""
        return max(round(self.times * LOAD * MEAN_SPEED * self.nodes), self.tasks_least)


def longest_queue(case: QueueCase) -> float:
    """The longest queue of all machines, running task included; mean over samples."""
    contestant, found = CONTESTANTS[case.policy], list[int]()
    learn = {"policy": "truth" if contestant.knows_speeds else "none"}
    measure = {"tasks": case.tasks, "warmUp": 0.5}
    it = world(case.nodes, LOAD, {"place": dict(contestant.place), "learn": learn}, measure, case.seed)

    def look(now: float, events: object, commands: object) -> None:
        is_measured = it.record.window_start is not None and it.record.window_end is None
        if is_measured and it.steps % case.nodes == 0:
            found.append(it.engine.read(_longest, it.machines))

    it.on_step = look
    it.run()
    return fmean(found)


def _longest(state: State, machines: Mapping[str, Machine]) -> int:
    rows, waiting = state.cluster.rows, state.node_queues.by_row
    return max(len(each.running) + len(waiting.get(rows[name], ())) for name, each in machines.items())


def expected_longest(tail: Tail, nodes: int) -> float:
    """The mean of the longest of so many independent queues."""
    total, at_least = 0.0, 1
    while nodes * (share := tail(at_least)) > 1e-6:
        total -= expm1(nodes * log1p(-share))
        at_least += 1
    return total


def growth(law: Law, longest: Sequence[float], nodes: Sequence[int] = NODES) -> float:
    """Slope of the longest queue on the scale of the law, where it would be a straight line."""
    return linear_regression(list(map(law.scale, nodes)), longest).slope


def exponent(longest: Sequence[float], nodes: Sequence[int] = NODES) -> float:
    """b of longest = c (ln n)^b: near 1 for log n, near 0 for log log n."""
    return linear_regression([log(log(each)) for each in nodes], list(map(log, longest))).slope
