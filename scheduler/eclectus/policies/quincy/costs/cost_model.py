"""What a cost model answers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from eclectus.framework import COST_MOST, Floats, Input, Ints, Rows, Task, TaskClass, View

WHOLE_MOST = COST_MOST // 2  # of a node or of staying; what priorities add to that is within COST_MOST


def whole(costs: Floats) -> Ints:
    """Costs as whole numbers within bounds; inf is the greatest."""
    bounded = np.nan_to_num(costs, nan=WHOLE_MOST, posinf=WHOLE_MOST, neginf=-WHOLE_MOST)
    found: Ints = np.rint(np.clip(bounded, -WHOLE_MOST, WHOLE_MOST)).astype(np.int64)
    return found


def pods_on(view: View, rows: Rows) -> Ints:
    """How many pods each of these rows has."""
    found: Ints = np.rint(view.cluster.used[rows, view.cluster.columns["pods"]]).astype(np.int64)
    return found


class Held(NamedTuple):
    """Bytes of a pod's inputs, each counted once: by row, by number of the rack, and in all."""

    by_row: Mapping[int, int]
    by_rack: Mapping[int, int]
    total: int

    def moved(self, rows: Rows, racks: Ints) -> tuple[Floats, Floats]:
        """By row, ascending, of these racks: the bytes from other nodes of the rack, and from other racks."""
        local = np.zeros(len(rows))
        keys = np.array(sorted(self.by_row), dtype=np.intp)
        at = np.searchsorted(rows, keys)
        is_in = at < len(rows)
        is_in[is_in] = rows[at[is_in]] == keys[is_in]
        local[at[is_in]] = [float(self.by_row[row]) for row in keys[is_in].tolist()]
        near = np.zeros(1 + max([*self.by_rack, int(racks.max(initial=0))]))
        near[list(self.by_rack)] = [float(each) for each in self.by_rack.values()]
        return near[racks] - local, self.total - near[racks]


class Nearness(NamedTuple):
    """What the data of a pod cost it beside the costs of its class: near them, and anywhere else.

    `elsewhere`: as on the worst node. `rows` with `costs`: nodes near the data, the cheapest first. `racks`:
    the number of a rack near the data, and the cost of its worst node. `held`: None where it is not looked
    at where the data are.
    """

    elsewhere: int = 0
    rows: Sequence[int] = ()
    costs: Sequence[int] = ()
    racks: Sequence[tuple[int, int]] = ()
    held: Held | None = None


class DataCosts(ABC):
    """What the data of pods cost on nodes, in one scheduling cycle."""

    @property
    @abstractmethod
    def racks(self) -> Ints:
        """By row, the number of its rack."""

    @abstractmethod
    def nearness(self, inputs: Sequence[Input]) -> Nearness:
        """Which nodes and racks are near the data, and what these cost there and elsewhere."""

    @abstractmethod
    def worst(self, inputs: Sequence[Input]) -> int:
        """At most what they cost on any node, without looking at where they are."""

    @abstractmethod
    def costs(self, inputs: Sequence[Input], rows: Rows) -> Ints:
        """Exactly on each of these rows, which ascend."""


class CostModel(ABC):
    """What it costs to run pods on nodes, and to let them wait."""

    @abstractmethod
    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        """Of the next pod of the class on each of these rows, where it has room."""

    def data(self, view: View) -> DataCosts | None:
        """What data cost in this cycle; None where they cost nothing."""
        return None

    def rise(self, task_class: TaskClass) -> int:
        """What each further pod of the class costs more on the same node."""
        return 0

    def crowding(self, view: View, rows: Rows) -> tuple[Ints, int]:
        """Of the next pod on each of these rows, of whatever class; and what each further one costs more."""
        return np.zeros(len(rows), dtype=np.int64), 0

    def waiting(self, view: View, task_class: TaskClass, waited: float) -> int:
        """Of a pod of the class that stays without a node in this round and has waited for so many seconds.

        By default any node is better than none.
        """
        return WHOLE_MOST

    is_time: bool = False
    """Whether costs are milliseconds, so that what a running pod has done may be taken off."""

    def staying(self, view: View, task: Task, row: int) -> int:
        """Of a running pod on its node, beside its data, as if it began there now."""
        return 0

    def ended(self, view: View, task: Task, waited: float) -> int:
        """Of a running pod that is ended and then waits. It has waited for so many seconds before it ran.

        As `waiting`, without the nodes of its class: nothing else may be asked about that.
        """
        return WHOLE_MOST
