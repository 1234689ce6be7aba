"""Reports of why pending pods wait, in kube-scheduler's words where kube-scheduler has any.

A message says why no node has room for a pod: FitError, the outcome of preemption, and what no node ever
meets; or what the pod waits for by the decision of a policy, or with the others of its gang.

A report also estimates how long a pod without room will wait: what is ahead of it, worked off by the nodes
that it may use (the backlog rule of maths/backlog_wait.py). The queues ahead, one for each class of pods,
fill the nodes that they may use, the queue with the eldest pod first. So a queue for scarce nodes keeps
these busy and no others, and a pod that may run elsewhere waits for what is ahead on the nodes that are
free first.
"""

from collections import Counter
from collections.abc import Callable
from math import inf

import numpy as np
from msgspec import Struct

from eclectus.cluster.changelog import Rows
from eclectus.engine.places import IN_A_GANG
from eclectus.engine.quota import limits_by_node
from eclectus.engine.state import ReportReason, State
from eclectus.feasibility.fit_error import (
    NO_NODES,
    NO_ROWS,
    StaticRefusals,
    counted,
    fit_error,
    is_blocked_by_claims,
    left_over,
    never_feasible,
    without_outranked,
)
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Wait
from eclectus.maths.backlog_wait import Filling, ServiceTime, residual_seconds
from eclectus.maths.numbers import Floats
from eclectus.model.objects import ClassKey, Reservation, Spec, Task, may_outrank

PREEMPTION_ROWS_MOST = 50  # nodes that are looked at for pods of lower priority, for each message
NO_RELIEF = (
    " preemption: this profile evicts no pods, although without pods of lower priority this pod would fit."
)
NEVER = " preemption: not eligible due to preemptionPolicy=Never."
IN_GANG = " preemption: not eligible: a pod group that is not complete evicts no pods."
NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_EXAMINED = "not examined for preemption victims"
NOT_HELPFUL = "Preemption is not helpful for scheduling"


