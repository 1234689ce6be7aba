"""Why a pod or the pods of a job wait, in which queue, and when each is examined next; or where it has gone.

The class of the pod is computed afresh, because one that is kept would be brought up to date here, and a
policy might see later that it was asked about.
"""

from collections.abc import Collection
from functools import partial
from itertools import chain
from math import isfinite
from operator import attrgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eclectus.engine import reports
from eclectus.engine.engine import Engine
from eclectus.engine.pod_specs.late_pods import TERMS_MOST
from eclectus.engine.queues.class_queues import Queued
from eclectus.engine.queues.data_clocks import QueueClock
from eclectus.engine.queues.held_queues import rounded
from eclectus.engine.state import ForeignPod, State
from eclectus.explain.copies import copies_of
from eclectus.explain.node import demand_of, leaving_on, named, near_misses, preemption, price_for
from eclectus.explain.pools import pools_ahead, standing_of
from eclectus.explain.reclaim import reclaim
from eclectus.feasibility.fit_error import funnel
from eclectus.feasibility.rules import nodes
from eclectus.feasibility.rules.nodes import term_holds, term_words
from eclectus.feasibility.task_class import TaskClass
from eclectus.model import explanation
from eclectus.model.objects import ClassKey, Task

DEAD_AMONG_MOST = 16  # nodes with room of which the learner is asked whether they are dead
NOT_KEPT = (
    "which nodes were compared at that moment, with which queues and speeds, and which of equal ones was "
    "drawn; the figures are of now. A tape (eclectus scheduler --record) can be asked about any moment"
)


def explain_pod(engine: Engine, namespace: str, name: str, now: float) -> explanation.PodExplanation:
    """Explain why a pod waits or where it has gone. `now`: seconds, not before the last step.

    On 15,000 nodes with 150,000 pods it takes 2 to 5 ms for a pod that waits, 20 ms for a bound one.
    """
    return replace(engine.read(pod_explanation, (namespace, name), now), deciding=engine.leads)


def pod_explanation(state: State, pod: tuple[str, str], now: float) -> explanation.PodExplanation:
    """The answer about a pod, given by namespace and name; `now` in seconds. O(pods + nodes)."""
    namespace, name = pod
    for task in state.pending.values():
        if task.name == name and task.namespace == namespace:
            if task.uid in state.placed.assumed:
                return _placed(state, task, state.placed.assumed[task.uid], now)
            return explain_waiting(state, task, now)
    found = state.placed.find(namespace, name)
    if found is not None and not state.placed.is_nominated(found.uid):
        return _placed(state, found, state.placed.node_of(found.uid), now)
    for uid, each in state.foreign_pending.items():
        if each.name == name and each.namespace == namespace:
            return _foreign(state, uid, each, now)
    summary = "this scheduler knows no such pod: there is none, it has ended, or it was created just now"
    return explanation.PodExplanation(namespace=namespace, name=name, state="unknown", summary=summary)


def explain_waiting(state: State, task: Task, now: float) -> explanation.PodExplanation:
    """The answer about a pod of `state.pending` that is not assumed; `task`: as it is, or as it might be."""
    task_class = _class_of(state, task)
    where, waits = state_of(state, task), waiting(state, task, task_class, now)
    is_placeable = where not in ("gated", "deleting")
    return explanation.PodExplanation(
        namespace=task.namespace,
        name=task.name,
        uid=task.uid,
        scheduler_name=task.profile,
        state=where,
        summary=waits.reason,
        priority=task.priority,
        age=age_of(task, now),
        waiting=waits,
        expected_wait=state.expected_waits.remaining_seconds(task.uid, now),
        turnaround=state.learn.turnaround(task.workload) or None,
        pool=standing_of(state, task, now),
        pools_ahead=pools_ahead(state, task) if is_placeable else (),
        pool_refused=state.pools.tree.refusal(task),
        copies=copies_of(state, task, now),
        nomination=_nomination(state, task.uid, now),
        attempts=_attempts(state, task, now),
        constraint_demand=demand_of(state, task.spec),
        funnel=_funnel(state, task, task_class),
        nearest=near_misses(state, task, task_class) if is_placeable else (),
        dead_with_room=_dead_with_room(state, task_class),
        preemption=preemption(state, task, task_class, now) if is_placeable else None,
        reclaim=reclaim(state, task, task_class, now) if is_placeable else None,
        flow=_flow_part(state, task, now),
    )


