"""What is done for refused tasks: Relieve policies are asked to make room, and Orders to keep nodes free.

About a gang that found no room policies are asked as a whole, where they take room back for its pools. What
they have looked at in the meantime, room for a part of it, is held in a trial alone.

A policy is a plug-in: what it asks for in error, or raises, becomes a Fault with its name, and the class is
asked about again later.

A node that is kept free is a nomination without victims (nominations.py): room counts as held for the task,
what ends on the node adds to it, and the task is bound as soon as it fits. Whether it still holds, the
Order is asked by `keeps_node`. No node is kept free for a task for which pods of lower priority may be
evicted: Relieve policies make room for it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, islice, zip_longest
from math import inf
from typing import TypeVar, cast

from eclectus.accounts.pools import limit_together
from eclectus.engine.agenda import RefusedKey
from eclectus.engine.effects import Effects
from eclectus.engine.gangs import MEMBERS_MOST, in_turn
from eclectus.engine.nominations import Nominations
from eclectus.engine.state import State
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import JobPlanner, Order, Policy, Refused, RefusedGang, Relieve, View
from eclectus.model.errors import PolicyError
from eclectus.model.objects import GangKey, Task, may_outrank

TASKS_MOST = 64  # refused tasks of a class that are shown in one step, so that the step stays short
CLASSES_MOST = 16  # classes in one step for which there may be victims, likewise


def _pool_by_pool(tasks: Sequence[Task]) -> Iterator[Task]:
    """The first task of each pool, then the second of each: a pool with many tasks hides no other."""
    by_pool: dict[str, list[Task]] = {}
    for task in tasks:
        by_pool.setdefault(task.pool, []).append(task)
    for rank in zip_longest(*by_pool.values()):
        yield from (task for task in rank if task is not None)


class RoomTrial:
    """Counts room as held while a policy looks for places for a gang."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._held: list[str] = []  # uids

    def hold(self, task: Task, row: int) -> None:
        """Count room on this row as held for a task for which none is held."""
        self._state.placed.set(task, self._state.cluster.names[row], self._state.now)
        self._held.append(task.uid)

    def end(self) -> None:
        """Count no such room as held any more."""
        while self._held:
            self._state.placed.remove(self._held.pop())


R = TypeVar("R", Refused, RefusedGang)


