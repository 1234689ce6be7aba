"""The table of effects: which roles may answer with an action, how it is validated, and how it is applied.

Every action is in force before the next one is asked for. A validation changes nothing, so a refused action
has no effect at all. A policy is a plug-in: not even that an action names a task is certain. A task that a
Place policy answers must have been offered in this cycle; Relieve policies, and Orders that reserve nodes,
answer about the refused tasks that they were shown.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np

from eclectus.cluster.devices import problem_of
from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.nominations import Nominations
from eclectus.engine.scheduling_cycle import SchedulingCycle
from eclectus.engine.solves import ARCS_MOST
from eclectus.engine.state import State
from eclectus.framework import (
    Ask,
    Bind,
    Defer,
    Enqueue,
    Evict,
    Nominate,
    Order,
    Place,
    Preempt,
    Reason,
    Refused,
    RefusedGang,
    Relieve,
    ReserveMany,
    Unschedulable,
    Wait,
    WouldReclaim,
)
from eclectus.maths.min_cost_flow import FlowProblem
from eclectus.maths.min_cost_flow import problem_of as flow_problem_of
from eclectus.model.errors import PolicyError
from eclectus.model.objects import NO_GRANT, Task, outranks

_INTEGERS = (int, np.integer)


def validate_task(task: object) -> Task:
    """The task. Raises PolicyError if it is something else."""
    if not isinstance(task, Task):
        raise PolicyError(f"{task!r} is no task")
    return task


def validate_row(state: State, task: Task, row: object) -> int:
    """The row as a plain number. Raises PolicyError if there is no node in it."""
    if isinstance(row, bool) or not isinstance(row, _INTEGERS):
        raise PolicyError(f"{row!r} is no row for {task}")
    row = int(row)
    names = state.cluster.names
    if not 0 <= row < len(names) or not names[row]:
        raise PolicyError(f"there is no node in row {row} for {task}")
    return row


class Placing:
    """`validate_…` of each action, which changes nothing, and what applies those that take several calls."""

    def __init__(self, state: State, node_dispatch: NodeDispatch, nominations: Nominations) -> None:
        self._state = state
        self._node_dispatch = node_dispatch
        self._nominations = nominations

    def validate_place(self, cycle: SchedulingCycle, place: Bind) -> None:
        """The task must fit beside what the node holds, and on the devices of its grant if there are some.

        What is only planned for other waiting tasks does not count: they are planned anew if it is taken.
        """
        state, task, row, grant = self._state, place.task, place.row, place.grant
        _validate_offered(cycle, task)
        task_class = state.view.task_class(task)
        if not (
            task_class.scalars.fits_now[validate_row(state, task, row)]
            or task_class.fits_beside_held(int(row))
        ):
            raise PolicyError(f"{task} does not fit on node {state.cluster.names[row]} now")
        if grant is not NO_GRANT:
            problem = problem_of(grant, state.cluster.devices, row, task.spec.requests)
            if problem:
                raise PolicyError(f"{problem} {task} on node {state.cluster.names[row]}")

    def validate_defer(self, cycle: SchedulingCycle, defer: Defer) -> None:
        """The node, if it names one, must be feasible, and the end of the wait lie in the future."""
        state, task, wait = self._state, defer.task, defer.wait
        _validate_offered(cycle, task)
        if not isinstance(wait, Wait):
            raise PolicyError(f"{wait!r} is no Wait for {task}")
        feasible = state.view.task_class(task).scalars.feasible
        if wait.row is not None and not feasible[validate_row(state, task, wait.row)]:
            raise PolicyError(f"node {state.cluster.names[wait.row]} may never run {task}")
        if not wait.until > state.now:  # nan too; a time in the past would be a busy loop
            raise PolicyError(f"{task} cannot be deferred until {wait.until}: it is {state.now} now")

    def defer(self, cycle: SchedulingCycle, defer: Defer) -> None:
        """The task waits in its class queue, for the node if the policy names one."""
        cycle.defer(defer.task, defer.wait)
        self._state.waits(defer.task)

    def validate_enqueue(self, cycle: SchedulingCycle, enqueue: Enqueue) -> None:
        """The task may wait in the queue of this node."""
        _validate_offered(cycle, enqueue.task)
        self._validate_wait(enqueue.task, enqueue.row)

    def enqueue(self, cycle: SchedulingCycle, enqueue: Enqueue) -> None:
        """The task joins the node queue, and starts at once if it is first and fits."""
        cycle.remove(enqueue.task)
        self._node_dispatch.enqueue(enqueue.task, int(enqueue.row))
        self._state.waits(enqueue.task)

    def validate_reserve_many(self, cycle: SchedulingCycle, reserve: ReserveMany) -> None:
        """The tasks are different ones of one class and profile and may wait in each of the node queues."""
        if not reserve.tasks or not reserve.rows:
            raise PolicyError(f"reservations need tasks and rows, not {reserve!r}")
        first = reserve.tasks[0]
        for task in reserve.tasks:
            _validate_offered(cycle, task)
            if (task.spec, task.workload, task.profile) != (first.spec, first.workload, first.profile):
                raise PolicyError(
                    f"{first} and {task} behind one reservation are not of one class and profile"
                )
        if len({task.uid for task in reserve.tasks}) < len(reserve.tasks):
            raise PolicyError(f"a task is named twice behind the reservation of {first}")
        for row in set(reserve.rows):
            self._validate_wait(first, row)

    def reserve_many(self, cycle: SchedulingCycle, reserve: ReserveMany) -> None:
        """The tasks wait behind reservations; those that are first and fit start at once."""
        for task in reserve.tasks:
            cycle.remove(task)
        rows = [int(row) for row in reserve.rows]
        state = self._state
        state.enqueue_at_nodes(state.node_queues.reserve(reserve.tasks, rows, reserve.sticky, state.now))
        for row in rows:
            self._node_dispatch.dispatch(row)
        state.waits(reserve.tasks[0])

    def _validate_wait(self, task: Task, row: int) -> None:
        state = self._state
        if not state.view.classes.cached((task.spec, task.workload)).may_wait(validate_row(state, task, row)):
            raise PolicyError(f"node {state.cluster.names[row]} may never run {task}, or services fill it")

    def validate_unschedulable(self, cycle: SchedulingCycle, unschedulable: Unschedulable) -> None:
        """There must be a reason."""
        task, reason = unschedulable.task, unschedulable.reason
        _validate_offered(cycle, task)
        if not isinstance(reason, Reason):
            raise PolicyError(f"{reason!r} is no Reason for {task}")

    def validate_preempt(self, cycle: SchedulingCycle, preempt: Preempt) -> None:
        """The task may be nominated there, and each victim be ended for it."""
        state, task = self._state, preempt.task
        self.validate_defer(cycle, Defer(task, preempt.wait))
        _validate_room_held(state, task, preempt.row)
        if task.gang is not None or task.copy_of or not task.preempts:
            raise PolicyError(
                f"no pod may be ended for {task}: a copy, in a gang, or one that never preempts"
            )
        node = state.cluster.names[int(preempt.row)]
        for victim in map(validate_task, preempt.victims):
            problem = _unendable(state, victim, task, node)
            if problem:
                raise PolicyError(f"{victim} cannot be ended for {task}: it {problem}")
        if not preempt.victims or len({each.uid for each in preempt.victims}) < len(preempt.victims):
            raise PolicyError(f"no pod, or one twice, would be ended for {task}")
        if any(state.budgets.violated_by(preempt.victims)):
            raise PolicyError(f"a PodDisruptionBudget forbids to end {preempt.victims[0]} for {task}")

    def preempt(self, cycle: SchedulingCycle, preempt: Preempt) -> None:
        """The task waits in its class queue, with room held for it, until the victims have gone."""
        self.defer(cycle, Defer(preempt.task, preempt.wait))
        self._nominations.nominate(preempt.task, int(preempt.row))
        for victim in preempt.victims:
            self._state.evict(victim, preempt.task, by_costs=True)


def _unendable(state: State, victim: Task, task: Task, node: str) -> str:
    """Why a pod must not be ended for a task, which it does not outrank; empty if it may be."""
    reasons = {
        f"is not bound to node {node}": not state.placed.is_bound(victim.uid)
        or state.placed.node_of(victim.uid) != node,
        "does not say that its work may begin anew": not victim.restartable,
        "is a copy, or in a gang": bool(victim.copy_of) or victim.gang is not None,
        "has a higher priority": victim.priority > task.priority,
        "is in another pool": victim.pool != task.pool,
        "goes already, or was spared": victim.deleting
        or victim.uid in state.evictions.sent
        or victim.uid in state.evictions.spared,
    }
    return next((why for why, is_so in reasons.items() if is_so), "")


def _validate_ask(ask: Ask) -> None:
    """The problem is one that a solver can be given."""
    if not isinstance(ask.problem, FlowProblem):
        raise PolicyError(f"{type(ask.problem).__name__} is no FlowProblem")
    problem = flow_problem_of(ask.problem)
    if problem:
        raise PolicyError(f"the flow problem cannot be solved: {problem}")
    if not 0.0 < ask.within < inf:
        raise PolicyError(f"nobody can solve a problem within {ask.within} seconds")
    if len(ask.problem.tails) > ARCS_MOST:
        raise PolicyError(f"a flow problem has {len(ask.problem.tails)} arcs, more than {ARCS_MOST}")


def _validate_offered(cycle: SchedulingCycle, task: object) -> None:
    task = validate_task(task)
    at_hand = cycle.offered.get(task.uid)
    if at_hand is None or (at_hand.task is not task and at_hand.task != task):
        raise PolicyError(f"{task} was not offered in this scheduling cycle, or is answered already")


def _validate_nominate(state: State, refused: Refused | RefusedGang, nominate: Nominate) -> None:
    """The task was refused, and room may be held for it."""
    _validate_room_held(state, _validate_refused(refused, nominate.task), nominate.row)


def _validate_room_held(state: State, task: Task, row: object) -> None:
    """The task is not nominated, the node is feasible for it, and no limit of its pools forbids it."""
    row = validate_row(state, task, row)
    if state.placed.is_nominated(task.uid):
        raise PolicyError(f"{task} is nominated to node {state.placed.node_of(task.uid)} already")
    if not state.view.task_class(task).scalars.feasible[row]:
        raise PolicyError(f"node {state.cluster.names[row]} may never run {task}")
    limit = state.pools.limit_on(task)
    if limit is not None:
        raise PolicyError(f"no room is held for {task}: {limit}")


def _validate_evict(state: State, refused: Refused | RefusedGang, evict: Evict) -> None:
    """The victim is bound, not evicted yet, and may be evicted for the task.

    It has a lower priority or is taken back by a pool, and is on the task's nominated node, or of a gang of
    which a pod there was evicted for the task.
    """
    victim, task = validate_task(evict.victim), _validate_refused(refused, evict.task)
    node = state.placed.node_of(task.uid)
    if not state.placed.is_nominated(task.uid):
        raise PolicyError(f"{victim} cannot be evicted for {task}, which is not nominated to a node")
    is_there = state.placed.node_of(victim.uid) == node or _goes_with_gang(state, evict, node)
    if not state.placed.is_bound(victim.uid) or not is_there:
        raise PolicyError(f"{victim} is not bound to node {node}, to which {task} is nominated")
    if evict.claim is None and not outranks(task, victim):
        raise PolicyError(f"{victim} has not a lower priority than {task}")
    if evict.claim is not None and (not victim.pool or victim.pool == task.pool):
        raise PolicyError(f"{victim} is not in another pool than {task}")
    if victim.uid in state.evictions.sent:
        raise PolicyError(f"{victim} is evicted already")
    if isinstance(refused, RefusedGang):
        held = sum(state.placed.is_nominated(each.uid) for each in refused.tasks)
        if held < refused.needed:
            raise PolicyError(f"{victim} would go for a gang of which {held} of {refused.needed} have room")


def _validate_would_reclaim(state: State, refused: Refused | RefusedGang, would: WouldReclaim) -> None:
    """The task was refused, the node exists, and the victims are bound."""
    task = _validate_refused(refused, would.task)
    validate_row(state, task, would.row)
    for victim in would.victims:
        if not state.placed.is_bound(validate_task(victim).uid):
            raise PolicyError(f"{victim} is not bound, so it would not be evicted for {task}")


def _goes_with_gang(state: State, evict: Evict, node: str) -> bool:
    """Whether a pool takes back another pod of the victim's gang on this node, for the same task."""
    gang = state.gangs.pods.get(evict.victim.uid)
    if gang is None or evict.claim is None:
        return False
    others = (uid for uid in gang.placed if state.evictions.sent.get(uid) == evict.task.uid)
    return any(state.placed.node_of(uid) == node for uid in others)