def _flow_part(state: State, task: Task, now: float) -> explanation.FlowPart | None:
    profile = state.profiles.get(task.profile)
    return None if profile is None else profile.place.flow_part(task.uid, now)


def _funnel(state: State, task: Task, task_class: TaskClass) -> explanation.Funnel:
    messages = reports.FitErrors(state)
    found = funnel(task_class, state.cluster, messages.refusals)
    return explanation.Funnel(
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


def _nomination(state: State, uid: str, now: float) -> explanation.Nomination | None:
    if not state.placed.is_nominated(uid):
        return None
    node, since = state.placed.node_of(uid), state.placed.held_since(uid)
    row = state.cluster.rows.get(node)
    leaving = [] if row is None else leaving_on(state, row)
    waits = now - (now if since is None else since)
    task, is_reserved = state.pending.get(uid), False
    if task is not None and not leaving and not state.may_evict_for(task):
        # Its Order keeps the node free for it, rather than that it waits for evicted pods.
        is_reserved = state.profiles[task.profile].order.traits.reserves_nodes
    return explanation.Nomination(node, waits, named(state, leaving), is_reserved)


def _attempts(state: State, task: Task, now: float) -> explanation.Attempts:
    message, at, times = state.reports.last(task.uid) or (task.reported, None, 0)
    ago = None if at is None else now - at
    return explanation.Attempts(state.backoff.failures[task.uid], times, message, ago)


def age_of(task: Task, now: float) -> float | None:
    """Seconds since it was created; None where that is not known."""
    return max(now - task.created, 0.0) if task.created else None


def _foreign(state: State, uid: str, pod: ForeignPod, now: float) -> explanation.PodExplanation:
    served = ", ".join(sorted(state.profiles))
    return explanation.PodExplanation(
        namespace=pod.namespace,
        name=pod.name,
        uid=uid,
        scheduler_name=pod.scheduler_name,
        state="otherScheduler",
        summary=f"its schedulerName is {pod.scheduler_name}, and this scheduler serves {served}",
        nomination=_nomination(state, uid, now),
    )


def _placed(state: State, task: Task, node: str, now: float) -> explanation.PodExplanation:
    is_bound = task.uid not in state.placed.assumed
    return explanation.PodExplanation(
        namespace=task.namespace,
        name=task.name,
        uid=task.uid,
        scheduler_name=task.profile,
        state="bound" if is_bound else "binding",
        summary=f"it is bound to node {node}" if is_bound else f"its bind to node {node} is not answered yet",
        priority=task.priority,
        age=age_of(task, now),
        placement=_placement(state, task, node, now),
        copies=copies_of(state, task, now),
        flow=_flow_part(state, task, now),
    )


def _placement(state: State, task: Task, node: str, now: float) -> explanation.Placement:
    row, profile = state.cluster.rows.get(node), state.profiles.get(task.profile)
    since = state.placed.held_since(task.uid)
    waits = max(now - (now if since is None else since), 0.0)
    found = explanation.Placement(node, waits, evicted=task.uid in state.evictions.sent)
    if row is None or profile is None:
        return found
    task_class, learned = _class_of(state, task), state.learn.learned_node(node)
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


NODES_MOST = 5  # named of those in whose queues it is


def state_of(state: State, task: Task) -> explanation.WaitingState:
    """Where a pod of `state.pending` waits whose bind is not under way."""
    uid, place = task.uid, state.places.of(task.uid)
    if place is None or place == "assumed":
        raise LookupError(f"{task} does not wait")
    if place != "classQueue":
        return "gang" if place == "lead" else place
    queued = state.places.queued(uid)
    if state.pools.limit_on(task) is not None:
        return "heldBack"
    if reports.withheld(state, uid) is not None:
        return "withheld"
    if queued is not None and queued.pending.unschedulable_since is not None:
        return "unschedulable"
    return "deferred" if uid in state.deferrals.waits else "active"


NEXT_CYCLE = "its class is asked about in the next scheduling cycle"
NOT_OFFERED = "its Order keeps it from being offered to any node"


def waiting(state: State, task: Task, task_class: TaskClass, now: float) -> explanation.Waiting:
    """Why it waits there; its class must be up to date. `now` in seconds."""
    where = state_of(state, task)
    found = waiting_whatever_nodes(state, task, where, now)
    if found is not None:
        return found
    with_room = task_class.fits_now_count
    match where:
        case "gang":
            found = _in_gang(state, task, now)
        case "nodeQueue":
            found = _in_node_queue(state, task, now)
        case "withheld":
            found = _withheld(state, task, task_class, now)
        case "unschedulable":
            found = _unschedulable(state, task, with_room, now)
        case "deferred":
            found = _deferred(state, task, with_room, now)
        case _:
            reason = reports.not_placed_yet(state, task, with_room) if with_room else NEXT_CYCLE
            found = here(state, task, reason)
    return found


def waiting_whatever_nodes(
    state: State, task: Task, where: explanation.WaitingState, now: float
) -> explanation.Waiting | None:
    """Why it waits, in a state for which no node and no other pod is looked at; None in others."""
    found: explanation.Waiting | None = None
    match where:
        case "deleting":
            found = explanation.Waiting("it is being deleted, so it is not placed any more")
        case "arriving":
            found = explanation.Waiting(
                f"the pods of namespace {task.namespace} have used up the comparisons with Services that one "
                f"step allows a namespace, or those that wait have {TERMS_MOST} different terms about other "
                "pods; it is looked at in its turn"
            )
        case "gated":
            found = explanation.Waiting(f"it has scheduling gates: {', '.join(task.gates)}", gates=task.gates)
        case "backOff":
            _, until = state.places.entry(task.uid)
            reason = "its last attempt failed, and it is tried again after a back-off"
            found = explanation.Waiting(reason, next_check=max(until - now, 0.0))
        case "heldBack":
            limit = state.pools.limit_on(task)
            found = explanation.Waiting("its pool has room for it now" if limit is None else str(limit))
    return found


def _in_gang(state: State, task: Task, now: float) -> explanation.Waiting:
    gang = state.gangs.pods[task.uid]
    _, reason = reports.gang_message(state, task.uid, reports.FitErrors(state), partial(_class_of, state))
    backs_off = not gang.problem and gang.retry_at > now
    return explanation.Waiting(reason, next_check=gang.retry_at - now if backs_off else None)


def _class_of(state: State, task: Task) -> TaskClass:
    return TaskClass(state.cluster, task.spec, task.workload)


def _in_node_queue(state: State, task: Task, now: float) -> explanation.Waiting:
    reservation, names = state.places.reservation(task.uid), state.cluster.names
    if reservation is None:
        raise LookupError(f"{task} waits at no node")
    rows = list(dict.fromkeys(reservation.rows))
    return explanation.Waiting(
        reports.in_node_queue(state, reservation),
        since=now - reservation.since,
        policy=str(state.profiles[task.profile].line),
        nodes=tuple(names[row] for row in rows[:NODES_MOST]),
        ahead=reports.pods_ahead(state, reservation) if len(rows) == 1 else 0,
    )


def _queued(state: State, task: Task) -> Queued:
    found = state.places.queued(task.uid)
    if found is None:
        raise LookupError(f"{task} is in no class queue")
    return found


def here(state: State, task: Task, reason: str) -> explanation.Waiting:
    """The place of a pod in its class queue, and why it waits there."""
    queued = _queued(state, task)
    return explanation.Waiting(
        reason,
        policy=str(state.profiles[task.profile].place),
        ahead=queued.queue.ahead(queued.key, queued.serial),
        group=queued.queue.group,
        class_pods=len(queued.pending),
    )


def _held(state: State, task: Task, waited: QueueClock, task_class: TaskClass, now: float) -> str:
    """For how long it waits for which nodes with its data, and when one of them is expected to have room."""
    held, most = state.held, rounded(waited.reach.seconds)
    label, nodes = held.label_of(task.profile, waited), " or ".join(held.known_nodes(task))
    where = f"a node with the {label} of {nodes}" if label else nodes
    said = [f"waits {waited.seconds(now):.1f} of {most} s for {where}, while other nodes have room"]
    slot = None if label else held.near_slots.of(task, task_class, now)
    if slot is not None and not slot.never:
        said.append(f"a slot is expected in {rounded(slot.expected_seconds)} s")
    return "; ".join([*said, *([elsewhere] if (elsewhere := held.elsewhere(task)) else [])])


def _withheld(state: State, task: Task, task_class: TaskClass, now: float) -> explanation.Waiting:
    answer, profile = reports.withheld(state, task.uid), state.profiles[task.profile]
    reason = "" if answer is None else answer.reason.message
    queue = _queued(state, task).queue
    if queue.is_held and queue.waited is not None:
        reason = _held(state, task, queue.waited, task_class, now)
    return replace(
        here(state, task, reason or NOT_OFFERED),
        policy=str(profile.hold if queue.is_held else profile.order),
        next_check=None if answer is None else _seconds_until(answer.until, now),
    )


def _unschedulable(state: State, task: Task, with_room: int, now: float) -> explanation.Waiting:
    """`with_room`: nodes that have room for it."""
    pending = _queued(state, task).pending
    since = now - (now if pending.unschedulable_since is None else pending.unschedulable_since)
    found = replace(here(state, task, pending.message), since=since)
    if found.reason:
        return found
    if with_room:
        reason = f"policy {found.policy} has refused it although {reports.having_room(with_room)}"
        return replace(found, reason=reason)
    if task.spec.unsupported:
        reason = nodes.unsupported_message(task.spec)
    elif pending.never_feasible:
        reason = "no node, however empty, could run it"
    else:
        reason = reports.limited_by_node(state, task) or "no node has room for it"
    return replace(found, reason=reason, policy="")


def _deferred(state: State, task: Task, with_room: int, now: float) -> explanation.Waiting:
    wait = state.deferrals.waits[task.uid][1]
    row, names = wait.row, state.cluster.names
    reason = reports.deferred(state, task, with_room)
    if not with_room:
        reason = "no node has room for it now" + ("" if row is None else f"; it waits for node {names[row]}")
    return replace(
        here(state, task, reason),
        since=now - state.deferrals.since[task.uid],
        next_check=_seconds_until(wait.until, now),
        nodes=() if row is None else (names[row],),
    )


def _seconds_until(at: float, now: float) -> float | None:
    return max(at - now, 0.0) if isfinite(at) else None


GROUPS_MOST = 8  # explained of one job, each in milliseconds on 15,000 nodes

Label = tuple[str, str]
Group = tuple[explanation.WaitingState, ClassKey]


def job_explanation(
    state: State, job: tuple[str, str], labels: Collection[Label], now: float
) -> explanation.JobExplanation:
    """The answer about a job; `now` in seconds, not before the last step. O(pods + groups times nodes).

    `job`: its namespace and name. `labels`: whichever of these a pod has, it is one of the job.
    """
    namespace, name = job
    uid = _uid(state, namespace, labels)
    if not uid:
        summary = "this scheduler knows no pod of such a job"
        return explanation.JobExplanation(namespace=namespace, name=name, known=False, summary=summary)
    # A pod of another namespace may name the job's uid too: nobody verifies that, and it is not of the job.
    own, assumed, nominated = (uid, namespace), state.placed.assumed, state.placed.is_nominated
    of_job = (task for task in state.pending.values() if (task.job, task.namespace) == own)
    pods = [task for task in of_job if task.uid not in assumed]
    on_nodes = (task.uid for task in state.placed.tasks() if (task.job, task.namespace) == own)
    placed = sum(not nominated(uid) for uid in on_nodes)
    groups: dict[Group, list[Task]] = {}
    for task in pods:
        groups.setdefault((state_of(state, task), (task.spec, task.workload)), []).append(task)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:GROUPS_MOST]
    explained = tuple(_alike(state, where, alike, now) for (where, _), alike in largest)
    return explanation.JobExplanation(
        namespace=namespace,
        name=name,
        known=True,
        summary=f"{len(pods)} of its pods wait, and {placed} are on nodes",
        waiting_pods=len(pods),
        placed_pods=placed,
        groups=explained,
        not_listed=len(pods) - sum(group.pods for group in explained),
    )


