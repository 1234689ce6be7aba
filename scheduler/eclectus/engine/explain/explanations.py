"""Reports of why pending pods wait, in kube-scheduler's words where kube-scheduler has any."""

from __future__ import annotations

from math import inf

from eclectus.engine.explain.expected_wait import StepEstimates
from eclectus.engine.explain.fit_errors import FitErrors
from eclectus.engine.explain.wait_reasons import (
    deferred,
    gang_message,
    in_node_queue,
    not_placed_yet,
    withheld,
)
from eclectus.engine.places import IN_A_GANG
from eclectus.engine.state import ReportReason, State
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey

PODS_MOST = 10_000  # on nodes, examined in one step for the outcome of preemption: ten milliseconds or two
CLASSES_MOST = 32  # classes of pods explained in one step: some tens of milliseconds on 15,000 nodes
PAUSE_SECONDS = 0.1  # from then to the next ones: pods that can be placed must not wait for explanations
REPORTS_MOST = 500  # pods reported in one step, of however few classes


class Explanations:
    """Reports on pending pods when they are due."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._resumes_at = -inf  # seconds

    def report_due(self) -> float:
        """Report every pod whose report is due; returns when the next ones are to be made, seconds.

        Pods of one class share one message. A class costs O(nodes), so only so many are explained in one
        step; the other reports are made after a pause.
        """
        if self._state.now >= self._resumes_at:
            self._report_some()
        return max(self._state.reports.next_due(), self._resumes_at)

    def _report_some(self) -> None:
        state, reports = self._state, self._state.reports
        fit_errors, explained = FitErrors(state), set[ClassKey]()
        estimates = StepEstimates(state)
        due = reports.take_due(state.now, REPORTS_MOST)
        for at, uid in enumerate(due):
            task = state.pending[uid]
            explained.add((task.spec, task.workload))
            is_full = len(explained) > CLASSES_MOST or len(fit_errors) == CLASSES_MOST
            if is_full or fit_errors.pods_examined > PODS_MOST:
                reports.put_back(due[at:], state.now)
                self._resumes_at = state.now + PAUSE_SECONDS
                break
            if state.places.of(uid) in IN_A_GANG:
                reason, message = gang_message(state, uid, fit_errors, state.view.task_class)
            else:
                self._expect(task, estimates)
                reason, message = self._explain(task, fit_errors)
            state.report(task, reason, message)
            reports.add(uid, state.now, at_once=False)

    def _expect(self, task: Task, estimates: StepEstimates) -> None:
        """Estimate, once, how long a pod will wait for which no node has room."""
        state, task_class = self._state, self._state.view.task_class(task)
        if task_class.fits_now_count or not task_class.feasible_count or task.uid in state.expected_waits:
            return
        seconds = None if state.placed.is_nominated(task.uid) else estimates.seconds(task_class)
        if seconds is not None:
            key = (task.spec, task.workload)
            state.expected_waits.add(task.uid, key, task.profile, seconds, state.now)

    def _explain(self, task: Task, fit_errors: FitErrors) -> tuple[ReportReason, str]:
        state, task_class = self._state, self._state.view.task_class(task)
        reservation, queued = state.places.reservation(task.uid), state.places.queued(task.uid)
        if reservation is not None:
            where = in_node_queue(state, reservation)
            if task_class.fits_now_count:
                return "WaitingForNode", where
            return "Unschedulable", f"{fit_errors.message(task, task_class)} Queued: {where}."
        if task.uid in state.deferrals.rows and task_class.fits_now_count:
            return "WaitingForNode", deferred(state, task, task_class.fits_now_count)
        held_back = withheld(state, task.uid)
        if held_back is not None and held_back.reason.message and task_class.fits_now_count:
            return "WaitingForNode", held_back.reason.message
        own = "" if queued is None else queued.pending.message
        if task_class.fits_now_count:
            return "WaitingForNode", own or not_placed_yet(state, task, task_class.fits_now_count)
        # An autoscaler adds nodes for `Unschedulable`, and no node helps a pod with an unsupported feature.
        reason: ReportReason = "SchedulerError" if task.spec.unsupported else "Unschedulable"
        fit_error, place = fit_errors.message(task, task_class), state.profiles[task.profile].place
        return reason, f"{fit_error} Policy {place}: {own}." if own else fit_error
