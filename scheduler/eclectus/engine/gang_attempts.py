"""Gangs get their turn, and all pods that must start together get nodes on one view, or none does.

The profile's Place policy is asked, as for any pods, and need not know of gangs. A pod that it defers, or
for which it finds no node, is left out; the others may still be enough. Where the policy lets pods wait in
node queues, or has not taken room that there was for as long as the profile's `waitLimit`, the engine
itself takes the best node for each.

An attempt is a transaction. What is assumed counts at once in the arrays, in accounts and for volumes, so
that every later question is answered beside it. Abandoned, nothing was sent, and the state is what it was:
what is reported of a pod, how long it waits and what has begun changes only with `commit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from eclectus.accounts.pools import Limit, limit_together
from eclectus.engine.effects import Effects
from eclectus.engine.gangs import MEMBERS_MOST, Failure, WaitingGang, in_turn
from eclectus.engine.nominations import Nominations
from eclectus.engine.placed_pods import AssumedBind
from eclectus.engine.queues.class_queues import ClassQueues, PendingClass
from eclectus.engine.reports import FitErrors, limited_by_node
from eclectus.engine.scheduling_cycle import Allowance, Offered, SchedulingCycle
from eclectus.engine.state import State
from eclectus.engine.wait_limit import BestNode
from eclectus.framework import Bind, Defer, Order, Place, Profile, Unschedulable, Wait
from eclectus.model.errors import PolicyError
from eclectus.model.objects import NO_GRANT, ClassKey, Grant, Task

PODS_MOST = 2_000  # of gangs that have become complete or incomplete: so many change queues in one step
EVENT = "PodGroupChange"  # why they are queued, for metrics


class GangTurns:
    """Moves the pods of gangs between queues, once a step."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state = state
        self._nominations = nominations

    def update(self) -> None:
        """Look after every gang that has changed, or whose back-off is over."""
        left = PODS_MOST
        for gang in self._state.gangs.take_changed(self._state.now):
            left -= self._update(gang, left)

    def _update(self, gang: WaitingGang, most: int) -> int:
        """Returns how many pods have changed queues. What is left goes on in the next step."""
        gangs = self._state.gangs
        if gang.is_complete:
            gang.has_room = False  # each pod for itself from now on
            moved = self._release(gang, most)
            if gang.held:
                gangs.change(gang)
            return moved
        moved = self._gather(gang, most)
        if gang.ordinary:
            gangs.change(gang)
        if gang.is_new and not gang.problem:
            gang.is_new = False
            self._nominations.inherit(gang)
        elif gang.has_room and (gang.problem or len(self._nominations.of_gang(gang)) < gang.needed):
            self._nominations.withdraw_gang(gang)
        may_be_tried = not gang.problem and gang.retry_at <= self._state.now and not gang.has_room
        if gang.lead is not None and not may_be_tried:
            self._state.dequeue_lead(gang)
        elif gang.lead is None and may_be_tried and not gang.ordinary:
            self._state.enqueue_lead(min(gang.held.values(), key=in_turn), EVENT)
        return moved

    def _release(self, gang: WaitingGang, most: int) -> int:
        """The gang is complete: pods that were held for it wait as any others."""
        state, released = self._state, list(islice(gang.held.values(), most))
        for task in released:
            state.leave(task.uid)
            state.enqueue(task, EVENT)
            self._nominations.observe(task)
        return len(released)

    def _gather(self, gang: WaitingGang, most: int) -> int:
        """The gang is not complete: pods that waited as any others are held for it."""
        state, gathered = self._state, list(islice(gang.ordinary, most))
        for uid in gathered:
            del gang.ordinary[uid]
            if state.places.of(uid) in ("classQueue", "nodeQueue"):
                task = state.pending[uid]
                if state.placed.is_nominated(uid):
                    self._nominations.withdraw(task)
                state.dequeue(uid)
                state.enqueue(task, EVENT)
        return len(gathered)


