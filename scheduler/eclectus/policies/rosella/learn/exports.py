"""What has been learned, as values: for the CLI, metrics and NodeProfiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import LearnedCell
from eclectus.maths.estimators.ratio import NEGLIGIBLE, confidences
from eclectus.model.learned import (
    LearnedGroup,
    LearnedLoad,
    LearnedNode,
    LearnedSummary,
    LearnedWork,
    NodeState,
)
from eclectus.policies.rosella.learn.liveness import Liveness
from eclectus.policies.rosella.learn.load import Load
from eclectus.policies.rosella.learn.rates import Rates


class Exports:
    """Reads the learner's state and changes nothing."""

    def __init__(self, rates: Rates, watch: Liveness, load: Load) -> None:
        self._rates, self._liveness, self._load = rates, watch, load

    def learned_cells(self, nodes: Mapping[int, str], after: str) -> Iterator[LearnedCell]:
        """Every cell with samples, of dead nodes too. Removed nodes are left out, as by `learned_nodes`."""
        for node, row in sorted((node, row) for row, node in nodes.items() if node > after):
            if nodes.get(row) == node:
                yield from list(self._cells(row, node))

    def _cells(self, row: int, node: str) -> Iterator[LearnedCell]:
        rates, names, state = self._rates, self._names(), self._state(row)
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
            work = tuple(self._work(row)) if nodes.get(row) == node else ()
            if work:
                speed, sure = self._rates.matrix.factor.item(row), self._rates.node_confidence(row)
                yield LearnedNode(node, epochs[row], now, self._state(row), speed, sure, work)

    def learned_load(self, now: float) -> LearnedLoad:
        """Arrival rate (upper estimate), capacity of all nodes together, and recent shares of workloads."""
        rates = self._rates
        recent = {workload: rates.recent.item(index) for workload, index in rates.index.items()}
        total = sum(recent.values())
        shares = tuple((workload, count / total) for workload, count in recent.items()) if total > 0 else ()
        return LearnedLoad(self._load.arrivals_upper(now), self._load.capacity, shares)

    def summary(self, nodes: Mapping[int, str], groups: NDArray[np.intp], now: float) -> LearnedSummary:
        """Totals by group of nodes. `groups`: by row, -1 for none."""
        load, rates = self._load, self._rates
        states = Counter((groups.item(row), self._state(row)) for row in nodes)
        return LearnedSummary(
            arrivals=load.arrivals(now),
            capacity=load.capacity,
            arrived=load.count,
            samples=rates.taken,
            alarms=rates.alarms,
            states=tuple((group, state, count) for (group, state), count in sorted(states.items())),
            work=tuple(self._by_group(groups)),
        )

    def _by_group(self, groups: NDArray[np.intp]) -> Iterator[LearnedGroup]:
        matrix = self._rates.matrix
        for workload, index in self._rates.index.items():
            seen = np.flatnonzero((matrix.count[index] > NEGLIGIBLE) & (groups >= 0))
            if not len(seen):
                continue
            rate, count, of = matrix.rate[index, seen], matrix.count[index, seen], groups[seen]
            sure = confidences(self._rates.variation(index), count)
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

    def _work(self, row: int) -> Iterator[LearnedWork]:
        rates, names = self._rates, self._names()
        for workload, _ in rates.scalars(row):
            yield LearnedWork(
                workload=names[workload],
                rate=rates.matrix.own_rate(workload, row),
                samples=max(1, round(rates.matrix.count.item(workload, row))),
                confidence=rates.confidence(workload, row),
            )

    def _names(self) -> dict[int, str]:
        return {index: workload for workload, index in self._rates.index.items()}

    def _state(self, row: int) -> NodeState:
        if self._liveness.is_dead(row):
            return "dead"
        if self._liveness.share.item(row) < 1.0:
            return "suspect"
        return "live" if self._rates.has_samples(row) else "unknown"