class FitErrors:
    """The messages of one step for pods that fit nowhere; what they have in common is evaluated once."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.refusals = StaticRefusals(state.cluster)
        # By spec, workload, priority, whether the pod may preempt, is nominated, and waits for its gang:
        # what is before the outcome of preemption, and all from there on.
        self._made: dict[tuple[Spec, str, int, bool, bool, bool], tuple[str, str]] = {}
        self._victims = Counter(state.evictions.sent.values())  # by the uid of the pod that needs the room
        self.pods_examined = 0  # on nodes, for the outcome of preemption; a microsecond each

    def __len__(self) -> int:
        """Messages made so far."""
        return len(self._made)

    def message(self, task: Task, task_class: TaskClass) -> str:
        """Why no node has room, the outcome of preemption, and why no node ever will."""
        problem = self._state.volumes.problem(task.uid)
        if problem and is_blocked_by_claims(task.spec):  # each pod of the class may have another claim
            nodes, preemption = len(self._state.cluster), self._preemption(task, task_class, NO_ROWS)
            return f"0/{nodes} nodes are available: {problem}.{preemption}" if nodes else NO_NODES
        is_nominated = self._state.placed.is_nominated(task.uid)
        in_gang = self._state.places.of(task.uid) in IN_A_GANG
        key = (task.spec, task.workload, task.priority, task.preempts, is_nominated, in_gang)
        if key not in self._made:
            cluster = self._state.cluster
            refused = fit_error(task_class, cluster, self.refusals)
            preemption = self._preemption(task, task_class, refused.resolvable)
            self._made[key] = refused.message, preemption + never_feasible(task_class, cluster)
        refusal, outcome = self._made[key]
        return refusal + (self._evicting(task.uid) if is_nominated else "") + outcome

    def _evicting(self, uid: str) -> str:
        """Where how many others are evicted for a nominated pod; empty if none are."""
        victims, node = self._victims[uid], self._state.placed.node_of(uid)
        found = f"found a potential placement for pod on node {node}, preempting {victims} victims"
        return f" preemption: {found}" if victims else ""

    def _preemption(self, task: Task, task_class: TaskClass, resolvable: Rows) -> str:
        """The outcome of preemption, as kube-scheduler appends it; empty for a nominated pod.

        `resolvable`: rows of the nodes on which the eviction of pods might help.
        """
        state = self._state
        if not len(state.cluster) or state.placed.is_nominated(task.uid):
            return ""
        if not state.profiles[task.profile].relieve.traits.evicts:
            return NO_RELIEF if self._fits_without_outranked(task, task_class) else ""
        if state.places.of(task.uid) in IN_A_GANG:
            return IN_GANG
        if not task.preempts:
            return NEVER
        nodes = len(state.cluster)
        counts = Counter({NOT_HELPFUL: nodes - len(resolvable)})
        if not may_outrank(task.priority, state.placed.lowest_priority):
            counts[NO_VICTIMS] = len(resolvable)
        else:
            for row in resolvable[:PREEMPTION_ROWS_MOST].tolist():
                there = list(state.placed.on_row(row))
                self.pods_examined += len(there)
                counts.update(left_over(task_class, row, there, task, NO_VICTIMS))
            counts[NOT_EXAMINED] = max(len(resolvable) - PREEMPTION_ROWS_MOST, 0)
        return f" preemption: 0/{nodes} nodes are available: {counted(counts)}."

    def _fits_without_outranked(self, task: Task, task_class: TaskClass) -> bool:
        """Whether some node would have room without its pods of lower priority; a few nodes are looked at."""
        state = self._state
        if not may_outrank(task.priority, state.placed.lowest_priority):
            return False
        rows = np.flatnonzero(task_class.feasible[: len(state.cluster.names)])[:PREEMPTION_ROWS_MOST]
        on_row = state.placed.on_row
        found = (without_outranked(task_class, row, on_row(row), task) for row in rows.tolist())
        return any(room is not None and room.fits for room in found)


def in_node_queue(state: State, reservation: Reservation) -> str:
    """In whose queue a pod waits, and behind how many others."""
    nodes = len(set(reservation.rows))  # a node drawn twice has two reservations
    if nodes == 1:
        name = state.cluster.names[reservation.rows[0]]
        return f"in the queue of node {name}, {pods_ahead(state, reservation)} pods ahead"
    return f"in the queues of {nodes} nodes, for {len(reservation.tasks)} pods of its job"


def pods_ahead(state: State, reservation: Reservation) -> int:
    """How many pods the queue of the reservation's first node has before it."""
    queue = state.node_queues.by_row[reservation.rows[0]]
    return sum(len(each.tasks) for each in queue[: queue.index(reservation)])


def deferred(state: State, task: Task, with_room: int) -> str:
    """What a deferred pod waits for, although some nodes have room."""
    wait, sooner = state.deferrals.waits[task.uid][1], "expected to end sooner there than on any of"
    if wait.reason.message:
        return wait.reason.message
    if wait.row is not None:
        place, name = state.profiles[task.profile].place, state.cluster.names[wait.row]
        has_data = task.inputs or task.spec.images
        data = state.guarded(place, place.data_cost, state.view, task) if has_data else ""
        why = f"; {data}" if data else ""
        return f"waiting for node {name}: {sooner} {with_room} nodes with room{why}"
    if task.spec.preferences:
        return f"waiting for a node that meets its preferences: {sooner} {with_room} nodes with room"
    return f"waiting for a node other than the {with_room} with room, which others need"


def withheld(state: State, uid: str) -> Wait | None:
    """Why a pod is not offered: by its Order, or as it waits for its data; None where neither is so."""
    queued = state.places.queued(uid)
    if queued is None:
        return None
    held = state.held.why(queued.pending.profile, queued.queue, state.pending[uid], state.now)
    return queued.pending.withheld(queued.queue) if held is None else held


