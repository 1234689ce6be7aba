"""From pods that wait to what is asked about them: which nodes and groups the network of a round has."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eclectus.framework import Ints, Rows, Task, TaskClass, View
from eclectus.policies.quincy.costs import CostModel
from eclectus.policies.quincy.costs.cost_model import DataCosts, Nearness
from eclectus.policies.quincy.graph import Group, Job, NodeSlots, Reach, network
from eclectus.policies.quincy.groups import Waiting, outranked
from eclectus.policies.quincy.round import Round

ARCS_MOST = 200_000  # from classes, and from racks of classes, to nodes
NODES_LEAST = 64  # of a class, however many classes there are


class _Known(NamedTuple):
    """Rows with room for a class, how many of its pods fit on each, and what the first costs."""

    rows: Rows
    slots: Ints
    costs: Ints


class Draft:
    """The parts of a round. `slots`: by node, how many pods of whatever class fit there."""

    def __init__(self, view: View, model: CostModel, taken: Sequence[Task], data: DataCosts | None) -> None:
        self._view, self._model, self._data = view, model, data
        self.waiting = Waiting(view, taken, data)
        self._nearness = self.waiting.nearness()
        self._place_of = {key: at for at, key in enumerate(self.waiting.classes)}
        known = [*self._by_class()]
        self._rows = np.unique(np.concatenate([each.rows for each in known]))
        self.slots: Ints = np.zeros(len(self._rows), dtype=np.int64)
        self._reaches: list[Reach] = []
        for of_class, each in zip(self.waiting.classes.values(), known, strict=True):
            nodes = np.searchsorted(self._rows, each.rows)
            rises = np.full(len(nodes), model.rise(of_class), dtype=np.int64)
            self._reaches.append(Reach(nodes, each.slots, each.costs, rises))
            np.maximum.at(self.slots, nodes, each.slots)

    def round(self, jobs: Sequence[Job], until: float) -> Round:
        """What is asked, with these bounds of jobs; it is given up at `until`."""
        view, rows, waiting = self._view, self._rows, self.waiting
        racks = np.zeros(0, dtype=np.int64) if self._data is None else self._data.racks[rows]
        groups = outranked([*self._groups(racks)], [key.precedence for key in waiting.groups], self._reaches)
        crowding = NodeSlots(self.slots, *self._model.crowding(view, rows))
        return Round(
            network(groups, jobs, self._reaches, crowding),
            [view.cluster.names[row] for row in rows.tolist()],
            rows,
            racks,
            groups,
            self._nearness,
            self._reaches,
            {task.uid: at for at, tasks in enumerate(waiting.groups.values()) for task in tasks},
            view.now,
            until,
        )

    def _by_class(self) -> Iterator[_Known]:
        """What is known of each class."""
        classes = self.waiting.classes
        arcs = 1 if self._data is None else 2  # to a node: from the class, and from the rack
        most = max(ARCS_MOST // (arcs * len(classes)), NODES_LEAST)
        near: list[list[Nearness]] = [[] for _ in classes]
        for key, each in zip(self.waiting.groups, self._nearness, strict=True):
            near[self._place_of[key.of_class]].append(each)
        for of_class, of_its_groups in zip(classes.values(), near, strict=True):
            yield self._known(of_class, most, of_its_groups)

    def _known(self, task_class: TaskClass, most: int, near: Sequence[Nearness]) -> _Known:
        """The nodes with room for a class; of very many those near its data, then the cheapest."""
        rows = task_class.fits_now_rows
        costs = self._model.costs(self._view, task_class, rows)
        if len(rows) > most:
            chosen = np.sort(np.lexsort((costs, self._distances(near, rows)))[:most])
            rows, costs = rows[chosen], costs[chosen]
        slots: Ints = np.floor(1.0 - task_class.overflow[rows]).astype(np.int64)
        return _Known(rows, np.maximum(slots, 1), costs)

    def _distances(self, near: Sequence[Nearness], rows: Rows) -> Ints:
        """Of each row: 0 of a node near data of these groups, 1 in a rack near them, 2 of any other."""
        found = np.full(len(rows), 2, dtype=np.int64)
        if self._data is not None:
            found[np.isin(self._data.racks[rows], [rack for each in near for rack, _ in each.racks])] = 1
            found[np.isin(rows, [row for each in near for row in each.rows])] = 0
        return found

    def _groups(self, racks: Ints) -> Iterator[Group]:
        """The groups, with arcs to nodes and racks near their data. `racks`: those of the nodes."""
        members, positions = _Members(racks), {row: at for at, row in enumerate(self._rows.tolist())}
        for (key, tasks), near in zip(self.waiting.groups.items(), self._nearness, strict=True):
            nodes = {
                positions[row]: cost
                for row, cost in zip(near.rows, near.costs, strict=True)
                if row in positions
            }
            waited = max(self._view.now - tasks[0].created, 0.0)
            yield Group(
                self.waiting.jobs[key.job],
                self._place_of[key.of_class],
                len(tasks),
                self._model.waiting(self._view, self.waiting.classes[key.of_class], waited),
                near.elsewhere,
                [*nodes],
                [*nodes.values()],
                [(rack, members.of(rack), cost) for rack, cost in near.racks],
            )


class _Members:
    """Which nodes of a network each rack has. `racks`: the number of the rack of each node."""

    def __init__(self, racks: Ints) -> None:
        self._order = np.argsort(racks, kind="stable")
        self._sorted = racks[self._order]

    def of(self, rack: int) -> Ints:
        """Positions, ascending."""
        first, last = np.searchsorted(self._sorted, (rack, rack + 1))
        return self._order[first:last]