class Relief:
    """Asks about the classes that are due: Relieve policies, and Orders that reserve nodes."""

    def __init__(self, state: State, effects: Effects, nominations: Nominations) -> None:
        self._state = state
        self._effects = effects
        self._nominations = nominations

    def relieve(self) -> None:
        """Ask about the classes that are due: so many, and all for which no pod could be evicted."""
        state, asked = self._state, 0
        state.budgets.renew()
        for key in state.relief.take_due(state.now):
            profile, refused = key
            if isinstance(refused, GangKey):
                relieve = partial(self._relieve_gang, profile, refused)
            elif self._has_nobody_to_evict((profile, refused)) and not self._may_reclaim(profile):
                state.relief.ask_again(key, state.now)
                continue
            else:
                relieve = partial(self._relieve_class, (profile, refused))
            if asked == CLASSES_MOST or state.budgets.has_compared_enough:
                state.relief.add(key)
            else:
                asked += 1
                relieve()

    def reserve(self) -> None:
        """Ask about the classes that are due; those that are too many for one step stay due."""
        due = self._state.reserving.take_due(self._state.now)
        for key in due[CLASSES_MOST:]:
            self._state.reserving.add(key)
        for key in due[:CLASSES_MOST]:
            self._reserve(key)

    def _relieve_class(self, key: RefusedKey) -> None:
        state, policy = self._state, self._state.profiles[key[0]].relieve
        task_class = state.view.classes.current(*key[1])
        tasks = chain(state.class_queues.of_class(*key), state.node_queues.of_class(*key))
        waiting = self._without_room(task_class, (task for task in tasks if task.preempts))
        if not waiting:
            state.relief.discard(key)
            return
        shown = list(islice(_pool_by_pool(waiting), TASKS_MOST))
        state.counters.preemption_attempts += 1
        self._ask(Relieve, policy, policy.relieve, lambda: Refused(task_class, shown))
        nominated = sum(state.placed.is_nominated(task.uid) for task in shown)
        if not nominated:
            state.relief.ask_again(key, state.now, self._next_at(policy))
        elif nominated < len(
            waiting
        ):  # also of those that were shown: a policy may do only so much in a step
            state.relief.add(key)
        else:
            state.relief.helped(key)

    def _relieve_gang(self, profile: str, key: GangKey) -> None:
        """Let the policy make room for all pods of a gang that start together, or for none."""
        state, gang, policy = self._state, self._state.gangs.find(key), self._state.profiles[profile].relieve
        if gang is None or gang.is_complete or gang.problem or gang.has_room:
            state.relief.discard((profile, key))
            return
        next_at, members = inf, nsmallest(MEMBERS_MOST, gang.held.values(), key=in_turn)
        shown = [task for task in members if task.preempts]
        if len(shown) >= gang.needed and limit_together(state.pools, shown, gang.needed) is None:
            trial = RoomTrial(state)
            asked = RefusedGang(shown, gang.needed, trial)
            try:
                self._ask(Relieve, policy, policy.relieve_gang, lambda: asked)
            finally:
                trial.end()
            next_at = self._next_at(policy)
        held = len(self._nominations.of_gang(gang))
        if 0 < held < gang.needed:
            self._nominations.withdraw_gang(gang)
        if held >= gang.needed:
            state.relief.helped((profile, key))
        else:
            state.relief.ask_again((profile, key), state.now, next_at)

    def _next_at(self, policy: Relieve) -> float:
        """When the policy may do more for the tasks that it was asked about last, seconds."""
        at: float | None = self._state.guarded(policy, lambda: float(policy.next_at(self._state.view)))
        return inf if at is None else at

    def _reserve(self, key: RefusedKey) -> None:
        state = self._state
        order = cast(JobPlanner, state.profiles[key[0]].order)  # as its traits say
        task_class = state.view.classes.current(*key[1])
        waiting = self._without_room(task_class, state.class_queues.of_class(*key))
        if not waiting:
            state.reserving.discard(key)
            return

        def refused() -> Refused:
            """The first task of each group, of those for which no pods may be evicted."""
            first: dict[str, Task] = {}
            for task in waiting:
                if not state.may_evict_for(task):
                    first.setdefault(order.group(task), task)
            return Refused(task_class, list(first.values()))

        self._ask(Order, order, order.reserve_nodes, refused)
        state.reserving.ask_again(key, state.now)

    def _has_nobody_to_evict(self, key: RefusedKey) -> bool:
        """Whether no pod has a lower priority than any task of the class; of a class queue O(1)."""
        state = self._state
        in_queues = (task.priority for task in state.node_queues.of_class(*key))
        highest = max(state.class_queues.highest_priority(*key), max(in_queues, default=-inf))
        return highest > -inf and not may_outrank(highest, state.placed.lowest_priority)

    def _may_reclaim(self, profile: str) -> bool:
        return self._state.has_pools and self._state.profiles[profile].relieve.traits.reclaims

    def _without_room(self, task_class: TaskClass, tasks: Iterable[Task]) -> list[Task]:
        """Those for which no room is held, highest priority first; none where a node has room for them."""
        is_nominated, limit_on = self._state.placed.is_nominated, self._state.pools.limit_on
        waiting: Iterable[Task] = ()
        if not task_class.fits_now_count:
            without = (each for each in tasks if not is_nominated(each.uid))
            waiting = (
                each for each in without if limit_on(each) is None
            )  # no room made helps beyond a limit
        return sorted(waiting, key=lambda task: -task.priority)

    def _ask(
        self,
        role: type,
        policy: Policy,
        answers: Callable[[View, R], Iterator[object]],
        refused: Callable[[], R],
    ) -> None:
        """Put in force what the policy answers about the refused tasks, up to its first error."""
        try:
            asked = refused()
            for action in answers(self._state.view, asked):
                self._effects.put_in_force(role, asked, action)
        except Exception as error:  # a plug-in's defect must not stop the others
            message = str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}"
            self._state.fault(policy, message)
