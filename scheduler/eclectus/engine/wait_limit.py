"""Work conservation: no pod waits for longer than its profile's limit while a feasible node has room.

Policies let pods wait beside room because of what they believe: that a node is slow or dead, or that another
one will be free soon. Beliefs can be wrong, and pods of one tenant can make those of another wrong. So the
engine itself places a pod that has waited for so long, on the best node with room: the fastest, nodes that
meet preferences counting as up to twice as fast; of equal ones the one with the most room.
"""

from collections.abc import Iterator
from functools import partial
from operator import attrgetter

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.engine.agenda import ProfileWaits
from eclectus.engine.nominations import Nominations
from eclectus.engine.state import State
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Amounts, ClassKey, Task


class WaitLimit:
    """Places pods that have waited beside room, whatever queue they are in."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state = state
        self._nominations = nominations
        self._best = BestNode(state)

    def place_overdue(self) -> None:
        """Check the pods that are due, after policies have answered, and bind those that are overdue."""
        now = self._state.now
        for waits in self._state.waiting_times.due(now):
            for class_key in waits.check(now, partial(self._has_room, waits)):
                self._place(waits, class_key)

    def _place(self, waits: ProfileWaits, class_key: ClassKey) -> None:
        """Place pods of the class while a node has room: the highest priority first, then the eldest."""
        for task in sorted(self._pods(waits, class_key), key=attrgetter("priority"), reverse=True):
            row = self._row_for(task)
            if row is None:
                return
            if self._state.pools.limit_on(task) is not None:
                continue  # beside those that were placed just now
            self._nominations.bind(task, row)
            self._state.counters.placed_by_limit += 1

    def _has_room(self, waits: ProfileWaits, class_key: ClassKey) -> bool:
        """Whether a node has room for the pod of the highest priority, to which most room is free."""
        first = max(self._pods(waits, class_key), key=attrgetter("priority"), default=None)
        return first is not None and self._row_for(first) is not None

    def _pods(self, waits: ProfileWaits, class_key: ClassKey) -> Iterator[Task]:
        """Those of the class that may start in their pools: room that a limit forbids is not theirs."""
        pods = (self._state.pending[uid] for uid in waits.of_class(class_key))
        return (task for task in pods if self._state.pools.limit_on(task) is None)

    def _row_for(self, task: Task) -> int | None:
        """The best node with room, or one on which room is held only for pods of lower priority."""
        row = self._best.row_for((task.spec, task.workload))
        return self._nominations.row_held_for_lower(task) if row is None else row


class BestNode:
    """The engine's own choice of a node: the fastest with room, by what is learned."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._most_left: Floats = np.empty(0)  # of each resource on one node, beside the pods that hold some
        self._as_of = (-1, -1, 0)  # of shapes and usage, and how many resources

    def row_for(self, class_key: ClassKey) -> int | None:
        """The best node with room for a task of the class; None if none has room. O(nodes)."""
        rows = self._rows_with_room(class_key)
        if not len(rows):
            return None
        task_class = self._state.view.classes.current(*class_key)
        pace = self._state.view.speeds(task_class).rate[rows] * task_class.background_free[rows]
        worth = pace / (2.0 - task_class.preference_score[rows])
        return int(rows[np.lexsort((task_class.overflow[rows], -worth))[0]])

    def _rows_with_room(self, class_key: ClassKey) -> Rows:
        """The nodes with room for a task of the class beside the pods that hold some.

        Room that is tentative for other tasks is only planned, and counts as free. A class is brought up to
        date only if some node on which it may be feasible has the amounts that it requests.
        """
        state = self._state
        if not self._is_left_somewhere(class_key[0].requests):
            return np.empty(0, dtype=np.intp)
        rows = self._rows_with_amounts(class_key[0].requests)
        rows = state.class_queues.feasible_among(class_key, rows)
        if not len(rows):
            return rows
        task_class = state.view.classes.current(*class_key)
        if task_class.fits_now_count:
            return task_class.fits_now_rows
        return rows[[task_class.fits_beside_held(row) for row in rows.tolist()]]

    def _is_left_somewhere(self, requests: Amounts) -> bool:
        """Whether some node has as much left of each resource, if no one node of all: O(resources).

        Of thousands of classes that wait for room most ask for more than any node has.
        """
        cluster = self._state.cluster
        as_of = cluster.shape.head, cluster.usage.head, len(cluster.columns)
        if as_of != self._as_of:
            left = cluster.allocatable[cluster.present] - cluster.used[cluster.present]
            self._most_left, self._as_of = left.max(axis=0, initial=-np.inf), as_of
        return all(amount <= self._most_left[column] for column, amount in cluster.parts(requests))

    def _rows_with_amounts(self, requests: Amounts) -> Rows:
        cluster = self._state.cluster
        has_room = cluster.present.copy()
        if cluster.not_offered(requests):
            has_room[:] = False
        for column, amount in cluster.parts(requests):
            has_room &= cluster.used[:, column] + amount <= cluster.allocatable[:, column]
        return np.flatnonzero(has_room)
