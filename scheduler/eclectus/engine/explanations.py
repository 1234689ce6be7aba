"""Reports of why pending pods wait, in kube-scheduler's words where kube-scheduler has any."""

from __future__ import annotations

from eclectus.engine.state import ReportReason, State
from eclectus.feasibility.fit_error import fit_error
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey, Reservation

FIT_ERRORS_MOST = 64  # messages made in one step: some tens of milliseconds on 5,000 nodes


class Explanations:
    """Reports on pending pods when they are due."""

    def __init__(self, state: State) -> None:
        self._state = state

    def report_due(self) -> float:
        """Report every pod whose report is due; returns when the next one is due, seconds.

        Pods of one class share one message. A new message may cost O(nodes), so only so many are made in one
        step; the other reports stay due.
        """
        state, reports = self._state, self._state.reports
        fit_errors: dict[ClassKey, str] = {}
        due = reports.take_due(state.now)
        for at, uid in enumerate(due):
            if len(fit_errors) == FIT_ERRORS_MOST:
                reports.put_back(due[at:], state.now)
                break
            task = state.pending[uid]
            reason, message = self._explain(task, fit_errors)
            state.report(task, reason, message)
            reports.add(uid, state.now, at_once=False)
        return reports.next_due()

    def _explain(self, task: Task, fit_errors: dict[ClassKey, str]) -> tuple[ReportReason, str]:
        state = self._state
        if task.uid in state.node_queues:
            return "WaitingForNode", self._in_node_queue(state.node_queues.reservation_of(task.uid))
        task_class = state.view.task_class(task)
        row = state.deferrals.row_of(task.uid)
        if row is not None and task_class.fits_now_count:
            return "WaitingForNode", (
                f"waiting for node {state.cluster.names[row]}: expected to end sooner there "
                f"than on any of {task_class.fits_now_count} nodes with room"
            )
        queue = state.class_queues.queue_of(task.uid)
        if queue is not None and queue.message:
            return "Unschedulable", queue.message
        if task_class.fits_now_count:
            place = type(state.profiles[task.profile].place).__name__
            return "WaitingForNode", (
                f"waiting although {task_class.fits_now_count} nodes have room: "
                f"policy {place} has not placed it yet"
            )
        key = (task.spec, task.workload)
        if key not in fit_errors:
            fit_errors[key] = fit_error(task_class, state.cluster)
        return "Unschedulable", fit_errors[key]

    def _in_node_queue(self, reservation: Reservation) -> str:
        state, row = self._state, reservation.rows[0]
        if len(reservation.rows) == 1:
            queue = state.node_queues.by_row[row]
            ahead = sum(len(each.tasks) for each in queue[: queue.index(reservation)])
            return f"in the queue of node {state.cluster.names[row]}, {ahead} pods ahead"
        return f"in the queues of {len(reservation.rows)} nodes, for {len(reservation.tasks)} pods of its job"
