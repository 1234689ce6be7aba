"""Reports of why pending pods wait, in kube-scheduler's words where kube-scheduler has any."""

from __future__ import annotations

from math import inf

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.engine.explain.expected_wait import StepEstimates
from eclectus.engine.state import ReportReason, State
from eclectus.feasibility.fit_error import NO_NODES, StaticRefusals, fit_error
from eclectus.feasibility.never_feasible import never_feasible
from eclectus.feasibility.room_without import RoomWithout
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Spec, Task
from eclectus.model.reservation import ClassKey, Reservation

CLASSES_MOST = 32  # classes of pods explained in one step: some tens of milliseconds on 15,000 nodes
PAUSE_SECONDS = 0.1  # from then to the next ones: pods that can be placed must not wait for explanations
REPORTS_MOST = 500  # pods reported in one step, of however few classes
PREEMPTION_ROWS_MOST = 50  # nodes that are looked at for pods of lower priority, for each message
NO_RELIEF = (
    " preemption: this profile evicts no pods, although without pods of lower priority this pod would fit."
)
NEVER = " preemption: not eligible due to preemptionPolicy=Never."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class FitErrors:
    """The messages of one step for pods that fit nowhere; what they have in common is evaluated once.

    `made`: by spec, workload, priority, whether the pod may preempt, and whether it is nominated.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.refusals = StaticRefusals(cluster)
        self.made: dict[tuple[Spec, str, int, bool, bool], str] = {}


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
        fit_errors, explained = FitErrors(state.cluster), set[ClassKey]()
        estimates = StepEstimates(state)
        due = reports.take_due(state.now, REPORTS_MOST)
        for at, uid in enumerate(due):
            task = state.pending[uid]
            explained.add((task.spec, task.workload))
            if len(explained) > CLASSES_MOST or len(fit_errors.made) == CLASSES_MOST:
                reports.put_back(due[at:], state.now)
                self._resumes_at = state.now + PAUSE_SECONDS
                break
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
        if task.uid in state.node_queues:
            queued = self._in_node_queue(state.node_queues.reservation_of(task.uid))
            if task_class.fits_now_count:
                return "WaitingForNode", queued
            return "Unschedulable", f"{self._fit_error(task, task_class, fit_errors)} Queued: {queued}."
        if task.uid in state.deferrals.rows and task_class.fits_now_count:
            return "WaitingForNode", self._deferred(task, task_class.fits_now_count)
        pending = state.class_queues.class_of(task.uid)
        withheld = self._withheld(task)
        if withheld and task_class.fits_now_count:
            return "WaitingForNode", withheld
        own = "" if pending is None else pending.message
        place = type(state.profiles[task.profile].place).__name__
        if task_class.fits_now_count:
            return "WaitingForNode", own or (
                f"waiting although {task_class.fits_now_count} nodes have room: "
                f"policy {place} has not placed it yet"
            )
        # An autoscaler adds nodes for `Unschedulable`, and no node helps a pod with an unsupported feature.
        reason: ReportReason = "SchedulerError" if task.spec.unsupported else "Unschedulable"
        fit_error = self._fit_error(task, task_class, fit_errors)
        return reason, f"{fit_error} {place}: {own}." if own else fit_error

    def _withheld(self, task: Task) -> str:
        """Why its Order withholds a pod; empty if it does not."""
        waiting = self._state.class_queues.waiting.get(task.uid)
        withheld = None if waiting is None else waiting[0].withheld(waiting[1])
        return "" if withheld is None else withheld.reason.message

    def _deferred(self, task: Task, with_room: int) -> str:
        """What a deferred pod waits for, although some nodes have room."""
        row, sooner = self._state.deferrals.row_of(task.uid), "expected to end sooner there than on any of"
        if row is not None:
            name = self._state.cluster.names[row]
            return f"waiting for node {name}: {sooner} {with_room} nodes with room"
        if task.spec.preferences:
            return f"waiting for a node that meets its preferences: {sooner} {with_room} nodes with room"
        return f"waiting for a node other than the {with_room} with room, which others need"

    def _fit_error(self, task: Task, task_class: TaskClass, fit_errors: FitErrors) -> str:
        """Why no node has room, the outcome of preemption, and why no node ever will."""
        problem = self._state.volumes.problem(task.uid)
        if problem and not task.spec.unsupported:  # it may name a claim, and pods of the class have others
            return self._blocked(task, task_class, problem)
        is_nominated = self._state.placed.is_nominated(task.uid)
        key = (task.spec, task.workload, task.priority, task.preempts, is_nominated)
        made = fit_errors.made
        if key not in made:
            cluster, preemption = self._state.cluster, self._preemption(task, task_class)
            refused = fit_error(task_class, cluster, fit_errors.refusals)
            made[key] = refused + preemption + never_feasible(task_class, cluster)
        return made[key]

    def _blocked(self, task: Task, task_class: TaskClass, problem: str) -> str:
        nodes = len(self._state.cluster)
        if not nodes:
            return NO_NODES
        return f"0/{nodes} nodes are available: {problem}.{self._preemption(task, task_class)}"

    def _preemption(self, task: Task, task_class: TaskClass) -> str:
        """The outcome of preemption, as kube-scheduler appends it; empty while pods make room for it."""
        state = self._state
        if not len(state.cluster) or state.placed.is_nominated(task.uid):
            return ""
        if not state.profiles[task.profile].relieve.evicts:
            return NO_RELIEF if self._fits_without_lower_priorities(task, task_class) else ""
        if not task.preempts:
            return NEVER
        nodes, feasible = len(state.cluster), task_class.feasible_count
        counts = {NO_VICTIMS: feasible, NOT_HELPFUL: nodes - feasible}
        parts = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
        return f" preemption: 0/{nodes} nodes are available: {', '.join(parts)}."

    def _fits_without_lower_priorities(self, task: Task, task_class: TaskClass) -> bool:
        """Whether some node would have room without its pods of lower priority; a few nodes are looked at."""
        state = self._state
        if task.priority <= state.placed.lowest_priority:
            return False
        rows = np.flatnonzero(task_class.feasible[: len(state.cluster.names)])[:PREEMPTION_ROWS_MOST]
        return any(self._fits_without(task, task_class, row) for row in rows.tolist())

    def _fits_without(self, task: Task, task_class: TaskClass, row: int) -> bool:
        room = RoomWithout(task_class, row)
        lower = [pod for pod, _ in self._state.placed.on_row(row) if pod.priority < task.priority]
        for pod in lower:
            room.remove(pod)
        return bool(lower) and room.fits

    def _in_node_queue(self, reservation: Reservation) -> str:
        state, row = self._state, reservation.rows[0]
        nodes = len(set(reservation.rows))  # a node drawn twice has two reservations
        if nodes == 1:
            queue = state.node_queues.by_row[row]
            ahead = sum(len(each.tasks) for each in queue[: queue.index(reservation)])
            return f"in the queue of node {state.cluster.names[row]}, {ahead} pods ahead"
        return f"in the queues of {nodes} nodes, for {len(reservation.tasks)} pods of its job"
