"""From pods that wait to what is asked about them: which nodes and groups the network of a round has."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from eclectus.framework import Ints, Rows, Task, TaskClass, View
from eclectus.policies.quincy.costs import CostModel
from eclectus.policies.quincy.costs.cost_model import DataCosts, Nearness
from eclectus.policies.quincy.graph import Group, Job, NodeSlots, Reach, network
from eclectus.policies.quincy.groups import Waiting, job_of, outranked, precedence_of, spared_for_siblings
from eclectus.policies.quincy.round import Round
from eclectus.policies.quincy.running import Placed, RunningGroups, RunningPods

ARCS_MOST = 200_000  # from classes, and from racks of classes, to nodes
NODES_LEAST = 64  # of a class, however many classes there are


class _Known(NamedTuple):
    """Rows with room for a class, how many of its pods fit on each, and what the first costs."""

    rows: Rows
    slots: Ints
    costs: Ints


class Draft:
    """The parts of a round. `slots`: by node, how many pods of whatever class fit there.

    The last nodes are the places of running pods that may be ended, one for each row with some of them.
    """

    def __init__(
        self,
        view: View,
        model: CostModel,
        taken: Sequence[Task],
        data: DataCosts | None,
        running: RunningPods | None,
    ) -> None:
        self._view, self._model, self._data = view, model, data
        self._pods_waiting = len(taken)
        self.waiting = Waiting(view, taken, data)
        self._nearness = self.waiting.nearness()
        self._place_of = {key: at for at, key in enumerate(self.waiting.classes)}
        self._pods = () if running is None else running.pods
        self._running = RunningGroups(view, running, model, data)
        known = [*self._by_class()]
        free = np.unique(np.concatenate([each.rows for each in known]))
        places = np.zeros(0, dtype=np.intp) if running is None else running.rows
        self._first_place, self._rows = len(free), np.concatenate((free, places))
        self.slots: Ints = np.zeros(len(self._rows), dtype=np.int64)
        self._reaches: list[Reach] = []
        for of_class, each in zip(self.waiting.classes.values(), known, strict=True):
            nodes = np.searchsorted(free, each.rows)
            np.maximum.at(self.slots, nodes, each.slots)
            self._reaches.append(self._reach(of_class, nodes, each, running))
        if running is not None:
            self.slots[self._first_place :] = running.counts

    def _reach(self, of_class: TaskClass, nodes: Ints, known: _Known, running: RunningPods | None) -> Reach:
        """The nodes with room for a class, and the places of pods that may be ended for one of it."""
        slots, costs = known.slots, known.costs
        if running is not None:
            at, more = running.slots(of_class)
            nodes = np.concatenate((nodes, self._first_place + at))
            slots = np.concatenate((slots, more))
            costs = np.concatenate((costs, self._model.costs(self._view, of_class, running.rows[at])))
        return Reach(nodes, slots, costs, np.full(len(nodes), self._model.rise(of_class), dtype=np.int64))

    def pods_of_jobs(self) -> tuple[Counter[str], Counter[str]]:
        """By job, in the order of their numbers: how many of its pods wait, and how many may be ended."""
        waiting, running = Counter(dict.fromkeys(self.waiting.jobs, 0)), Counter[str]()
        for key, tasks in self.waiting.groups.items():
            waiting[key.job] += len(tasks)
        for pod in self._pods:
            running[job_of(pod.task)] += 1
        waiting.update(dict.fromkeys(running, 0))
        return waiting, running

    def round(self, jobs: Sequence[Job], until: float) -> Round:
        """What is asked, with these bounds of jobs; it is given up at `until`."""
        view, rows, waiting = self._view, self._rows, self.waiting
        racks = np.zeros(0, dtype=np.int64) if self._data is None else self._data.racks[rows]
        job_at = {job: at for at, job in enumerate(self.pods_of_jobs()[0])}
        place_at = {row: at for at, row in enumerate(rows[self._first_place :].tolist(), self._first_place)}
        running, tasks = self._running.sources(job_at, place_at), self._running.tasks
        precedence = [key.precedence for key in waiting.groups] + [
            precedence_of(each[0].task) for each in tasks
        ]
        groups = [*self._groups(racks)]
        running = spared_for_siblings(groups, running, precedence)
        groups, running = outranked(groups, running, precedence, self._reaches)
        crowding = NodeSlots(self.slots, *self._model.crowding(view, rows), len(place_at))
        return Round(
            network(groups, jobs, self._reaches, crowding, running),
            [view.cluster.names[row] for row in rows.tolist()],
            rows,
            racks,
            groups,
            self._nearness,
            self._reaches,
            self._group_of(tasks),
            view.now,
            until,
            self._first_place,
            running,
            tasks,
        )

    def _group_of(self, running: Sequence[Sequence[Placed]]) -> dict[str, int]:
        """By uid, the source of a pod that waits, or of one that may be ended."""
        found = {task.uid: at for at, tasks in enumerate(self.waiting.groups.values()) for task in tasks}
        for at, pods in enumerate(running, len(self.waiting.groups)):
            found.update((pod.task.uid, at) for pod in pods)
        return found

    def _by_class(self) -> Iterator[_Known]:
        """What is known of each class.

        Without data each class needs as many nodes as pods are in the round, its cheapest: whatever the
        others take, one of these is left that costs no more than any other node.
        """
        classes = self.waiting.classes
        if self._data is None:
            most = max(min(ARCS_MOST // len(classes), self._pods_waiting), NODES_LEAST)
        else:  # to a node: from the class, and from the rack
            most = max(ARCS_MOST // (2 * len(classes)), NODES_LEAST)
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
            whole = costs + self._model.crowding(self._view, rows)[0]
            chosen = np.sort(np.lexsort((whole, self._distances(near, rows)))[:most])
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
        members, positions = _Members(racks), defaultdict[int, list[int]](list)
        for at, row in enumerate(self._rows.tolist()):
            positions[row].append(at)
        for (key, tasks), near in zip(self.waiting.groups.items(), self._nearness, strict=True):
            nodes = {
                at: cost
                for row, cost in zip(near.rows, near.costs, strict=True)
                for at in positions.get(row, ())
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