def _validate_refused(refused: Refused | RefusedGang, task: object) -> Task:
    task = validate_task(task)
    if task not in refused.tasks:
        raise PolicyError(f"{task} is not among the refused tasks that the policy was asked about")
    return task


Asked = SchedulingCycle | Refused | RefusedGang
"""What a policy was asked about."""


class Effect(NamedTuple):
    """Of one type of action. Both functions are given what the policy was asked about, and the action."""

    roles: tuple[type, ...]
    validate: Callable[[Any, Any], None]  # raises PolicyError
    apply: Callable[[Any, Any], None]


class Effects:
    """Puts actions in force."""

    def __init__(self, state: State, node_dispatch: NodeDispatch, nominations: Nominations) -> None:
        placing = Placing(state, node_dispatch, nominations)
        self._table: Mapping[type, Effect] = {
            Bind: Effect(
                (Place,),
                placing.validate_place,
                lambda cycle, bind: cycle.place(bind.task, int(bind.row), bind.grant),
            ),
            Defer: Effect((Place,), placing.validate_defer, placing.defer),
            Enqueue: Effect((Place,), placing.validate_enqueue, placing.enqueue),
            ReserveMany: Effect((Place,), placing.validate_reserve_many, placing.reserve_many),
            Unschedulable: Effect(
                (Place,),
                placing.validate_unschedulable,
                lambda cycle, each: cycle.mark_unschedulable(each.task, each.reason.message),
            ),
            Preempt: Effect((Place,), placing.validate_preempt, placing.preempt),
            Ask: Effect(
                (Place,),
                lambda _, ask: _validate_ask(ask),
                lambda cycle, ask: state.solve(cycle.profile, ask),
            ),
            Nominate: Effect(
                (Relieve, Order),
                partial(_validate_nominate, state),
                lambda _, each: nominations.nominate(each.task, int(each.row)),
            ),
            Evict: Effect(
                (Relieve,),
                partial(_validate_evict, state),
                lambda _, each: state.evict(each.victim, each.task, each.claim),
            ),
            WouldReclaim: Effect(
                (Relieve,),
                partial(_validate_would_reclaim, state),
                lambda _, each: state.say_dry_run(each.task, int(each.row), each.victims, each.claim),
            ),
        }

    def put_in_force(self, role: type, asked: Asked, action: object) -> None:
        """Validate an answer of a policy of this role, then apply it.

        Raises PolicyError if the action must not be put in force; nothing has changed then.
        """
        effect = self._table.get(type(action))
        if effect is None or role not in effect.roles:
            raise PolicyError(f"{action!r} is not an action with which a {role.__name__} policy may answer")
        effect.validate(asked, action)
        effect.apply(asked, action)
