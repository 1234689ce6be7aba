"""A scheduler that is killed again and again while pools take room back: nobody is evicted for nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_node
from driven_engine import DrivenEngine
from eclectus.framework import Relieve
from eclectus.model.commands import Evict, Nominate
from eclectus.model.events import Event, PoolSeen, Resumed
from eclectus.model.objects import Gang, Task
from eclectus.model.pool import Pool, PoolPreemption
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.reclaim import Reclaim
from gangs import key
from pool_worlds import cores, mine, pods

AT_ONCE = PoolPreemption(min_share_seconds=0.0)
POOLS = (mine("a", min_share=cores(6), max_share=cores(6), preemption=AT_ONCE), mine("b"))


def as_written(commands: list[Nominate | Evict]) -> list[Nominate | Evict]:
    """As the evictor writes what one step asks of each pod: the last nomination, then the evictions."""
    of_pods: dict[str, dict[str, Nominate | Evict]] = {}
    for command in commands:
        is_nomination = isinstance(command, Nominate)
        of_pod = of_pods.setdefault(command.uid if is_nomination else command.preemptor, {})
        of_pod["" if is_nomination else command.uid] = command
    return [each for of_pod in of_pods.values() for each in of_pod.values()]


class Killed(DrivenEngine):
    """Three nodes of four cores, full of b's pods; four pods of a want two each, of which three may start."""

    policy = staticmethod(BestFit)
    order = staticmethod(FairPools)

    @staticmethod
    def relieve() -> Relieve:
        return Reclaim()

    def __init__(self, *pools: Pool, together: int = 0) -> None:
        """`together`: instead, so many pods of a start together, and no others wait."""
        self.set_up()
        self.serial, self.pools = 0, {pool.name: pool for pool in pools or POOLS}
        for at in range(3):
            self.server.put_node(make_node(f"n{at}", cpu=4))
        self.start()
        self.create(*pods("b", 12))
        self.settle()
        self.step([self.server.put_gang(Gang(key(), together))] if together else [])
        self.create(*pods("a", together, cpu=2, gang=key()) if together else pods("a", 4, cpu=2))

    def create(self, *tasks: Task) -> None:
        for task in tasks:
            self.server.put_task(task)

    def start(self) -> None:
        """A new engine, which learns of the cluster and its Pools by lists."""
        self.engine = self.make()
        self.gone, self.paused = [], False
        self.server.delivered = type(self.server.delivered)()
        self.step([*self.server.relist(), *map(PoolSeen, self.pools.values()), Resumed()])

    def step(self, events: list[Event], after: float = 0.0) -> None:
        in_flight = self.server.reliefs_in_flight
        before = in_flight.copy()
        super().step(events, after)
        in_flight[:] = [*before, *as_written(in_flight[len(before) :])]
        held = sum(dict(task.spec.requests)["cpu"] for task in self.of("a") if task.node)
        assert held <= 6000, "beyond the maximum of a"

    def engine_only(self, events: list[Event]) -> None:
        """What is recorded of Pools is in their status at once."""
        super().engine_only(events)
        for record in self.engine._state.pool_records._written.items():
            name, (_, written) = record
            since = {
                "below_min_since": written.below_min_since,
                "below_share_since": written.below_share_since,
            }
            self.pools[name] = replace(self.pools[name], **since)

    def of(self, pool: str) -> list[Task]:
        return [task for task in self.server.tasks.values() if task.asked_pool == pool]

    def settle(self) -> None:
        """Deliver and answer all, but write neither nominations nor evictions; then a second passes."""
        self.step(self.server.deliver(999, 999))
        while self.server.binds_in_flight:
            self.step([self.server.answer(0)])
        self.step(self.server.deliver(999, 999), 1.5)

    def advance(self, until: float) -> None:
        """Deliver all, when the engine is to be asked next or at this time."""
        at = self.engine.next_step_at()
        due = until if at is None else min(at, until)
        self.step(self.server.deliver(999, 999), max(due - self.now, 0.0))

    def write(self, count: int) -> None:
        """So many nominations and evictions reach the store."""
        for _ in range(min(count, len(self.server.reliefs_in_flight))):
            self.step(self.server.write_relief(refused=False))

    def end_victims(self, count: int) -> None:
        """So many pods that are terminating have ended, and controllers create them again."""
        going = [task for task in self.of("b") if task.deleting]
        for task in going[:count]:
            self.server.drop_task(task.uid)
            self.serial += 1
            again = f"{task.name}-{self.serial}"
            fresh = {"node": "", "deleting": False, "reported": "", "nominated": ""}
            self.create(replace(task, uid=f"uid-{again}", name=again, created=100.0 + self.serial, **fresh))

    def kill(self) -> None:
        """The process dies: what it has not written is lost; binds have reached the store."""
        while self.server.binds_in_flight:
            self.server.lose(0, before=False)
        self.server.lost_binds, self.server.reliefs_in_flight = [], []
        self.start()


