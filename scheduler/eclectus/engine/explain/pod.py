"""Why a pod waits, or where it has gone: an explanation, made between two steps.

It changes nothing. The class of the pod is computed afresh, because one that is kept would be brought up to
date here, and a policy might see later that somebody has asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from eclectus.engine.explain.eviction import preemption
from eclectus.engine.explain.fit_errors import FitErrors
from eclectus.engine.explain.near_misses import near_misses
from eclectus.engine.explain.other_pods import leaving_on, named
from eclectus.engine.explain.prices import demand_of, price_for
from eclectus.engine.explain.unmet_preferences import unmet_on
from eclectus.engine.explain.waiting import state_of, waiting
from eclectus.engine.state import State
from eclectus.feasibility.funnel import funnel
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.explanation import Attempts, Funnel, Nomination, Placement, PodExplanation
from eclectus.model.objects import Task

DEAD_AMONG_MOST = 16  # nodes with room of which the learner is asked whether they are dead
NOT_KEPT = (
    "which nodes were compared at that moment, with which queues and speeds, and which of equal ones was "
    "drawn; the figures are of now. A tape (eclectus scheduler --record) can be asked about any moment"
)


class ForeignPod(NamedTuple):
    """A pod that waits for another scheduler."""

    namespace: str
    name: str
    scheduler_name: str


def explain_pod(
    state: State, foreign: Mapping[str, ForeignPod], pod: tuple[str, str], now: float
) -> PodExplanation:
    """The answer about a pod; `now` in seconds, not before the last step. O(pods + nodes).

    `foreign`: by uid. `pod`: its namespace and name.
    """
    namespace, name = pod
    for task in state.pending.values():
        if task.name == name and task.namespace == namespace:
            if task.uid in state.placed.assumed:
                return _placed(state, task, state.placed.assumed[task.uid], now)
            return explain_waiting(state, task, now)
    found = state.placed.find(namespace, name)
    if found is not None and not state.placed.is_nominated(found.uid):
        return _placed(state, found, state.placed.node_of(found.uid), now)
    for uid, each in foreign.items():
        if each.name == name and each.namespace == namespace:
            return _foreign(state, uid, each, now)
    summary = "this scheduler knows no such pod: there is none, it has ended, or it was created just now"
    return PodExplanation(namespace=namespace, name=name, state="unknown", summary=summary)


# -- pods that wait --------------------------------------------------------------------------------


def explain_waiting(state: State, task: Task, now: float) -> PodExplanation:
    """The answer about a pod of `state.pending` that is not assumed; `task`: as it is, or as it might be."""
    task_class = TaskClass(state.cluster, task.spec, task.workload)
    where, waits = state_of(state, task), waiting(state, task, task_class, now)
    is_placeable = where not in ("gated", "deleting")
    return PodExplanation(
        namespace=task.namespace,
        name=task.name,
        uid=task.uid,
        scheduler_name=task.profile,
        state=where,
        summary=waits.reason,
        priority=task.priority,
        age=_age(task, now),
        waiting=waits,
        expected_wait=state.expected_waits.remaining_seconds(task.uid, now),
        nomination=_nomination(state, task.uid, now),
        attempts=_attempts(state, task, now),
        constraint_demand=demand_of(state, task.spec),
        funnel=_funnel(state, task, task_class),
        nearest=near_misses(state, task, task_class) if is_placeable else (),
        dead_with_room=_dead_with_room(state, task_class),
        preemption=preemption(state, task, task_class, now) if is_placeable else None,
    )


def _funnel(state: State, task: Task, task_class: TaskClass) -> Funnel:
    messages = FitErrors(state)
    found = funnel(task_class, state.cluster, messages.refusals)
    return Funnel(
        nodes=len(state.cluster),
        steps=found.steps,
        feasible=task_class.feasible_count,
        with_room=len(found.rows),
        message="" if len(found.rows) else messages.message(task, task_class),
    )


def _dead_with_room(state: State, task_class: TaskClass) -> tuple[str, ...]:
    names = [state.cluster.names[row] for row in task_class.fits_now_rows[:DEAD_AMONG_MOST].tolist()]
    learned = [(name, state.learn.learned_node(name)) for name in names]
    return tuple(name for name, of_node in learned if of_node is not None and of_node.state == "dead")


def _nomination(state: State, uid: str, now: float) -> Nomination | None:
    if not state.placed.is_nominated(uid):
        return None
    node, since = state.placed.node_of(uid), state.placed.held_since(uid)
    row = state.cluster.rows.get(node)
    leaving = [] if row is None else leaving_on(state, row)
    waits = now - (now if since is None else since)
    return Nomination(node, waits, named(state, leaving), _is_reserved(state, uid, leaving))


def _is_reserved(state: State, uid: str, leaving: Sequence[Task]) -> bool:
    """Whether its Order keeps the node free for it, rather than that it waits for evicted pods."""
    task = state.pending.get(uid)
    if task is None or leaving or state.may_evict_for(task):
        return False
    return state.profiles[task.profile].order.traits.reserves_nodes


def _attempts(state: State, task: Task, now: float) -> Attempts:
    message, at, reports = state.reports.last(task.uid) or (task.reported, None, 0)
    ago = None if at is None else now - at
    return Attempts(state.backoff.failures(task.uid), reports, message, ago)


def _age(task: Task, now: float) -> float | None:
    return max(now - task.created, 0.0) if task.created else None


def _foreign(state: State, uid: str, pod: ForeignPod, now: float) -> PodExplanation:
    served = ", ".join(sorted(state.profiles))
    return PodExplanation(
        namespace=pod.namespace,
        name=pod.name,
        uid=uid,
        scheduler_name=pod.scheduler_name,
        state="otherScheduler",
        summary=f"its schedulerName is {pod.scheduler_name}, and this scheduler serves {served}",
        nomination=_nomination(state, uid, now),
    )


# -- pods on nodes ---------------------------------------------------------------------------------


def _placed(state: State, task: Task, node: str, now: float) -> PodExplanation:
    is_bound = task.uid not in state.placed.assumed
    return PodExplanation(
        namespace=task.namespace,
        name=task.name,
        uid=task.uid,
        scheduler_name=task.profile,
        state="bound" if is_bound else "binding",
        summary=f"it is bound to node {node}" if is_bound else f"its bind to node {node} is not answered yet",
        priority=task.priority,
        age=_age(task, now),
        placement=_placement(state, task, node, now),
    )


def _placement(state: State, task: Task, node: str, now: float) -> Placement:
    row, profile = state.cluster.rows.get(node), state.profiles.get(task.profile)
    since = state.placed.held_since(task.uid)
    found = Placement(node, max(now - (now if since is None else since), 0.0))
    found = replace(found, evicted=task.uid in state.evicted)
    if row is None or profile is None:
        return found
    task_class, learned = TaskClass(state.cluster, task.spec, task.workload), state.learn.learned_node(node)
    return replace(
        found,
        policy=str(profile.place),
        feasible=task_class.feasible_count,
        with_room=task_class.fits_now_count,
        speed=None if learned is None else learned.speed,
        node_state=None if learned is None else learned.state,
        price=price_for(state, profile.place, task_class, row),
        unmet_preferences=unmet_on(state, task, row),
        not_kept=NOT_KEPT,
    )
