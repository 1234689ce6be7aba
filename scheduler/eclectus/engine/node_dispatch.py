"""Node dispatch: when a node changes, tasks of its node queue start there, in the Line policy's order."""

from collections.abc import Iterable

from eclectus.engine.state import State
from eclectus.framework import Line
from eclectus.model.errors import PolicyError
from eclectus.model.objects import ClassKey, Reservation, Task


class NodeDispatch:
    """Starts tasks from node queues. Cursors remember how much of the change logs has been handled."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._classes = state.view.classes
        self._queues = state.node_queues.by_row
        # How far changes have been handled: the heads of `usage` and `shape`, and `service_changes`. The
        # engine moves it on while there are no queues.
        self.seen = (0, 0, 0)
        lines = {name: profile.line for name, profile in state.profiles.items()}
        self._first_come = {name for name, line in lines.items() if line.traits.first_come}
        stealing = {id(line): line for line in lines.values() if line.traits.steals}
        self._stealing = list(stealing.values())

    def dispatch_changed(self) -> None:
        """Dispatch the node queues of all nodes whose usage or shape has changed; there must be queues."""
        cluster = self._state.cluster
        seen, self.seen = self.seen, (cluster.usage.head, cluster.shape.head, cluster.service_changes)
        if seen == self.seen:
            return
        changed, may_exclude = cluster.usage.since(seen[0]), self.seen[1:] != seen[1:]
        if may_exclude and changed is not None:
            shaped = cluster.shape.since(seen[1])
            changed = None if shaped is None else sorted({*changed, *shaped})
        if self._state.has_pools:  # a kind of node may be full by now
            tasks = self._state.node_queues.tasks_by_class
            may_exclude = may_exclude or any(spec.quotas for spec, _ in tasks)
        if changed is None:
            changed = sorted(cluster.rows.values())
        elif changed and any(spec.has_pod_rules for spec, _ in self._state.node_queues.tasks_by_class):
            # With a task in their queues for which a change of another node may have opened this one.
            keys = self._state.node_queues.class_keys
            following = (row for row in self._queues if any(spec.has_pod_rules for spec, _ in keys(row)))
            changed = sorted({*changed, *following})
        for row in changed:
            if row in self._queues:
                if may_exclude:
                    self._cancel_excluded(row)
                self.dispatch(row)
        if self._stealing:
            self._steal(changed)

    def enqueue(self, task: Task, row: int) -> None:
        """Add the task to the node queue of this row, and dispatch the queue."""
        state = self._state
        is_next = task.profile in self._first_come and row not in self._queues
        if is_next and self._fits((task.spec, task.workload), row) and not self._is_held_back(task):
            state.bind(task, row)  # an empty queue, and the task fits: no queue need be formed
            return
        state.enqueue_at_nodes(state.node_queues.enqueue(task, row, state.now))
        if not is_next:  # otherwise it has just been found not to fit
            self.dispatch(row)

    def dispatch(self, row: int) -> None:
        """Start tasks from this row's queue until the next one does not fit."""
        state = self._state
        while (reservation := self._next(row)) is not None:
            state.bind(state.node_queues.dequeue(reservation, row), row)

    def _next(self, row: int) -> Reservation | None:
        """The next reservation whose task fits and may start in its pool."""
        while (reservation := self._next_fitting(row)) is not None:
            if not self._is_held_back(reservation.head):
                return reservation
        return None

    def _is_held_back(self, task: Task) -> bool:
        """Whether a limit of its pool keeps the task from starting: then it leaves its node queue."""
        state = self._state
        limit = state.pools.limit_on(task)
        if limit is None:
            return False
        state.leave(task.uid)
        state.hold_back(task, limit)
        return True

    def _next_fitting(self, row: int) -> Reservation | None:
        """The next reservation if its task fits. Usually nothing fits, and the Line policy is not asked."""
        queue = self._queues.get(row)
        if not queue:
            return None
        first = queue[0]
        if first.profile in self._first_come:
            return first if self._fits(first.class_key, row) else None
        policy = self._state.profiles[first.profile].line
        fitting = [key for key in self._state.node_queues.class_keys(row) if self._fits(key, row)]
        reservation = self._chosen(policy, row, tuple(queue)) if fitting else None
        return reservation if reservation is not None and reservation.class_key in fitting else None

    def _fits(self, class_key: ClassKey, row: int) -> bool:
        return self._classes.cached(class_key).fits_beside_held(row)

    def _chosen(self, policy: Line, row: int, queue: tuple[Reservation, ...]) -> Reservation | None:
        """The Line policy's choice; the first of the queue where the policy fails."""
        state = self._state
        reservation = state.guarded(policy, policy.next, state.view, row, queue, failed=queue[0])
        if reservation is not None and reservation not in queue:
            state.fault(policy, f"{reservation!r} is not in the queue of this node")
            return queue[0]
        return reservation

    def _cancel_excluded(self, row: int) -> None:
        """Send tasks that may no longer run here, or that only services block, back to their class queues."""
        state = self._state
        excluded = [
            key for key in state.node_queues.class_keys(row) if not self._classes.current(*key).may_wait(row)
        ]
        if not excluded:
            return
        for reservation in dict.fromkeys(self._queues[row]):
            if reservation.class_key in excluded:
                for task in state.node_queues.cancel(reservation, row):
                    state.enqueue(task, "NodeUpdate")

    def _steal(self, rows: Iterable[int]) -> None:
        """Nodes that have changed and have an empty queue may take reservations from other queues."""
        state = self._state
        for policy in self._stealing:
            for row in rows:
                if row in self._queues or not state.cluster.present[row]:
                    continue
                try:
                    for victim, reservation in policy.steal(state.view, row):
                        self._move(reservation, victim, row)
                except Exception as error:  # a plug-in's defect must not stop the others
                    state.fault(policy, f"{type(error).__name__}: {error}")
                self.dispatch(row)

    def _move(self, reservation: Reservation, victim: int, row: int) -> None:
        state = self._state
        if reservation not in self._queues.get(victim, ()):
            raise PolicyError(f"{reservation!r} is not in the queue of row {victim}")
        if not self._classes.current(*reservation.class_key).may_wait(row):
            raise PolicyError(f"node {state.cluster.names[row]} may never run {reservation.head}")
        state.node_queues.move(reservation, victim, row)
