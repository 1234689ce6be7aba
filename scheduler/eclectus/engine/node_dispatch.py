"""Nodes serve their lines: what has joined starts when it fits, in the Line policy's order."""

from __future__ import annotations

from collections.abc import Iterable

from eclectus.engine.state import State
from eclectus.framework import Line
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey, Reservation


class NodeDispatch:
    """Lines by row, served when their node has changed."""

    def __init__(self, state: State) -> None:
        self._state, self._classes = state, state.view.classes
        self._usage_cursor = self._shape_cursor = self._services_seen = 0
        self._first_come_profiles = {
            name for name, profile in state.profiles.items() if profile.line.first_come
        }
        lines = {id(profile.line): profile.line for profile in state.profiles.values()}
        self._stealing = [line for line in lines.values() if type(line).steal is not Line.steal]

    def dispatch_changed(self) -> None:
        """Nodes whose room or shape has changed start what stands first in their lines."""
        cluster, lines = self._state.cluster, self._state.node_queues.by_row
        may_shut = cluster.shape.head != self._shape_cursor or cluster.service_changes != self._services_seen
        changed = self._reshaped() if may_shut else cluster.usage.since(self._usage_cursor)
        self._usage_cursor = cluster.usage.head
        if not lines:
            return
        if changed is None:
            changed = sorted(cluster.rows.values())
        for row in changed:
            if row in lines:
                if may_shut:
                    self._remove_infeasible(row)
                self.dispatch(row)
        if self._stealing:
            self._steal(changed)

    def _reshaped(self) -> list[int] | None:
        """Rows whose room or shape has changed, ascending; None for all."""
        cluster = self._state.cluster
        used, shaped = cluster.usage.since(self._usage_cursor), cluster.shape.since(self._shape_cursor)
        self._shape_cursor, self._services_seen = cluster.shape.head, cluster.service_changes
        return None if used is None or shaped is None else sorted({*used, *shaped})

    def enqueue(self, task: Task, row: int) -> None:
        """The task joins the line of this row, and the line is served."""
        state = self._state
        is_next = task.profile in self._first_come_profiles and row not in state.node_queues.by_row
        if is_next and self._fits((task.spec, task.workload), row):
            state.bind(task, row)  # a line of one that starts at once need not be formed
            return
        state.node_queues.enqueue(task, row, state.now)
        if not is_next:  # else it has just been seen not to fit
            self.dispatch(row)

    def dispatch(self, row: int) -> None:
        """Start tasks of this row's line until the next does not fit."""
        state = self._state
        while (claim := self._next(row)) is not None:
            state.bind(state.node_queues.dequeue_next(claim, row), row)

    def _next(self, row: int) -> Reservation | None:
        """Whose turn it is, if it fits. Mostly nothing does, and then no policy need be asked."""
        line = self._state.node_queues.by_row.get(row)
        if not line:
            return None
        first = line[0]
        if first.profile in self._first_come_profiles:
            return first if self._fits(first.class_key, row) else None
        policy = self._state.profiles[first.profile].line
        fitting = [kind for kind in self._state.node_queues.class_keys(row) if self._fits(kind, row)]
        claim = self._chosen(policy, row, tuple(line)) if fitting else None
        return claim if claim is not None and claim.class_key in fitting else None

    def _fits(self, kind: ClassKey, row: int) -> bool:
        return self._classes.cached(kind).fits_beside_held(row)

    def _remove_infeasible(self, row: int) -> None:
        """Tasks that may no longer run here, or that only services keep out, go back to the queue."""
        state = self._state
        shut = [
            kind
            for kind in state.node_queues.class_keys(row)
            if not state.view.classes.current(*kind).may_wait(row)
        ]
        if not shut:
            return
        for claim in dict.fromkeys(state.node_queues.by_row[row]):
            if claim.class_key in shut:
                for task in state.node_queues.remove_reservation(claim, row):
                    state.enqueue(task, "NodeUpdate")

    def _chosen(self, policy: Line, row: int, line: tuple[Reservation, ...]) -> Reservation | None:
        try:
            claim = policy.next(self._state.view, row, line)
        except Exception as error:  # a plug-in's defect must not stop the others
            self._state.fault(policy, f"{type(error).__name__}: {error}")
            return line[0]
        if claim is not None and claim not in line:
            self._state.fault(policy, f"{claim!r} does not stand in the line of this node")
            return line[0]
        return claim

    # -- stealing ------------------------------------------------------------------------------

    def _steal(self, rows: Iterable[int]) -> None:
        """Nodes that have changed and have no line may take claims over from the lines of others."""
        state = self._state
        for policy in self._stealing:
            for row in rows:
                if row in state.node_queues.by_row or not state.cluster.present[row]:
                    continue
                try:
                    for victim, claim in policy.steal(state.view, row):
                        self._move(claim, victim, row)
                except Exception as error:  # a plug-in's defect must not stop the others
                    state.fault(policy, f"{type(error).__name__}: {error}")
                self.dispatch(row)

    def _move(self, claim: Reservation, victim: int, row: int) -> None:
        state = self._state
        if claim not in state.node_queues.by_row.get(victim, ()):
            raise PolicyError(f"{claim!r} does not stand in the line of row {victim}")
        if not state.view.classes.current(*claim.class_key).may_wait(row):
            raise PolicyError(f"node {state.cluster.names[row]} may never run {claim.head}")
        state.node_queues.move(claim, victim, row)
