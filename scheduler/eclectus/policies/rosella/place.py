"""Rosella's placement by learned speeds.

Q. Wu, Z. Liu, "Rosella", 2020, section on proportional sampling with power of two choices (PPoT). Two
modes, chosen by `view`:

- `sample`, the paper's: draw two nodes with probability in proportion to their learned rate for the task's
  workload, compare them, and join the node queue of the better one. For several active schedulers, stale
  views and very large clusters. The draw (`query`, `choices`, `distinct`: Sampling) and the comparison
  (`compare`: costs.py) are separate settings.
- `full`, the default for one active scheduler, whose view is fresh: all nodes are compared. With `replan`
  (default) tasks stay in one central queue and are planned again in every scheduling cycle (replan.py).

`mode: paper` selects the paper's policy and learner. Departures from the paper:
- by default there is no sampling. The paper does not compare with a central queue with late binding, which
  is what kube-scheduler has; at high load two choices are worse than that, re-planning is not
  (docs/placement.md, docs/results/ablations.md);
- by default nodes are compared by `wait`, not by the shortest queue, which had the better mean;
- waiting tasks may get another node: those of the central queue in every cycle, those in node queues with
  `line: {policy: rosella}` (rosella/line.py). In the paper a task stays where it was sent;
- a node has many slots and tasks differ in size, so queue lengths are counted in slots of the task's class.
  Also with `mode: paper`; with one slot they are the paper's;
- draws are in proportion to the rate of one of a node's slots, not of all. Also with `mode: paper`;
- ties, which the paper does not specify, go to the faster node. Also with `mode: paper`;
- preferences of pods, which the paper does not have, make a node count as slower. Also with `mode: paper`;
- so does, with re-planning, that a node is needed by tasks that can run on few (costs.py); from Phoenix;
- and that a node lacks the data of a task (locality.py);
- a rate belongs to a node and a workload, not to a node. Further departures of the learner:
  rosella/learn.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

import numpy as np
from msgspec.structs import replace

from eclectus.cluster.scalars import scalars
from eclectus.framework import (
    Action,
    ClassKey,
    Enqueue,
    Floats,
    PendingTasks,
    Place,
    PlaceTraits,
    Rows,
    SettingsError,
    Speeds,
    Task,
    TaskClass,
    Unschedulable,
    View,
    setting,
)
from eclectus.maths import numbers
from eclectus.maths.numbers import Arithmetic, Value
from eclectus.maths.sampling import draw_marked, draw_rows, draws_proportional
from eclectus.model.settings import apply_implied
from eclectus.policies.rosella.costs import DEAD_RATE, KEYS, At, Column, Nodes
from eclectus.policies.rosella.locality import DataLevel, DataPrices, data_price, in_words, no_price
from eclectus.policies.rosella.replan import Replan

# Placement by sampling: draw a few nodes, compare them, join the node queue of the best.
#
# Q. Wu, Z. Liu, "Rosella", 2020: two draws in proportion to speed, with replacement (PPoT). The draw (query
# rule) and the comparison (assignment rule, the keys) are independent settings. Using speeds in both is
# better than using them in one (Gardner et al., "Scalable load balancing in the presence of heterogeneous
# servers", Performance Evaluation, 2021). A node with an effective rate of 0 is drawn only where all nodes
# that may run the task have it.

# Re-planning weighs waiting by the work that arrives, and leaves scarce nodes to tasks that need them.
REPLANNING = PlaceTraits(
    defers=True, defers_until_change=True, prices_data=True, needs=frozenset({"arrivals", "prices"})
)
BLIND = replace(REPLANNING, prices_data=False)  # for data
TIE = 1e-9  # weight of the service time, just large enough to decide ties
PAPER = {
    "paper": {
        "view": "sample",
        "replan": False,
        "query": "proportional",
        "choices": 2,
        "distinct": False,
        "compare": "sq",
    }
}


@dataclass(eq=False)
class Rosella(Place):
    """By learned speed: all nodes compared and re-planned, or two sampled in proportion to speed."""

    view: Literal["full", "sample"] = setting(
        "full",
        "compare all nodes (full), or a few drawn at random (sample)",
        why="best for one active scheduler, whose view is fresh; use sample if several schedulers are "
        "active, or if the view is older than a fifth of a task's running time on a slow node",
    )
    replan: bool | None = setting(
        None,
        "keep tasks in one central queue and plan them again in every scheduling cycle, instead of "
        "assigning a node on arrival",
        why="unset: true with view: full, false with view: sample",
    )
    compare: Literal["sq", "wait", "sed"] = setting(
        "wait",
        "by what nodes are compared when a task gets its node on arrival: tasks per slot (sq), time "
        "until a slot is free (wait), or time until the task has ended (sed)",
        why="wait, with ties to the faster node, had the best mean of the three at moderate load",
    )
    query: Literal["proportional", "uniform"] = setting(
        "proportional",
        "with view: sample, draw nodes in proportion to their speed, or uniformly",
        why="as in the paper; uniform draws are unstable where a few nodes do most of the work",
    )
    choices: int = setting(
        2,
        "with view: sample, number of nodes drawn for a task; the best of them gets it",
        why="as in the paper; a third choice gains little, a single one loses much",
        unit="nodes",
        least=1,
        most=64,
    )
    theta: float | None = setting(
        None,
        "with re-planning, weight of a second of waiting relative to a second of running",
        why="unset: computed from what arrives and what faster nodes do (docs/placement.md); with 1 each "
        "task takes its own shortest delay, which is worse for all; with 1000 the fastest node with room",
        least=1,
        most=1000,
    )
    distinct: bool = setting(
        False,
        "with view: sample, never draw the same node twice for a task",
        why="the paper draws with replacement",
    )
    soft_weight: float = setting(
        3.0,
        "how much slower a node counts that meets none of a pod's preferences",
        why="3: such a node must be four times as fast to be chosen; with 1 fewer preferences are met, "
        "and nothing is gained (docs/placement.md)",
        least=0,
        most=100,
    )
    price_data: bool = setting(
        True,
        "with re-planning, count as part of a pod's run time how much longer it takes away from its data "
        "(docs/data.md)",
        why="a pod that says where its data are gains by it, and no other pod has any",
    )
    data_bandwidth: float | None = setting(
        None,
        "with priceData, at how many MB in a second a pod reads data that its node lacks",
        why="unset: how many times as long pods of a kind take elsewhere is learned; state it where those of "
        "one kind read very different amounts",
        unit="MB/s",
        least=1e-3,
        most=1e9,
    )
    data_levels: tuple[DataLevel, ...] = setting(
        (),
        "with priceData, labels of nodes by which others are near the data, the nearest first: a rack, then "
        "perhaps a zone; each with a bandwidth if dataBandwidth is stated",
        why="Kubernetes has no label for racks; without any, all nodes without the data are equally far",
    )

    image_bandwidth: float | None = setting(
        None,
        "with re-planning, at how many MB of unpacked images in a second a node pulls those that it lacks; "
        "their time counts as part of a pod's run time there",
        why="unset: images do not count; state it where pulls take long beside what pods run (docs/data.md)",
        unit="MB/s",
        least=1e-3,
        most=1e9,
    )

    mode: Literal["eclectus", "paper"] = setting(
        "eclectus",
        "paper: two draws in proportion to speed, of which the shorter queue gets the task, and the "
        "paper's learner; settings that contradict it are refused",
        why="the paper's is worse at high load: docs/results/ablations.md",
        implies=PAPER,
    )

    def __post_init__(self) -> None:
        apply_implied(self)
        if self.view == "sample" and self.replan:
            problem = "re-planning needs the full view; leave replan out or set view: full"
            raise SettingsError("replan", problem)
        if self.view == "full" and (self.query, self.choices, self.distinct) != ("proportional", 2, False):
            advice = "leave out query, choices and distinct, or set view: sample"
            raise SettingsError("view", f"the full view draws no nodes; {advice}")
        self._replans = self.view == "full" and self.replan is not False
        prices_data = self._replans and self.price_data
        for name, is_set in (
            ("dataBandwidth", self.data_bandwidth is not None),
            ("dataLevels", bool(self.data_levels)),
        ):
            if is_set and not prices_data:
                raise SettingsError(name, "needs priceData and re-planning, which price data by it")
        if self.image_bandwidth is not None and not self._replans:
            raise SettingsError("imageBandwidth", "needs re-planning, which counts pulls by it")
        self._data_prices = DataPrices(self.data_levels, self.data_bandwidth)
        priced = replace(REPLANNING, data_levels=self._data_prices.keys)
        self._traits = priced if prices_data else BLIND
        if self.image_bandwidth is not None:
            self._traits = replace(self._traits, needs=self._traits.needs | {"images"})
        self._price_of = partial(data_price, prices=self._data_prices) if prices_data else no_price
        of_replan = self.theta, self.soft_weight, self._price_of
        self._replan, self._pulls = Replan(*of_replan), None
        if self.image_bandwidth is not None:
            from eclectus.policies.rosella.images import ReplanWithPulls  # by few, so no start waits for it

            self._replan = self._pulls = ReplanWithPulls(*of_replan, self.image_bandwidth)
        self._key = KEYS[self.compare]

    @property
    def traits(self) -> PlaceTraits:
        """Re-planning defers tasks; otherwise they join node queues."""
        return self._traits if self._replans else PlaceTraits(joins_node_queues=True)

    @property
    def learner_settings(self) -> Mapping[str, object]:
        """The learner must have the same mode."""
        return {"mode": self.mode}

    def epoch(self, view: View) -> int:
        """Of the loads and prices that re-planning depends on."""
        return self._replan.epoch(view) if self._replans else 0

    def class_prices(self) -> Mapping[ClassKey, Floats]:
        """Those of re-planning."""
        return self._replan.demand.factors()

    def data_cost(self, view: View, task: Task) -> str:
        """By how much longer the task counts elsewhere."""
        price = self._price_of(view, task)
        said = [] if price is None else [in_words(price, view.cluster.names, self._data_prices.keys)]
        if self._pulls is not None:
            said += self._pulls.in_words(view.task_class(task))
        return "; ".join(said)

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """One action for each task; re-planning skips some, which then wait."""
        if self._replans:
            yield from self._replan.place(view, pending)
            return
        answer = self._sampled if self.view == "sample" else self._best
        for task in pending:
            yield answer(view, task)

    def _sampled(self, view: View, task: Task) -> Action:
        """Enqueue the task at the drawn node of least cost; the first drawn wins a tie."""
        task_class = view.task_class(task)
        rows, speeds = task_class.waitable_rows, view.speeds(task_class)
        if not len(rows):
            return Unschedulable(task)
        drawn: list[int] = []
        if self.distinct:
            left = rows
            while len(drawn) < self.choices and (one := self._drawn(view.rng, left, speeds, 1)):
                drawn += one
                left = left[left != one[0]]
        else:
            drawn = self._drawn(view.rng, rows, speeds, self.choices)
        drawn = drawn or list(draw_rows(view.rng, rows, self.choices, self.distinct))
        if len(drawn) == 1:
            return Enqueue(task, drawn[0])
        cost = partial(self._cost, numbers, task_class.scalars, scalars(speeds.rate))
        return Enqueue(task, min(drawn, key=cost))

    def _drawn(self, rng: Random, rows: Rows, speeds: Speeds, count: int) -> list[int]:
        """`count` of the rows by the query rule, with replacement; empty if all rates are 0."""
        if self.query == "proportional":
            return draws_proportional(rng, rows, speeds.rate, speeds.most, count)
        works = speeds.rate > 0.0
        drawn = (draw_marked(rng, rows, works) for _ in range(count))
        return [row for row in drawn if row is not None]

    def _best(self, view: View, task: Task) -> Action:
        task_class = view.task_class(task)
        if not task_class.feasible_count:
            return Unschedulable(task)
        best = view.ranking(task_class, partial(self._costs, view), self).best()
        return Unschedulable(task) if best is None else Enqueue(task, best[0])

    def _costs(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        rate = view.speeds(task_class).rate
        cost = self._cost(np, task_class, rate, rows)
        cost = np.where(rate[rows] > 0.0, cost, 1.0 / DEAD_RATE + task_class.overflow[rows])
        # Dead or not, services never end; and a limit of a pool is waited for in no node queue.
        return np.where(task_class.waitable(rows), cost, np.inf)

    def _cost(self, m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At) -> Value:
        """Cost of one feasible node, or of many."""
        penalty = 1.0 + self.soft_weight * (1.0 - nodes.preference_score[at])
        return (self._key(m, nodes, rate, at) + TIE * m.divide(1.0, rate[at])) * penalty
