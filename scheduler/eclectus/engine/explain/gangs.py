"""What a pod waits for that is to be placed together with others, in words: for reports and for explanations.

No other pod is named: who may read one pod of a group need not be allowed to read the others.
"""

from __future__ import annotations

from collections.abc import Callable

from eclectus.engine.explain.fit_errors import FitErrors
from eclectus.engine.queues.gang import WaitingGang
from eclectus.engine.state import ReportReason, State
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Task


def gang_message(
    state: State, uid: str, fit_errors: FitErrors, class_of: Callable[[Task], TaskClass]
) -> tuple[ReportReason, str]:
    """Why the gang of a pod that waits in it has not started. O(nodes) where one of its pods fits nowhere."""
    gang = state.gangs.of(uid)
    problem = gang.problem
    if problem:
        return "SchedulerError" if gang.asks_too_much else "WaitingForGang", problem
    together = f"{gang.needed} pods that {'still ' if gang.placed else ''}start together"
    if _is_lead_refused(state, gang) and gang.lead is not None:
        why = fit_errors.message(gang.lead, class_of(gang.lead))
        return "Unschedulable", f"{gang.key}: no room for the {together}; for one of them: {why}"
    if gang.failure is None:
        return "WaitingForGang", f"{gang.key}: waiting for the turn of the {together}"
    placed, needed, why, is_beside_room = gang.failure
    reason: ReportReason = "WaitingForNode" if is_beside_room else "Unschedulable"
    room = f"room for {placed} of the {needed} pods that start together"
    return reason, f"{gang.key}: {room}; for another: {why}"


def _is_lead_refused(state: State, gang: WaitingGang) -> bool:
    pending = None if gang.lead is None else state.class_queues.class_of(gang.lead.uid)
    return pending is not None and pending.unschedulable_since is not None