class GangAttempts:
    """Tries gangs whose turn has come."""

    def __init__(self, state: State, effects: Effects) -> None:
        self._state = state
        self._effects = effects
        self._best = BestNode(state)

    def attempt(self, profile: Profile, outer: SchedulingCycle, turn: Offered) -> None:
        """Try the gang whose lead was taken from its queue in the `outer` cycle.

        A gang that cannot have room waits until the lead's class gets some; one that fails backs off.
        """
        state, lead, pending = self._state, turn.task, turn.pending
        gang = state.gangs.pods[lead.uid]
        members = nsmallest(MEMBERS_MOST, gang.held.values(), key=in_turn)
        outer.count_classes(len({(task.spec, task.workload) for task in members}) - 1)
        if not self._may_have_room(gang, lead, members):
            self._refuse(gang, pending, members)
            return
        state.class_queues.answer(pending, turn.queue, turn.serial)
        state.end_turn(gang)
        outer.removed += len(members)  # so that a step is bounded, whatever comes of them
        limit = limit_together(state.pools, members, gang.needed)
        if limit is not None:
            self._hold_back(profile, gang, limit)
            return
        is_overdue, needed = self._is_overdue(profile, gang), gang.needed
        transaction = Transaction(state)
        if is_overdue or profile.place.traits.joins_node_queues:
            left_out = self._place(members, needed, transaction)
        else:
            left_out = self._ask(profile, members, needed, transaction)
        if len(transaction) < needed:
            self._fail(profile, gang, transaction, left_out)
            return
        placed = transaction.commit()
        state.counters.placed_by_limit += len(placed) if is_overdue else 0
        state.gangs.succeeded(gang, placed)

    def _hold_back(self, profile: Profile, gang: WaitingGang, limit: Limit) -> None:
        """The gang is tried again after its back-off."""
        state = self._state
        if state.now >= gang.explain_at:
            failure = Failure(0, gang.needed, str(limit), is_beside_room=False, is_limited=True)
            state.gangs.explained(gang, failure, state.now)
        state.count_attempts("unschedulable", profile.scheduler_name, gang.needed)
        state.gangs.failed(gang, state.now, is_beside_room=False)

    def _is_overdue(self, profile: Profile, gang: WaitingGang) -> bool:
        """Whether attempts have failed beside room for as long as a pod may wait there."""
        limit = self._state.waiting_times.limit(profile.scheduler_name)
        since = gang.beside_room_since
        return limit is not None and since is not None and self._state.now - since >= limit

    def _may_have_room(self, gang: WaitingGang, lead: Task, members: Sequence[Task]) -> bool:
        """Whether a node has room for the lead, or nodes have for enough pods that are not like it."""
        if self._has_room(lead):
            return True
        has_room: dict[ClassKey, bool] = {}
        for task in members:
            key = (task.spec, task.workload)
            if key not in has_room:
                has_room[key] = self._has_room(task)
        return sum(has_room[task.spec, task.workload] for task in members) >= gang.needed

    def _has_room(self, task: Task) -> bool:
        """Whether a node has room for the pod; what is only planned for others counts as free. O(nodes)."""
        task_class = self._state.view.task_class(task)
        return bool(task_class.fits_now_count) or self._best.row_for((task.spec, task.workload)) is not None

    def _is_feasible(self, task: Task) -> bool:
        return bool(self._state.view.classes.current(task.spec, task.workload).feasible_count)

    def _refuse(self, gang: WaitingGang, pending: PendingClass, members: Sequence[Task]) -> None:
        state = self._state
        never = not state.view.classes.current(*pending.class_key).feasible_count
        if never and sum(map(self._is_feasible, members)) < gang.needed:
            state.unplaceable(members)
        state.class_queues.mark_unschedulable(pending, state.now, never=never, message="")
        state.count_attempts("unschedulable", pending.profile, gang.needed)
        state.gang_refused(pending.profile, gang)

    # -- pod by pod: both return the first pod that got no node ------------------------------------------

    def _ask(
        self, profile: Profile, members: Sequence[Task], needed: int, transaction: Transaction
    ) -> LeftOut | None:
        """Place as the policy answers, up to its first error."""
        state, policy = self._state, profile.place
        cycle = GangCycle(profile, state, members, needed, transaction)
        try:
            for action in policy.place(state.view, cycle):
                if not isinstance(action, (Bind, Defer, Unschedulable)):
                    raise PolicyError(f"{action!r} is no answer to a pod of a gang")
                self._effects.put_in_force(Place, cycle, action)
                if not cycle.can_succeed:
                    break
        except Exception as error:  # a plug-in's defect must not stop the others
            problem = str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}"
            state.fault(policy, problem)
            return LeftOut(members[0], f"policy {policy} failed: {problem}")
        return cycle.left_out

    def _place(self, members: Sequence[Task], needed: int, transaction: Transaction) -> LeftOut | None:
        """Place each pod on the best node that has room for it."""
        state, full = self._state, dict[ClassKey, Task]()
        for task in members:
            key = (task.spec, task.workload)
            if state.pools.limit_on(task) is not None:
                continue
            row = None if key in full else self._best.row_for(key)
            if row is None:
                full.setdefault(key, task)
                continue
            transaction.place(task, row)
            if len(transaction) == needed:
                break
        return LeftOut(next(iter(full.values())), "") if full else None

    def _fail(
        self, profile: Profile, gang: WaitingGang, transaction: Transaction, left_out: LeftOut | None
    ) -> None:
        """Abandon what is placed. Why is found out while it counts; not each time, because it is O(nodes)."""
        state = self._state
        is_beside_room = left_out is None or self._has_room(left_out.task)
        if state.now >= gang.explain_at:
            by_node = "" if left_out is None else limited_by_node(state, left_out.task)
            why = by_node or self._why(profile, left_out, is_beside_room)
            failure = Failure(len(transaction), gang.needed, why, is_beside_room, is_limited=bool(by_node))
            state.gangs.explained(gang, failure, state.now)
        transaction.abandon()
        state.count_attempts("unschedulable", profile.scheduler_name, gang.needed)
        state.gangs.failed(gang, state.now, is_beside_room=is_beside_room)
        state.gang_refused(profile.scheduler_name, gang)

    def _why(self, profile: Profile, left_out: LeftOut | None, is_beside_room: bool) -> str:
        if left_out is None:
            return f"policy {profile.place} has not placed it"
        if is_beside_room:
            return left_out.message or f"policy {profile.place} has refused it, although a node has room"
        return FitErrors(self._state).message(left_out.task, self._state.view.task_class(left_out.task))