def _uid(state: State, namespace: str, labels: Collection[Label]) -> str:
    """The job's uid by the first pod that has one of the labels; empty if there is none."""
    for task in chain(state.pending.values(), state.placed.tasks()):
        if task.namespace == namespace and task.job and any(pair in labels for pair in task.labels):
            return task.job
    return ""


def _alike(
    state: State, where: explanation.WaitingState, pods: list[Task], now: float
) -> explanation.AlikePods:
    task, task_class = pods[0], _class_of(state, pods[0])
    reason = waiting(state, task, task_class, now).reason
    message = "" if task_class.fits_now_count else reports.FitErrors(state).message(task, task_class)
    return explanation.AlikePods(where, len(pods), reason, message, task.name)


# What a placement was chosen among: asked right after the step, so that decisions do not pay.


class Decision(Struct, frozen=True):
    """A pod's placement beside its alternatives, as they are right after the step that has decided it."""

    policy: str  # the Place policy's class
    nodes: int
    feasible: int  # nodes that may run the pod, when they are empty enough
    with_room: int  # of those, nodes that have room for one more such pod
    speed: float  # the learned rate of the chosen node over the mean of the feasible ones
    rank: int  # 1: none of the feasible nodes is faster

    def __str__(self) -> str:
        found = f"{self.feasible} of {self.nodes} nodes are feasible, {self.with_room} have room for another"
        chosen = f"the node of rank {self.rank} by speed ({self.speed:.2f} of the mean)"
        return f"{found}; {self.policy} chose {chosen}"


