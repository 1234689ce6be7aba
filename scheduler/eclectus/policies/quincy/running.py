"""Running pods that a round may end, so that others get their places.

A pod that stays costs what it would cost if it began there now, less the time for which it has run: that is
what it would lose. One that is ended costs what it costs to wait, by the time that it waited before it ran.
Where that changes its place among the pods of a node, the newest go first.

Nothing is planned for a pod that is ended: its Job makes another one, which begins anew.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf, log2
from typing import NamedTuple

import numpy as np

from eclectus.feasibility.fit_error import RoomWithout
from eclectus.framework import ClassKey, Floats, Ints, Preempt, Rows, Task, TaskClass, View, Wait
from eclectus.framework.victims import is_spared
from eclectus.policies.quincy.costs.cost_model import WHOLE_MOST, CostModel, DataCosts
from eclectus.policies.quincy.graph import Running
from eclectus.policies.quincy.groups import BUCKETS, job_of, precedence_of

SEEN_MOST = 10_000  # restartable pods that are looked at for a round, the newest first
ENDED_MOST = 1000  # of them that are in its network
EVICTIONS_MOST = 64  # pods that a round ends: what a step deletes is bounded


class Hysteresis(NamedTuple):
    """What keeps pods where they are."""

    runtime: float  # for which they run before they may be ended, seconds
    gain: float  # that has to be saved where one is ended, seconds


class Placed(NamedTuple):
    """A running pod, the row of its node, and since when it runs, seconds."""

    task: Task
    row: int
    since: float


class RunningPods:
    """Those that may be ended for one of these tasks; each row with some of them has a node of their places.

    `rows`: ascending; `counts`: of such pods there. `next_at`: when the first other one may be, seconds.
    """

    def __init__(self, view: View, taken: Sequence[Task], hysteresis: Hysteresis) -> None:
        self._view, self._runtime, self.gain = view, hysteresis.runtime, hysteresis.gain
        self.next_at = inf
        self._slots: dict[ClassKey, tuple[Rows, Ints]] = {}
        evictors = [task for task in taken if task.preempts and not task.copy_of]
        self._profile = taken[0].profile if taken else ""
        self._most = max((task.priority for task in evictors), default=-inf)
        self._pools = {task.pool for task in evictors}
        self.pods = [*islice(self._found(), ENDED_MOST)]
        counts = Counter(pod.row for pod in self.pods)
        self.rows: Rows = np.array(sorted(counts), dtype=np.intp)
        self.counts: Ints = np.array([counts[row] for row in self.rows.tolist()], dtype=np.int64)
        self._freed: Floats = np.zeros((len(self.rows), view.cluster.used.shape[1]))
        for pod in self.pods:
            at = int(np.searchsorted(self.rows, pod.row))
            for column, amount in view.cluster.held_parts(pod.task):
                self._freed[at, column] += amount

    def _found(self) -> Iterator[Placed]:
        view = self._view
        for uid in islice(reversed(view.restartable or ()), SEEN_MOST):
            task, since = view.placed.task(uid), view.placed.held_since(uid)
            row = None if task is None else view.cluster.rows.get(task.node)
            if task is None or since is None or row is None or not self._may_end(task):
                continue
            if view.now < since + self._runtime:
                self.next_at = min(self.next_at, since + self._runtime)
            else:
                yield Placed(task, row, since)

    def _may_end(self, task: Task) -> bool:
        """Whatever its age: some waiting pod may take its place, and no budget protects it."""
        view = self._view
        if task.profile != self._profile or task.priority > self._most or task.pool not in self._pools:
            return False
        return may_end(view, task) and not any(view.budgets.violated_by((task,)))

    def has_place(self, task_class: TaskClass) -> bool:
        """Whether a node has room for a pod of the class, or would have without pods that may be ended."""
        return bool(task_class.fits_now_count or len(self.slots(task_class)[0]))

    def slots(self, task_class: TaskClass) -> tuple[Rows, Ints]:
        """Positions among `rows`, and how many pods of the class more would fit there if others were ended.

        One for each that is ended at most. None for a class with rules about the pods of a node or of others:
        which of them would have to go is not known by amounts.
        """
        key = task_class.spec, task_class.workload
        if key not in self._slots:
            self._slots[key] = self._slots_of(task_class)
        return self._slots[key]

    def _slots_of(self, task_class: TaskClass) -> tuple[Rows, Ints]:
        none = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64)
        if not len(self.rows) or task_class.usage_rules or task_class.topology is not None:
            return none
        cluster = task_class.cluster
        columns, demands = zip(*cluster.parts(task_class.spec.requests), strict=True)
        at = np.ix_(self.rows, columns)
        free = cluster.allocatable[at] - cluster.used[at]
        least = np.maximum(np.floor(free / demands).min(axis=1), 0)
        most = np.floor((free + self._freed[:, columns]) / demands).min(axis=1)
        more: Ints = np.minimum(most - least, self.counts).astype(np.int64)
        positions = np.flatnonzero((more > 0) & task_class.feasible[self.rows])
        return positions, more[positions]


def may_end(view: View, task: Task) -> bool:
    """Whether a pod may be ended for others, its age and its budgets aside."""
    is_going = task.deleting or task.uid in view.evicted or task.uid in view.spared
    return task.restartable and bool(task.node) and not (is_going or task.copy_of or task.gang is not None)


class RunningGroups:
    """Equal running pods, as sources of the network. `tasks`: by group, those that go first first."""

    def __init__(
        self, view: View, running: RunningPods | None, model: CostModel, data: DataCosts | None
    ) -> None:
        self._view, self._model, self._data = view, model, data
        self._gain = 0.0 if running is None else running.gain
        grouped = defaultdict[tuple[object, ...], list[Placed]](list)
        for pod in () if running is None else running.pods:
            task, bucket = pod.task, int(BUCKETS * log2(1.0 + max(view.now - pod.since, 0.0)))
            inputs = () if data is None else task.inputs
            grouped[pod.row, job_of(task), task.workload, precedence_of(task), bucket, inputs].append(pod)
        self.tasks: list[list[Placed]] = [
            sorted(each, key=lambda pod: (-pod.since, pod.task.uid)) for each in grouped.values()
        ]

    def sources(self, job_at: Mapping[str, int], place_at: Mapping[int, int]) -> list[Running]:
        """Where jobs, and the places of the pods of rows, stand in the network."""
        return [
            Running(job_at[job_of(pods[0].task)], place_at[pods[0].row], len(pods), *self._costs(pods[0]))
            for pods in self.tasks
        ]

    def _costs(self, pod: Placed) -> tuple[int, int]:
        """Of staying and of being ended, for the pod of a group that has run for the shortest time."""
        view, task = self._view, pod.task
        anew = self._model.staying(view, task, pod.row)
        if self._data is not None and task.inputs:
            anew += int(self._data.costs(task.inputs, np.array([pod.row], dtype=np.intp))[0])
        done = 1000.0 * (max(view.now - pod.since, 0.0) + self._gain)
        ended = self._model.ended(view, task, max(pod.since - task.created, 0.0))
        return max(round(anew - done), -WHOLE_MOST), ended


class Ends:
    """The pods that a solution ends, by node: those that do not stay in their places."""

    def __init__(self, view: View, groups: Sequence[Sequence[Placed]], staying: Mapping[int, int]) -> None:
        """`staying`: by group, how many stay."""
        self._view = view
        self._left = EVICTIONS_MOST
        self._pods = defaultdict[str, list[Task]](list)
        for at, pods in enumerate(groups):
            for pod in pods[: len(pods) - staying.get(at, 0)]:
                self._pods[pod.task.node].append(pod.task)

    @property
    def are_enough(self) -> bool:
        """Whether the round ends no more pods: those for which more would have to go wait for another one."""
        return not self._left

    def make_room(self, task: Task, row: int, wait: Wait) -> Preempt | None:
        """End as few of them as needed for the task, where the answer still holds; else None.

        What is on its way out goes first: no pod is ended for room that comes anyway.
        """
        view, node = self._view, self._view.cluster.names[row]
        room = RoomWithout(view.task_class(task), row)
        for pod, _ in view.placed.on_row(row):
            if pod.deleting or pod.uid in view.evicted:
                room.remove(pod)
        victims = list[Task]()
        for pod in self._pods[node]:
            if room.fits or len(victims) == self._left:
                break
            current = view.placed.task(pod.uid)
            if current is not None and self._gives_way(current, task, node):
                room.remove(current)
                victims.append(current)
        if not room.fits:
            return None
        victims = [pod for pod in victims if not is_spared(room, pod)]
        if not victims or any(view.budgets.violated_by(victims)):
            return None
        gone = {each.uid for each in victims}
        self._pods[node] = [pod for pod in self._pods[node] if pod.uid not in gone]
        self._left -= len(victims)
        return Preempt(task, row, tuple(victims), wait)

    def _gives_way(self, pod: Task, task: Task, node: str) -> bool:
        is_alike = pod.pool == task.pool and pod.priority <= task.priority
        return is_alike and pod.node == node and may_end(self._view, pod)
