"""Quincy's own costs: the time in which a pod's data come to the node.

M. Isard and others, "Quincy: Fair Scheduling for Distributed Computing Clusters", SOSP 2009. A pod says what
it reads and which nodes have that. Bytes on other nodes of the rack cost so much each, and bytes from other
racks more. A pod has arcs to the nodes that have a tenth of its data or more, at their cost, to the racks
that do, at the cost of the worst node there, and to any node, at the cost of the worst of all. A pod that
waits costs more the longer it has waited, so it takes a node further away once that costs no more.

Departures:
- costs are milliseconds and not whole gigabytes, so that small inputs count too;
- data that no known node has are as far from every node, so they are left out, and nobody waits for them;
- a pod has arcs to at most `NEAR_MOST` nodes and as many racks, the cheapest;
- each pod on a node adds a millisecond, so that of equally near nodes the emptiest is taken; to wait costs a
  tenth of a second from the beginning, so that a pod whose data cost nothing does not wait.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from eclectus.framework import Input, Ints, Rows, Task, TaskClass, View
from eclectus.policies.quincy.costs.cost_model import (
    WHOLE_MOST,
    CostModel,
    DataCosts,
    Held,
    Nearness,
    pods_on,
    whole,
)

GB = 10**9
MS = 1000  # of a second
NEAR_SHARE = 0.1  # of a pod's data: a node or a rack with so much is near them (Firmament's)
NEAR_MOST = 16  # nodes, and racks, to which a group of equal pods has arcs of its own
CROWDED_MOST = 80  # pods on a node that count; with ten more, less than the least of waiting
STAYING_LEAST = 100


class Prices(NamedTuple):
    """Seconds for a GB from the rack, which is the value of a label of nodes, and from other racks.

    `waiting`: the seconds of moving data that a second of waiting is worth.
    """

    rack: str
    in_rack: float
    across: float
    waiting: float

    def of(self, in_rack: float, across: float) -> int:
        """What so many bytes cost."""
        return min(round(MS * (self.in_rack * in_rack + self.across * across) / GB), WHOLE_MOST)


class TransferTimes(CostModel):
    """Milliseconds, by the pod's data alone."""

    is_time = True

    def __init__(self, prices: Prices) -> None:
        self._prices = prices

    @override
    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        return np.zeros(len(rows), dtype=np.int64)

    @override
    def data(self, view: View) -> DataCosts:
        return Transfers(view, self._prices)

    @override
    def crowding(self, view: View, rows: Rows) -> tuple[Ints, int]:
        return np.minimum(pods_on(view, rows), CROWDED_MOST), 1

    @override
    def waiting(self, view: View, task_class: TaskClass, waited: float) -> int:
        return self._waited(waited)

    @override
    def ended(self, view: View, task: Task, waited: float) -> int:
        return self._waited(waited)

    def _waited(self, waited: float) -> int:
        return min(round(MS * self._prices.waiting * waited) + STAYING_LEAST, WHOLE_MOST)


class Transfers(DataCosts):
    """What data cost on the nodes as they are."""

    def __init__(self, view: View, prices: Prices) -> None:
        self._cluster, self._prices = view.cluster, prices

    @cached_property
    def racks(self) -> Ints:
        """A node without the label is a rack of its own."""
        labels = self._cluster.labels
        codes = labels.column(self._prices.rack).astype(np.int64)
        alone = len(labels.codes(self._prices.rack)) + np.arange(len(codes))
        return np.where(codes < 0, alone, codes)

    @cached_property
    def _sizes(self) -> Ints:
        """By rack, how many nodes it has."""
        found: Ints = np.bincount(self.racks[self._cluster.present])
        return found

    @override
    def nearness(self, inputs: Sequence[Input]) -> Nearness:
        held = self._held(inputs)
        if not held.total:
            return Nearness(held=held)
        worst, enough = self._worst_of_racks(held), NEAR_SHARE * held.total
        is_outside = int(self._sizes.sum()) > sum(int(self._sizes[rack]) for rack in held.by_rack)
        far = [self._prices.of(0, held.total)] if is_outside else []
        nodes = sorted(
            (self._cost_at(held, row), row) for row, local in held.by_row.items() if local >= enough
        )
        racks = sorted(
            (worst[rack], rack)
            for rack, near in held.by_rack.items()
            if near >= enough and self._sizes[rack] > 1
        )
        return Nearness(
            max([*worst.values(), *far]),
            tuple(row for _, row in nodes[:NEAR_MOST]),
            tuple(cost for cost, _ in nodes[:NEAR_MOST]),
            tuple((rack, cost) for cost, rack in racks[:NEAR_MOST]),
            held,
        )

    @override
    def worst(self, inputs: Sequence[Input]) -> int:
        rows = self._cluster.rows
        size = sum(each.size for each in inputs if any(map(rows.__contains__, each.nodes)))
        return max(self._prices.of(0, size), self._prices.of(size, 0))

    @override
    def costs(self, inputs: Sequence[Input], rows: Rows) -> Ints:
        in_rack, across = self._held(inputs).moved(rows, self.racks[rows])
        return whole(MS * (self._prices.in_rack * in_rack + self._prices.across * across) / GB)

    def _held(self, inputs: Sequence[Input]) -> Held:
        by_row, by_rack, total = Counter[int](), Counter[int](), 0
        for each in inputs:
            rows = {row for name in each.nodes if (row := self._cluster.rows.get(name)) is not None}
            total += each.size if rows else 0
            for row in rows:
                by_row[row] += each.size
            for rack in {int(self.racks[row]) for row in rows}:
                by_rack[rack] += each.size
        return Held(by_row, by_rack, total)

    def _cost_at(self, held: Held, row: int) -> int:
        near = held.by_rack[int(self.racks[row])]
        return self._prices.of(near - held.by_row[row], held.total - near)

    def _worst_of_racks(self, held: Held) -> dict[int, int]:
        """The cost on the worst node of each rack that has some of the data."""
        local: dict[int, list[int]] = {rack: [] for rack in held.by_rack}
        for row, size in held.by_row.items():
            local[int(self.racks[row])].append(size)
        found = {}
        for rack, near in held.by_rack.items():
            least = min(local[rack]) if len(local[rack]) == self._sizes[rack] else 0
            found[rack] = self._prices.of(near - least, held.total - near)
        return found