class _MemberOrder(Order):
    """The order in which the pods of a gang are given. Its turn has come, so no other Order is asked."""

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Tasks of a higher priority first."""
        return (-task.priority, serial)


class LeftOut(NamedTuple):
    """A pod that got no node, and what the policy said of it."""

    task: Task
    message: str


class GangCycle(SchedulingCycle):
    """Ends when so many pods are placed as are needed, or too few are left.

    `left_out`: the first pod without a node.
    """

    def __init__(
        self, profile: Profile, state: State, members: Sequence[Task], needed: int, transaction: Transaction
    ) -> None:
        ordered = replace(profile, order=_MemberOrder())
        queues = ClassQueues(state.view.classes, [ordered])
        for task in members:
            queues.add(task, ordered.order)
        allowance = Allowance(tasks=needed, classes=len(members), cycle=1)
        super().__init__(ordered, state, list(queues.active.values()), allowance, queues)
        self._transaction = transaction
        self.left_out: LeftOut | None = None

    @property
    def can_succeed(self) -> bool:
        """Whether enough pods are placed, or still to be answered."""
        open_classes = (pending for pending in self._classes if pending.has_more)
        left = sum(pending.count + pending.answered - pending.passed for pending in open_classes)
        return self.removed + left + len(self.offered) >= self._allowance.tasks

    def place(self, task: Task, row: int, grant: Grant) -> None:
        """The task is placed in the transaction."""
        self.remove(task)
        self._transaction.place(task, row, grant)

    def defer(self, task: Task, wait: Wait) -> None:
        """The task is left out."""
        self.offered.pop(task.uid)
        self._leave_out(task, "waiting for another node than those with room")

    def mark_unschedulable(self, task: Task, message: str) -> None:
        """The task is left out, and no other one of its class is offered."""
        self.offered.pop(task.uid).pending.is_closed = True
        self._leave_out(task, message)

    def _hold_back(self, held: Offered, limit: Limit) -> None:
        """The task is left out."""
        self._leave_out(held.task, str(limit))

    def _leave_out(self, task: Task, message: str) -> None:
        if self.left_out is None:
            self.left_out = LeftOut(task, message)


class Transaction:
    """Begins when it is made; ends, in the same step, with `commit` or `abandon`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._random = state.view.rng.getstate()
        self._assumed: list[AssumedBind] = []

    def __len__(self) -> int:
        """How many pods are placed in it."""
        return len(self._assumed)

    def place(self, task: Task, row: int, grant: Grant = NO_GRANT) -> None:
        """Count a pod for which no room is held as placed on this row."""
        self._assumed.append(self._state.assume(task, row, grant))

    def commit(self) -> list[Task]:
        """Bind the pods; which they are."""
        for assumed in self._assumed:
            self._state.send(assumed)
        return [assumed.task for assumed in self._assumed]

    def abandon(self) -> None:
        """Place none of them. What was drawn at random is drawn again."""
        for assumed in reversed(self._assumed):
            self._state.undo(assumed)
        self._state.view.rng.setstate(self._random)