def decision_about(state: State, uid: str) -> Decision | None:
    """The decision about a pod whose bind is assumed; None for other pods."""
    task, node = state.pending.get(uid), state.placed.assumed.get(uid)
    row = None if node is None else state.cluster.rows.get(node)
    if task is None or row is None:
        return None
    task_class = state.view.task_class(task)
    rates = state.view.speeds(task_class).rate
    of_feasible = rates[: len(task_class.feasible)][task_class.feasible]
    mean = float(of_feasible.mean()) if len(of_feasible) else 0.0
    return Decision(
        policy=str(state.profiles[task.profile].place),
        nodes=len(state.cluster),
        feasible=task_class.feasible_count,
        with_room=task_class.fits_now_count,
        speed=float(rates[row]) / mean if mean else 1.0,
        rank=1 + int(np.count_nonzero(of_feasible > rates[row])),
    )


MAX_EXAMINED = 32  # the heaviest preferences of a pod, which may state thousands


def unmet_by(state: State, uid: str) -> tuple[str, ...]:
    """The preferred node affinity that the node of an assumed pod does not meet, in words, heaviest first.

    Empty for other pods. Of very many preferences the heaviest are examined.
    """
    task = state.pending.get(uid)
    row = state.cluster.rows.get(state.placed.assumed.get(uid, ""))
    return () if task is None or row is None else unmet_on(state, task, row)


def unmet_on(state: State, task: Task, row: int) -> tuple[str, ...]:
    """The same for a pod on a row."""
    rows = np.array([row])
    heaviest = sorted(task.spec.preferences, key=attrgetter("weight"), reverse=True)[:MAX_EXAMINED]
    return tuple(
        f"{term_words(each.term)} (weight {each.weight})"
        for each in heaviest
        if not term_holds(state.cluster, each.term, rows)[0]
    )
