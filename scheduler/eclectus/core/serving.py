"""Nodes serve their lines: what has joined starts when it fits, in the Line policy's order."""

from __future__ import annotations

from eclectus.core.lines import Kind
from eclectus.core.model import Task
from eclectus.core.state import State


class Serving:
    """Lines by row, served when their node has changed."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._usage_place = self._shape_place = 0

    def serve_lines(self) -> None:
        """Nodes whose room or shape has changed start what stands first in their lines."""
        state, cluster = self._state, self._state.cluster
        shaped, used = cluster.shape.since(self._shape_place), cluster.usage.since(self._usage_place)
        self._shape_place, self._usage_place = cluster.shape.end, cluster.usage.end
        if not state.lines.by_row:
            return
        if shaped is None or used is None:
            rows = list(state.lines.by_row)
        else:
            rows = sorted(state.lines.by_row.keys() & {*shaped.tolist(), *used.tolist()})
        for row in rows:
            self._dismiss(row)
            self.serve(row)

    def serve(self, row: int) -> None:
        """Start tasks of this row's line until the next does not fit."""
        state = self._state
        while fitting := self._fitting(row):
            task = self._next(row, tuple(state.lines.by_row[row]))
            if task is None or (task.spec, task.workload) not in fitting:
                return
            state.lines.leave(task.uid)
            state.bind(task, row)

    def _fitting(self, row: int) -> list[Kind]:
        """What of this row's line fits now. Mostly nothing does, and then no policy need be asked."""
        classes = self._state.view.classes
        return [kind for kind in self._state.lines.kinds(row) if classes.of(*kind).fits_now(row)]

    def _dismiss(self, row: int) -> None:
        """Tasks that may no longer run here, or that only services keep out, go back to the queue."""
        state = self._state
        shut = [kind for kind in state.lines.kinds(row) if not state.view.classes.of(*kind).may_wait(row)]
        if not shut:
            return
        for task in list(state.lines.by_row[row]):
            if (task.spec, task.workload) in shut:
                state.lines.leave(task.uid)
                state.enqueue(task, "NodeUpdate")

    def _next(self, row: int, line: tuple[Task, ...]) -> Task | None:
        policy = self._state.profiles[line[0].profile].line
        try:
            task = policy.next(self._state.view, row, line)
        except Exception as error:  # a plug-in's defect must not stop the others
            self._state.fault(policy, f"{type(error).__name__}: {error}")
            return line[0]
        if task is not None and task not in line:
            self._state.fault(policy, f"{task} does not stand in the line of this node")
            return line[0]
        return task
