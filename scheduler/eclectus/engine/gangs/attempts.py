"""An attempt to place a gang: all pods that must start together get nodes on one view, or none does.

The profile's Place policy is asked, as for any pods. Where it lets pods wait in node queues, or has not taken
room that there was for as long as the profile's `waitLimit`, the engine itself takes the best node for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

from eclectus.engine.effects.table import Effects
from eclectus.engine.explain.fit_errors import FitErrors
from eclectus.engine.gangs.cycle import GangCycle, LeftOut
from eclectus.engine.gangs.transaction import Transaction
from eclectus.engine.queues.gang import MEMBERS_MOST, Failure, WaitingGang, in_turn
from eclectus.engine.queues.pending_class import PendingClass
from eclectus.engine.scheduling_cycle import Offered, SchedulingCycle
from eclectus.engine.state import State
from eclectus.engine.wait_limit import BestNode
from eclectus.framework import Bind, Defer, Place, Profile, Unschedulable
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey


class GangAttempts:
    """Tries gangs whose turn has come."""

    def __init__(self, state: State, effects: Effects) -> None:
        self._state, self._effects, self._best = state, effects, BestNode(state)

    def attempt(self, profile: Profile, outer: SchedulingCycle, turn: Offered) -> None:
        """Try the gang whose lead was taken from its queue in the `outer` cycle.

        A gang that cannot have room waits until the lead's class gets some; one that fails backs off.
        """
        state, (lead, pending, queue, serial) = self._state, turn
        gang = state.gangs.of(lead.uid)
        members = nsmallest(MEMBERS_MOST, gang.held.values(), key=in_turn)
        if not self._may_have_room(gang, lead, members):
            self._refuse(gang, pending)
            return
        state.class_queues.answer(pending, queue, serial)
        state.end_turn(gang)
        outer.removed += len(members)  # so that a step is bounded, whatever comes of them
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

    def _is_overdue(self, profile: Profile, gang: WaitingGang) -> bool:
        """Whether attempts have failed beside room for as long as a pod may wait there."""
        limit, since = profile.settings.wait_limit, gang.beside_room_since
        return limit is not None and since is not None and self._state.now - since >= limit

    # -- before anything is placed -------------------------------------------------------------------

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

    def _refuse(self, gang: WaitingGang, pending: PendingClass) -> None:
        state = self._state
        never = not state.view.classes.current(*pending.class_key).feasible_count
        state.class_queues.mark_unschedulable(pending, state.now, never=never, message="")
        state.count_attempts("unschedulable", pending.profile, gang.needed)

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
        full: dict[ClassKey, Task] = {}
        for task in members:
            key = (task.spec, task.workload)
            row = None if key in full else self._best.row_for(key)
            if row is None:
                full.setdefault(key, task)
                continue
            transaction.place(task, row)
            if len(transaction) == needed:
                break
        return LeftOut(next(iter(full.values())), "") if full else None

    # -- failures ------------------------------------------------------------------------------------

    def _fail(
        self, profile: Profile, gang: WaitingGang, transaction: Transaction, left_out: LeftOut | None
    ) -> None:
        """Abandon what is placed. Why is found out while it counts; not each time, because it is O(nodes)."""
        state = self._state
        is_beside_room = left_out is None or self._has_room(left_out.task)
        if state.now >= gang.explain_at:
            why = self._why(profile, left_out, is_beside_room)
            state.gangs.explained(
                gang, Failure(len(transaction), gang.needed, why, is_beside_room), state.now
            )
        transaction.abandon()
        state.count_attempts("unschedulable", profile.scheduler_name, gang.needed)
        state.gangs.failed(gang, state.now, is_beside_room=is_beside_room)

    def _why(self, profile: Profile, left_out: LeftOut | None, is_beside_room: bool) -> str:
        if left_out is None:
            return f"policy {profile.place} has not placed it"
        if is_beside_room:
            return left_out.message or f"policy {profile.place} has refused it, although a node has room"
        return FitErrors(self._state).message(left_out.task, self._state.view.task_class(left_out.task))