def live(world: Killed, turns: list[tuple[int, int]]) -> int:
    """In each turn the process dies after so many writes and ends of victims; the number of pods evicted."""
    for writes, ends in turns:
        world.settle()
        world.write(writes)
        world.end_victims(ends)
        world.kill()
    for _ in range(12):
        world.settle()
        world.write(99)
        world.end_victims(99)
    return world.serial


@pytest.mark.parametrize("writes", range(4))
@pytest.mark.parametrize("times", [1, 5])
def test_killed_after_so_many_writes_it_evicts_no_more_than_are_needed(writes: int, times: int) -> None:
    world = Killed()
    assert live(world, [(writes, 99)] * times) == 6
    assert sum(bool(task.node) for task in world.of("a")) == 3
    assert sum(bool(task.node) for task in world.of("b")) == 6


@pytest.mark.parametrize("writes", range(9))
@pytest.mark.parametrize("times", [1, 5])
def test_nor_for_a_gang(writes: int, times: int) -> None:
    world = Killed(together=3)
    assert live(world, [(writes, 99)] * times) == 6
    assert sum(bool(task.node) for task in world.of("a")) == 3
    assert sum(bool(task.node) for task in world.of("b")) == 6


def test_one_that_has_waited_for_its_time_goes_on_at_once() -> None:
    """Its clock is in the Pool's status, and goes on until its pods have started."""
    world = Killed(replace(POOLS[0], preemption=PoolPreemption(min_share_seconds=60.0)), POOLS[1])
    while not world.server.reliefs_in_flight:
        world.settle()
    assert world.now >= 60.0
    world.write(2)
    world.settle()
    world.end_victims(99)
    world.kill()
    assert live(world, []) == 6
    assert sum(bool(task.node) for task in world.of("a")) == 3


def test_one_that_starts_at_half_of_the_time_keeps_the_clock() -> None:
    """Of 60 s; without what the status says it would begin again at 30 s."""
    world = Killed(replace(POOLS[0], preemption=PoolPreemption(min_share_seconds=60.0)), POOLS[1])
    began = world.now
    world.step(world.server.deliver(999, 999))
    while world.now < began + 30.0:
        world.advance(began + 30.0)
    world.kill()
    while not world.server.reliefs_in_flight:
        world.advance(began + 99.0)
    assert abs(world.now - began - 60.0) <= 1.0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=8))
def test_killed_at_any_time_it_evicts_no_more_than_are_needed(turns: list[tuple[int, int]]) -> None:
    world = Killed()
    assert live(world, turns) == 6
    assert sum(bool(task.node) for task in world.of("a")) == 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=8))
def test_nor_for_a_gang_at_any_time(turns: list[tuple[int, int]]) -> None:
    world = Killed(together=3)
    assert live(world, turns) == 6
    assert sum(bool(task.node) for task in world.of("a")) == 3
