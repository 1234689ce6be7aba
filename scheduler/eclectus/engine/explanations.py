"""Telling waiting pods why they wait."""

from __future__ import annotations

from eclectus.engine.state import State
from eclectus.feasibility.fit_error import fit_error
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation


class Explanations:
    """Words for pods whose time has come to be told."""

    def __init__(self, state: State) -> None:
        self._state = state

    def report_due(self) -> float:
        """Report on every waiting pod whose word is due; returns when the next will be, seconds.

        Pods of one class share the work of wording it.
        """
        state, reports = self._state, self._state.reports
        worded: dict[int, str] = {}
        for uid in reports.take_due(state.now):
            task = state.pending[uid]
            reason, message = self._explain(task, worded)
            state.report(task, reason, message)
            reports.add(uid, state.now, at_once=False)
        return reports.next_due()

    def _explain(self, task: Task, worded: dict[int, str]) -> tuple[str, str]:
        state = self._state
        if task.uid in state.node_queues:
            return "WaitingForNode", self._in_node_queue(state.node_queues.reservation_of(task.uid))
        task_class = state.view.task_class(task)
        row_planned = state.deferrals.row_of(task.uid)
        if row_planned is not None and task_class.fits_now_count:
            return "WaitingForNode", (
                f"waiting for node {state.cluster.names[row_planned]}: expected to end sooner there "
                f"than on any of {task_class.fits_now_count} nodes with room"
            )
        lane = state.class_queues.queue_of(task.uid)
        if lane is not None and lane.message:
            return "Unschedulable", lane.message
        if task_class.fits_now_count:
            return "WaitingForNode", self._not_placed_yet(task, task_class.fits_now_count)
        if id(task_class) not in worded:
            worded[id(task_class)] = fit_error(task_class, state.cluster)
        return "Unschedulable", worded[id(task_class)]

    def _in_node_queue(self, claim: Reservation) -> str:
        state, row = self._state, claim.rows[0]
        if len(claim.rows) == 1:
            line = state.node_queues.by_row[row]
            ahead = sum(len(each.tasks) for each in line[: line.index(claim)])
            return f"in the line of node {state.cluster.names[row]}, {ahead} pods ahead"
        return f"in the lines of {len(claim.rows)} nodes, for {len(claim.tasks)} pods of its job"

    def _not_placed_yet(self, task: Task, open_count: int) -> str:
        """Nodes have room, and yet the policies have given it none of them."""
        profile = self._state.profiles[task.profile]
        if task.uid in self._state.held:
            who = f"policy {type(profile.hold).__name__} holds it back for a better place"
        else:
            who = f"policy {type(profile.place).__name__} has not placed it yet"
        return f"waiting although {open_count} nodes have room: {who}"