def having_room(count: int) -> str:
    """`1 node has room`, `2 nodes have room`."""
    return "1 node has room" if count == 1 else f"{count} nodes have room"


def not_placed_yet(state: State, task: Task, with_room: int) -> str:
    """A pod that no policy has answered otherwise."""
    place = state.profiles[task.profile].place
    return f"waiting although {having_room(with_room)}: policy {place} has not placed it yet"


QUOTAS_MOST = 3  # limits by node that a message names


def limited_by_node(state: State, task: Task) -> str:
    """The limits of its pools that keep a pod off all nodes that could run it; empty where one is left.

    Not of a pod for which room is held: its limits count it already. O(nodes).
    """
    if not task.spec.quotas or state.placed.is_nominated(task.uid):
        return ""
    found = limits_by_node(task, state.view.task_class(task))
    more = [f"{len(found) - QUOTAS_MOST} more"] if len(found) > QUOTAS_MOST else []
    return "; ".join([*map(str, found[:QUOTAS_MOST]), *more])


def gang_message(
    state: State, uid: str, fit_errors: FitErrors, class_of: Callable[[Task], TaskClass]
) -> tuple[ReportReason, str]:
    """Why the gang of a pod that waits in it has not started. O(nodes) where one of its pods fits nowhere.

    No other pod is named: who may read one pod of a group need not be allowed to read the others.
    """
    gang = state.gangs.pods[uid]
    problem = gang.problem
    if problem:
        return "SchedulerError" if gang.asks_too_much else "WaitingForGang", problem
    together = f"{gang.needed} pods that {'still ' if gang.placed else ''}start together"
    queued = None if gang.lead is None else state.places.queued(gang.lead.uid)
    if gang.lead is not None and queued is not None and queued.pending.unschedulable_since is not None:
        if by_node := limited_by_node(state, gang.lead):
            return "WaitingForQuota", f"{gang.key}: {by_node}; {together}"
        why = fit_errors.message(gang.lead, class_of(gang.lead))
        return "Unschedulable", f"{gang.key}: no room for the {together}; for one of them: {why}"
    if gang.has_room or gang.failure is None:
        held = f"{gang.key}: room is held for the {together}, until other pods have ended"
        in_turn = f"{gang.key}: waiting for the turn of the {together}"
        return ("WaitingForNode", held) if gang.has_room else ("WaitingForGang", in_turn)
    placed, needed, why, is_beside_room, is_limited = gang.failure
    if is_limited:
        return "WaitingForQuota", f"{gang.key}: {why}; {together}"
    reason: ReportReason = "WaitingForNode" if is_beside_room else "Unschedulable"
    room = f"room for {placed} of the {needed} pods that start together"
    return reason, f"{gang.key}: {room}; for another: {why}"


MAX_QUEUES = 16  # classes that are considered to be ahead: those with the most pods


class _Queue(Struct):
    """What a class adds to the work on its nodes in this step."""

    rows: Rows
    filling: Filling  # of these rows, when the class was asked about first
    service: ServiceTime
    work: float = 0.0  # seconds, of its pods so far


