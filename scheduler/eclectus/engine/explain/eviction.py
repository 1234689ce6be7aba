"""What eviction could do for a pod without room: looks for victims as policies do, and evicts nobody."""

from __future__ import annotations

from collections import Counter
from functools import partial
from math import isfinite
from typing import NamedTuple

import numpy as np

from eclectus.engine.explain.other_pods import NAMED_MOST, leaving_on, named
from eclectus.engine.explain.wait_reasons import having_room
from eclectus.engine.places import IN_A_GANG
from eclectus.engine.state import State
from eclectus.feasibility.fit_error import counted, left_over
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.victims import Victims, victims_on
from eclectus.model.explanation import EvictionCandidate, Preemption, PreemptionState
from eclectus.model.objects import Task
from eclectus.model.outranking import may_outrank, outranks

ROWS_MOST = 64  # nodes that are searched for victims: those that are short of least
NO_SUCH_PODS = "without any"
CANDIDATES_MOST = 3  # then the search ends


class _Search(NamedTuple):
    """What a search for victims has found; candidates by row, least harm first."""

    examined: list[int]  # rows
    planned: int  # nodes where nothing but room planned for waiting pods is in the way
    found: list[tuple[int, Victims]]


def preemption(state: State, task: Task, task_class: TaskClass, now: float) -> Preemption:
    """Whether pods could be evicted for a pending pod; the class must be up to date. `now` in seconds."""
    blocked = _blocked(state, task, task_class)
    if blocked is not None and blocked[0] != "profileEvictsNobody":
        return Preemption(*blocked)
    search = _search(state, task, task_class)
    candidates = tuple(_candidate(state, row, victims) for row, victims in search.found)
    if blocked is not None:
        return Preemption(*blocked, len(search.examined), candidates)
    outcome: PreemptionState = "possible" if candidates else "notHelpful"
    reason = _reason(state, task, task_class, search)
    return Preemption(outcome, reason, len(search.examined), candidates, _next_check(state, task, now))


def _blocked(state: State, task: Task, task_class: TaskClass) -> tuple[PreemptionState, str] | None:
    """Why nobody is looked for; None where somebody is."""
    if state.placed.is_nominated(task.uid):
        return "nominated", f"room is held for it on node {state.placed.node_of(task.uid)}"
    if task_class.fits_now_count:
        return "hasRoom", f"nobody is evicted while {having_room(task_class.fits_now_count)}"
    return _may_not_evict(state, task)


def _may_not_evict(state: State, task: Task) -> tuple[PreemptionState, str] | None:
    if state.places.of(task.uid) in IN_A_GANG:
        return "gangIncomplete", "a pod group that is not complete evicts no pods"
    if not task.preempts:
        return "policyNever", "its preemptionPolicy is Never"
    if not may_outrank(task.priority, state.placed.lowest_priority):
        return "noLowerPriority", f"no pod on a node has a priority below {task.priority}"
    if not state.profiles[task.profile].relieve.traits.evicts:
        return "profileEvictsNobody", f"the profile {task.profile} evicts no pods (relieve)"
    return None


def _search(state: State, task: Task, task_class: TaskClass) -> _Search:
    rows = np.flatnonzero(task_class.feasible)
    nearest = rows[np.argsort(task_class.overflow[rows], kind="stable")[:ROWS_MOST]]
    found: list[tuple[int, Victims]] = []
    examined, planned = list[int](), 0
    for row in nearest.tolist():
        examined.append(row)
        victims = victims_on(state.view, task_class, row, partial(outranks, task))
        if victims is not None and victims.is_room_free:
            planned += 1
        elif victims is not None:
            found.append((row, victims))
            if len(found) == CANDIDATES_MOST:
                break
    found.sort(key=lambda each: each[1].cost)
    return _Search(examined, planned, found)


def _reason(state: State, task: Task, task_class: TaskClass, search: _Search) -> str:
    nodes = f"of the {len(search.examined)} nodes examined"
    if search.found:
        return f"without pods of lower priority it would fit on {len(search.found)} {nodes}"
    if search.planned:
        return (
            f"on {search.planned} {nodes} room is only planned for pods that wait: nobody is evicted for that"
        )
    counts = Counter[str]()
    for row in search.examined:
        counts.update(left_over(task_class, row, state.placed.on_row(row), task, NO_SUCH_PODS))
    return (
        f"it would fit on none {nodes} without their pods of a priority below {task.priority} "
        f"({counted(counts)}); "
        f"{task_class.feasible_count} of {len(state.cluster)} nodes could run it when empty"
    )


def _candidate(state: State, row: int, victims: Victims) -> EvictionCandidate:
    return EvictionCandidate(
        node=state.cluster.names[row],
        victims=named(state, victims.pods or leaving_on(state, row)),
        not_listed=max(len(victims.pods) - NAMED_MOST, 0),
        violated_budgets=int(victims.cost[0]),
    )


def _next_check(state: State, task: Task, now: float) -> float | None:
    """Seconds until the Relieve policy is asked about its class; None: not before something changes."""
    due = state.relief.due_at((task.profile, (task.spec, task.workload)))
    if due is None:
        return None
    return max(due - now, 0.0) if isfinite(due) else 0.0
