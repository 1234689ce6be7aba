"""An engine, the model of its API server, and the time, which steps advance."""

from __future__ import annotations

from collections.abc import Callable, Collection

from builders import make_engine, make_profile
from eclectus.engine.engine import Engine
from eclectus.framework import Learn, Order, Place, Relieve
from eclectus.model.events import Event, Resumed
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.shared import Chain
from engine_invariants import (
    binds_keep_the_limits,
    gangs_are_victims_whole_or_keep_their_quorum,
    gangs_take_room_back_as_a_whole,
    no_pod_is_lost,
)
from model_server import FOREIGN, ModelServer


def reclaim_first() -> Chain:
    """Pools take room back, then priorities make room."""
    return Chain((Reclaim(), Preemption()))


LIMIT_SECONDS = make_profile().settings.wait_limit or 0.0
STEPS_MOST = 1_000  # until nothing happens any more; engines that come to rest need a hundred or so,
STEPS_A_POD = 10  # and many pods more


class DrivenEngine:
    """Call `set_up`, then `start`."""

    policy: Callable[[], Place] = Rosella
    learn: Callable[[], Learn] = RosellaLearn
    relieve: Callable[[], Relieve] = Preemption
    order: Callable[[], Order] = FifoOrder

    def set_up(self) -> None:
        """An empty cluster at time 0."""
        self.server, self.now, self.paused = ModelServer(), 0.0, False

    def start(self) -> None:
        """A new engine, which learns of the cluster by a list."""
        self.engine: Engine = self.make()
        self.gone: list[Task] = []
        self.server.delivered = type(self.server.delivered)()
        self.paused = False
        self.step([*self.server.relist(), Resumed()])

    def make(self) -> Engine:
        """An engine of this way to place, learn, evict and order."""
        roles = {"relieve": self.relieve(), "order": self.order()}
        return make_engine(self.policy(), self.learn(), seed=7, **roles)

    def step(self, events: list[Event], after: float = 0.0) -> None:
        """The engine receives events, so many seconds after the step before."""
        self.now += after
        known = self.server.delivered
        for event in events:
            before = dict(known.tasks)
            known.apply(event)
            self.gone += [before[uid] for uid in before.keys() - known.tasks.keys()]
        self.engine_only(events)

    def engine_only(self, events: list[Event]) -> None:
        """The engine receives events that change nothing in the cluster."""
        commands = self.engine.step(events, self.now)
        binds_keep_the_limits(self.engine, commands)
        gangs_are_victims_whole_or_keep_their_quorum(self.engine, commands)
        gangs_take_room_back_as_a_whole(self.engine, commands)
        self.server.accept(commands, self.now)

    def run_until_idle(self) -> None:
        """Deliver and answer everything, until nothing has happened for longer than a pod may wait."""
        steps, idle_steps, idle_since = 0, 0, self.now
        while (
            idle_steps < 12 or self.now < idle_since + LIMIT_SECONDS or self.server.binds_in_flight
        ):  # the limit of waits may just have placed a pod
            steps += 1
            most = STEPS_MOST + STEPS_A_POD * len(self.server.tasks)
            assert steps < most, "it never comes to rest"
            self.step([*self.server.resolve_lost_binds(), *self.server.deliver(999, 999)])
            while self.server.binds_in_flight:
                self.step([self.server.answer(0)])
            while self.server.reliefs_in_flight:
                self.step(self.server.write_relief(refused=False))
            for uid in [uid for uid, task in self.server.tasks.items() if task.deleting]:
                self.server.drop_task(uid)  # in the end every pod that is terminating has ended
            watches = (self.server.task_watch, self.server.node_watch, self.server.job_watch)
            idle_steps = 0 if any(watches) else idle_steps + 1
            if idle_steps:
                at = self.engine.next_step_at()
                self.step([], max(0.0, min(40.0, at - self.now)) if at is not None else 40.0)
            else:
                idle_since = self.now
        self.check_that_no_pod_is_lost()
        unused = self.server.delivered.nominated.keys() - self.reserved_for()
        assert not unused, f"room is held that nobody will use: {unused}"

    def reserved_for(self) -> Collection[str]:
        """The uids of the pods for which an Order keeps nodes free."""
        return ()

    def end_all(self) -> None:
        """Let every pod run and end; none may be left that could run."""
        self.paused = False
        self.step([Resumed()])
        self.run_until_idle()
        for task in [task for task in self.server.tasks.values() if task.profile == FOREIGN]:
            if task.nominated and not task.node:
                self.server.drop_task(task.uid)
        self.run_until_idle()
        for _ in range(len(self.server.tasks)):  # each iteration ends one of them
            running = [
                uid for uid, task in self.server.tasks.items() if task.node and not task.spec.long_running
            ]
            if not running:
                break
            self.server.end_task(running[0], self.now, 5.0)
            self.run_until_idle()
        self.check_that_no_pod_is_lost()

    def check_that_no_pod_is_lost(self) -> None:
        """No pod waits that could run, with the evictions that the engine may ask for.

        A pod in a node queue was not refused, so nobody is evicted for it.
        """
        state = self.engine._state

        def may_evict(task: Task) -> bool:
            evicts = isinstance(state.profiles[task.profile].relieve, Preemption | Chain)
            return evicts and task.preempts and state.places.of(task.uid) != "nodeQueue"

        limited = {
            uid
            for uid, task in state.pending.items()
            if task.spec.quotas or state.pools.limit_on(task) is not None
        }

        def pool_of(uid: str) -> str:
            task = state.pending.get(uid) or state.placed.task(uid)
            return "" if task is None else task.pool

        no_pod_is_lost(self.server, may_evict, limited, pool_of)
