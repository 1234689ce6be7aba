"""Between two turns of the Lease's renewal the loop does a bounded amount of work, however much waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from builders import make_engine, make_node, make_task
from eclectus.engine import scheduling_cycle
from eclectus.live import inbox as inboxes
from eclectus.live.inbox import Inbox
from eclectus.live.loop import Loop
from eclectus.model.commands import Bind, Command
from eclectus.model.events import BindConfirmed, Event, NodeSeen, Resumed, TaskSeen
from eclectus.policies.place.allocation import LeastAllocated

BATCH, CLASSES, TASKS = 50, 4, 8
PODS, SHAPES = 600, 90


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inboxes, "MAX_BATCH", BATCH)
    monkeypatch.setattr(scheduling_cycle, "CLASSES_MOST", CLASSES)
    monkeypatch.setattr(scheduling_cycle, "TASKS_MOST", TASKS)


class Counted:
    """An engine; counts the events and the binds since `turn`."""

    def __init__(self) -> None:
        self._engine = make_engine(LeastAllocated())
        self.events = self.binds = self.bound = 0
        self.turns: list[tuple[int, int]] = []

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        commands = self._engine.step(events, now)
        made = sum(isinstance(each, Bind) for each in commands)
        self.events, self.binds, self.bound = self.events + len(events), self.binds + made, self.bound + made
        return commands

    def next_step_at(self) -> float | None:
        return self._engine.next_step_at()

    @property
    def waits(self) -> bool:
        return self._engine.waits

    def turn(self) -> None:
        """The Lease is renewed."""
        self.turns.append((self.events, self.binds))
        self.events = self.binds = 0


class Server:
    """An outbox that never makes the loop wait; every bind is confirmed at once."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def accept(self, commands: Sequence[Command]) -> None:
        for each in commands:
            if isinstance(each, Bind):
                self._inbox.put(BindConfirmed(each.uid, each.node))

    async def wait_for_room(self) -> None:
        pass


def first_list() -> list[Event]:
    """Nodes, bound pods and pending pods of many shapes; then this process leads."""
    nodes: list[Event] = [NodeSeen(make_node(f"n{at}", cpu=99, memory=9999, pods=999)) for at in range(5)]
    bound = [make_task(f"b{at}", node=f"n{at % 5}", cpu=0.01) for at in range(PODS)]
    pending = [make_task(f"p{at}", memory=1 + at % SHAPES, cpu=0.01) for at in range(PODS)]
    return [*nodes, *map(TaskSeen, bound), *map(TaskSeen, pending), Resumed()]


def test_no_turn_of_the_renewal_waits_for_more_than_a_batch_and_a_slice() -> None:
    engine = Counted()

    async def work() -> None:
        inbox = Inbox()
        outbox: Any = Server(inbox)
        loop = Loop(engine, inbox, outbox, lambda: 0.0, observe_seconds=lambda seconds: None)
        for event in first_list():
            inbox.put(event)
        running = asyncio.create_task(loop.run())
        async with asyncio.timeout(60):
            while engine.bound < PODS:
                await asyncio.sleep(0)
                engine.turn()
        loop.stop()
        await running

    asyncio.run(work())
    assert max(events for events, _ in engine.turns) <= BATCH
    assert max(binds for _, binds in engine.turns) <= TASKS
    assert sum(1 for events, _ in engine.turns if events) >= 2 * PODS / BATCH
    assert sum(1 for _, binds in engine.turns if binds) >= PODS / TASKS
