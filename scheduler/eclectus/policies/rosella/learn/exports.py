"""What has been learned, as values: for the CLI, metrics and NodeProfiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import LearnedCell
from eclectus.maths.estimators.flows import ArrivalRate, LowPercentile
from eclectus.maths.estimators.ratio import NEGLIGIBLE, confidences
from eclectus.maths.products import sum_of_products
from eclectus.maths.window import load_ratio
from eclectus.model.learned import (
    LearnedGroup,
    LearnedLoad,
    LearnedNode,
    LearnedSummary,
    LearnedWork,
)
from eclectus.policies.rosella.learn.by_namespace import KnowledgeByNamespace
from eclectus.policies.rosella.learn.knowledge import Knowledge
from eclectus.policies.rosella.learn.rates import Rates, Tally


class Load:
    """Estimates of lambda, mu_bar and alpha. All rates in tasks a second."""

    def __init__(self, capacity: float | None) -> None:
        self._capacity = capacity
        self._arrivals = ArrivalRate()
        self.measured_capacity = LowPercentile()  # by effective rates
        self.count = 0  # tasks that have arrived, for any scheduler

    def arrived(self, now: float) -> None:
        """A task has arrived."""
        self.count += 1
        self._arrivals.add(now)

    def measure_capacity(
        self, namespaces: Sequence[Knowledge], rows: NDArray[np.intp], slots: NDArray[np.int64], now: float
    ) -> None:
        """Add a reading: the sum of effective speeds times slots, over the mean size of recent tasks.

        Speeds and sizes of each namespace count in proportion to its recent tasks. Nothing before the first.
        """
        known = [(space, recent) for space in namespaces if (recent := float(space.rates.recent.sum())) > 0]
        if not known:
            return
        total, speed, size = sum(recent for _, recent in known), 0.0, 0.0
        for space, recent in known:
            effective = space.rates.matrix.factor[rows] * space.shares()[rows]
            speed += recent / total * float(sum_of_products(effective, slots))
            size += recent / total * space.rates.mean_size()
        self.measured_capacity.add(speed / size, now)

    def arrivals(self, now: float) -> float:
        """lambda: the arrival rate of tasks of all schedulers."""
        return self._arrivals.slow(now)

    def arrivals_upper(self, now: float) -> float:
        """An upper estimate of the arrival rate: it rises fast and falls slowly. For the spare capacity."""
        return max(self._arrivals.fast(now), self._arrivals.slow(now))

    @property
    def capacity(self) -> float:
        """mu_bar: the setting, or else the measured lower bound."""
        return self.measured_capacity.value if self._capacity is None else self._capacity

    def ratio(self, now: float) -> float:
        """alpha, clamped."""
        return load_ratio(self.arrivals(now), self.capacity)


class Exports:
    """Reads the learner's state and changes nothing."""

    def __init__(self, namespaces: KnowledgeByNamespace, load: Load, tally: Tally) -> None:
        self._namespaces, self._load, self._tally = namespaces, load, tally

    def learned_cells(self, nodes: Mapping[int, str], after: str) -> Iterator[LearnedCell]:
        """Every cell with samples, of dead nodes too. Removed nodes are left out, as by `learned_nodes`."""
        for node, row in sorted((node, row) for row, node in nodes.items() if node > after):
            if nodes.get(row) == node:
                yield from list(self._cells(row, node))

    def _cells(self, row: int, node: str) -> Iterator[LearnedCell]:
        state = self._namespaces.state(row)
        for rates in self._rates():
            names = _names(rates)
            for workload, samples in rates.scalars(row):
                yield LearnedCell(
                    node=node,
                    workload=names[workload],
                    rate=rates.matrix.rate.item(workload, row),
                    samples=len(samples),
                    confidence=rates.confidence(workload, row),
                    state=state,
                    newest_at=samples.newest_at,
                )

    def learned_nodes(
        self, nodes: Mapping[int, str], epochs: Mapping[int, int], now: float
    ) -> Iterator[LearnedNode]:
        """Every node with samples. Nodes may change while this is read: removed nodes are left out."""
        for row, node in sorted(nodes.items()):
            if nodes.get(row) == node and (found := self.learned_node(row, node, epochs[row], now)).work:
                yield found

    def learned_node(self, row: int, node: str, epoch: int, now: float) -> LearnedNode:
        """One node. Without samples it counts as typical; it may be dead all the same."""
        work, state, speed, sure = tuple(self._work(row)), self._namespaces.state(row), 1.0, 0.0
        if work:
            rates = self._namespaces.median_knowledge(row).rates
            speed, sure = rates.matrix.factor.item(row), rates.node_confidence(row)
        return LearnedNode(node, epoch, now, state, speed, sure, work)

    def learned_load(self, now: float) -> LearnedLoad:
        """Arrival rate (upper estimate), capacity of all nodes together, and recent shares of workloads."""
        recent = {
            workload: rates.recent.item(index)
            for rates in self._rates()
            for workload, index in rates.index.items()
        }
        total = sum(recent.values())
        shares = tuple((workload, count / total) for workload, count in recent.items()) if total > 0 else ()
        return LearnedLoad(self._load.arrivals_upper(now), self._load.capacity, shares)

    def summary(self, nodes: Mapping[int, str], groups: NDArray[np.intp], now: float) -> LearnedSummary:
        """Totals by group of nodes. `groups`: by row, -1 for none."""
        load = self._load
        states = Counter((groups.item(row), self._namespaces.state(row)) for row in nodes)
        return LearnedSummary(
            arrivals=load.arrivals(now),
            capacity=load.capacity,
            arrived=load.count,
            samples=self._tally.samples,
            alarms=self._tally.alarms,
            states=tuple((group, state, count) for (group, state), count in sorted(states.items())),
            work=tuple(each for rates in self._rates() for each in _by_group(rates, groups)),
        )

    def _work(self, row: int) -> Iterator[LearnedWork]:
        for rates in self._rates():
            names = _names(rates)
            for workload, _ in rates.scalars(row):
                yield LearnedWork(
                    workload=names[workload],
                    rate=rates.matrix.own_rate(workload, row),
                    samples=max(1, round(rates.matrix.count.item(workload, row))),
                    confidence=rates.confidence(workload, row),
                )

    def _rates(self) -> list[Rates]:
        """Of all namespaces, in the order of their names."""
        return [space.rates for _, space in self._namespaces.items()]


def _names(rates: Rates) -> dict[int, str]:
    return {index: workload for workload, index in rates.index.items()}


def _by_group(rates: Rates, groups: NDArray[np.intp]) -> Iterator[LearnedGroup]:
    matrix = rates.matrix
    for workload, index in rates.index.items():
        seen = np.flatnonzero((matrix.count[index] > NEGLIGIBLE) & (groups >= 0))
        if not len(seen):
            continue
        rate, count, of = matrix.rate[index, seen], matrix.count[index, seen], groups[seen]
        sure = confidences(rates.variation(index), count)
        nodes = np.bincount(of)
        samples, speed, confidence = (np.bincount(of, each) for each in (count, rate / rate.mean(), sure))
        for group in np.flatnonzero(nodes).tolist():
            each = nodes.item(group)
            yield LearnedGroup(
                group,
                workload,
                each,
                samples=samples.item(group),
                speed=speed.item(group) / each,
                confidence=confidence.item(group) / each,
            )