class StepEstimates:
    """The estimates of one step. The first one and the first of each class cost O(nodes), the others less.

    They are for pods in the order of arrival: that priorities and Order policies let others pass is not
    considered.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._queues: dict[ClassKey, _Queue | None] = {}
        self._busy: Floats | None = None  # by row, seconds for which it works off what is ahead

    def seconds(self, task_class: TaskClass) -> float | None:
        """How long one more pod of the class waits from now on; None while its run times are not known."""
        key = (task_class.spec, task_class.workload)
        if self._state.service_times.of(key[1]) is None:
            return None  # before any array is computed: a new kind of work may come in many classes
        if self._busy is None:
            self._busy = self._of_those_ahead()
        if key not in self._queues:
            self._queues[key] = self._queue(key, self._busy)
        queue = self._queues[key]
        if queue is None:
            return None
        residual = residual_seconds(queue.service.mean_seconds, queue.service.variation)
        seconds = queue.filling.seconds(queue.work + residual)
        _fill(self._busy, queue, queue.service.mean_seconds)
        return seconds

    def _of_those_ahead(self) -> Floats:
        """By row, for how long what waits already keeps it busy."""
        busy = np.zeros(self._state.view.cluster.capacity)
        for key, pods in self._state.expected_waits.longest_queues(MAX_QUEUES):
            queue = self._queue(key, busy)
            if queue is not None:
                _fill(busy, queue, pods * queue.service.mean_seconds)
        return busy

    def _queue(self, key: ClassKey, busy: Floats) -> _Queue | None:
        """The class behind all that keeps nodes busy; None without run times, or without a node."""
        task_class, service = self._state.view.classes.current(*key), self._state.service_times.of(key[1])
        rows = task_class.waitable_rows
        if service is None or not len(rows):
            return None
        held = service.held(self._state.view.learn.turnaround(key[1]))
        return _Queue(rows, Filling(busy[rows], task_class.service_slots[rows]), held)


def _fill(busy: Floats, queue: _Queue, work: float) -> None:
    """Add work of the queue to its nodes that are free first."""
    queue.work += work
    busy[queue.rows] = np.maximum(busy[queue.rows], queue.filling.seconds(queue.work))


PODS_MOST = 10_000  # on nodes, examined in one step for the outcome of preemption: ten milliseconds or two
CLASSES_MOST = 32  # classes of pods explained in one step
EVALUATED_MOST = 250_000  # nodes that these are compared with, in all: some fifty milliseconds
# From then to the next ones, shorter where the nodes allow fewer classes: pods that can be placed must not
# wait for explanations.
PAUSE_SECONDS = 0.1
REPORTS_MOST = 500  # pods reported in one step, of however few classes
REPEATED_PART = 4  # of these: a fourth at most is for pods that have been reported before


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
        classes = state.cluster.classes_within(EVALUATED_MOST, CLASSES_MOST)
        repeated = state.cluster.classes_within(EVALUATED_MOST // REPEATED_PART, REPORTS_MOST)
        due = reports.take_due(state.now, REPORTS_MOST, repeated)
        left = list[str]()
        for uid in due:
            task = state.pending[uid]
            key = (task.spec, task.workload)
            is_full = key not in explained and max(len(explained), len(fit_errors)) >= classes
            if is_full or len(fit_errors) >= 2 * classes or fit_errors.pods_examined > PODS_MOST:
                left.append(uid)
                continue
            explained.add(key)
            if state.places.of(uid) in IN_A_GANG:
                reason, message = gang_message(state, uid, fit_errors, state.view.task_class)
            else:
                reason, message = self._explain_pod(task, fit_errors, estimates)
            state.report(task, reason, message)
            reports.add(uid, state.now)
        if left:
            reports.put_back(left, state.now)
            self._resumes_at = state.now + PAUSE_SECONDS * classes / CLASSES_MOST

    def _explain_pod(
        self, task: Task, fit_errors: FitErrors, estimates: StepEstimates
    ) -> tuple[ReportReason, str]:
        """Of a pod that waits for itself. An autoscaler must add no nodes for a quota, room or not."""
        limit = self._state.pools.limit_on(task)
        if limit is not None:
            return "WaitingForQuota", str(limit)
        if by_node := limited_by_node(self._state, task):
            return "WaitingForQuota", by_node
        self._expect(task, estimates)
        return self._explain(task, fit_errors)

    def _expect(self, task: Task, estimates: StepEstimates) -> None:
        """Estimate, once, how long a pod will wait for which no node has room."""
        state, task_class = self._state, self._state.view.task_class(task)
        is_full = task_class.feasible_count and not task_class.fits_now_count
        if not is_full or task.uid in state.expected_waits.open:
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
        if task.uid in state.deferrals.waits and task_class.fits_now_count:
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
