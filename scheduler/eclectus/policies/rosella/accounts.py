"""What has been learned, as values: for people, and for other processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eclectus.core.known import KnownLoad, KnownNode, KnownWork, NodeState
from eclectus.core.seam import Learned
from eclectus.policies.rosella.load import Load
from eclectus.policies.rosella.rates import Rates
from eclectus.policies.rosella.watch import Watch


class Accounts:
    """Reads all, changes nothing."""

    def __init__(self, rates: Rates, watch: Watch, load: Load) -> None:
        self._rates, self._watch, self._load = rates, watch, load

    def learned(self, nodes: Mapping[int, str]) -> Iterator[Learned]:
        """Every cell with samples; of a dead node as history."""
        rates, names = self._rates, self._names()
        for row, node in sorted(nodes.items()):
            state = self._state(row)
            for workload, samples in rates.cells(row):
                yield Learned(
                    node=node,
                    workload=names[workload],
                    rate=rates.matrix.rate.item(workload, row),
                    samples=len(samples),
                    confidence=rates.confidence(workload, row),
                    state=state,
                    newest_at=samples.newest_at,
                )

    def known(self, nodes: Mapping[int, str], epochs: Mapping[int, int], now: float) -> Iterator[KnownNode]:
        """Every node with samples."""
        for row, node in sorted(nodes.items()):
            work = tuple(self._work(row))
            if work:
                speed, sure = self._rates.matrix.factor.item(row), self._rates.node_confidence(row)
                yield KnownNode(node, epochs[row], now, self._state(row), speed, sure, work)

    def known_load(self, now: float) -> KnownLoad:
        """Arrivals and capacity of all nodes together, and the recent shares of kinds of work."""
        rates = self._rates
        recent = {workload: rates.recent.item(index) for workload, index in rates.index.items()}
        total = sum(recent.values())
        shares = tuple((workload, count / total) for workload, count in recent.items()) if total > 0 else ()
        return KnownLoad(self._load.surge(now), self._load.capacity, shares)

    def _work(self, row: int) -> Iterator[KnownWork]:
        rates, names = self._rates, self._names()
        for workload, _ in rates.cells(row):
            yield KnownWork(
                workload=names[workload],
                rate=rates.matrix.own_rate(workload, row),
                samples=max(1, round(rates.matrix.count.item(workload, row))),
                confidence=rates.confidence(workload, row),
            )

    def _names(self) -> dict[int, str]:
        return {index: workload for workload, index in self._rates.index.items()}

    def _state(self, row: int) -> NodeState:
        if self._watch.is_dead(row):
            return "dead"
        if self._watch.share.item(row) < 1.0:
            return "suspect"
        return "live" if any(self._rates.cells(row)) else "unknown"
