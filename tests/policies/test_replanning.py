"""The cost of a cycle of re-planning depends on what it places, not on how many tasks wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Action, Defer, PendingTasks, View
from eclectus.model.events import TaskGone
from eclectus.model.objects import Task
from eclectus.policies.rosella import Rosella, replan
from queueing import simulate
from worlds import World, numbered


class Counting(Rosella):
    """Counts its deferrals."""

    deferrals = 0

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for action in super().place(view, pending):
            self.deferrals += isinstance(action, Defer)
            yield action


def crowd(tasks: list[Task], fast: float, slow: float, room: int = 1) -> tuple[World, Counting]:
    """All tasks arrive at once, at a fast node of 40 slots and a slow one with `room` slots."""
    policy = Counting(theta=4)
    engine = make_engine(policy, ExactSpeeds({"fast": fast, "slow": slow}, otherwise=fast))
    world = World(engine, make_node("fast", cpu=40), make_node("slow", cpu=room))
    world.add(*tasks)
    return world, policy


def test_a_cycle_makes_no_more_deferrals_if_ten_times_as_many_tasks_wait() -> None:
    deferrals = []
    for waiting in (100, 1000):
        world, policy = crowd(numbered(40 + waiting), fast=1.0, slow=0.001)
        before = policy.deferrals
        world.end("t0")
        world.step(TaskGone("unknown"))
        deferrals.append(policy.deferrals - before)
        assert not any(node == "slow" for node in world.placed().values())
    assert deferrals == [2 * replan.DEFERRED_PER_CLASS] * 2  # when the task ended, and once more


def test_the_task_behind_those_worth_waiting_gets_the_slow_node() -> None:
    """(86.8 - 1) s x 40 tasks/s / 4 - 1, rounded up, may wait: 857, and the task behind them runs there."""
    world, _ = crowd(numbered(40 + 862), fast=1.0, slow=1.25**-20)
    assert [name for name, node in world.placed().items() if node == "slow"] == ["t897"]


def test_it_decides_as_if_all_tasks_were_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one class of tasks; every response time of the run is the same."""
    found = []
    for most in (1, 10**9):
        monkeypatch.setattr(replan, "DEFERRED_PER_CLASS", most)
        found.append(simulate(Rosella(theta=4), load=0.9, slots=1, tasks=250, seed=2))
    assert found[0] == found[1]


def test_when_the_first_task_has_waited_as_long_as_allowed_none_behind_it_waits() -> None:
    world, _ = crowd(numbered(40 + 30), fast=1.0, slow=1.25**-18, room=60)  # 55.5 s a task
    world.sleep(54)
    assert set(world.placed().values()) == {"fast"}
    world.sleep(3)
    assert list(world.placed().values()).count("slow") == 30


def test_a_skipped_task_has_the_same_reason_as_a_deferred_one() -> None:
    world, _ = crowd(numbered(40 + 100), fast=1.0, slow=0.001)
    world.sleep(60)
    reasons = {name: reason for name in ("t40", "t139") for reason, _ in world.messages(name)}
    assert reasons["t139"] == reasons["t40"] == "WaitingForNode"


def test_no_room_is_held_for_a_deferred_task() -> None:
    """A task of two cores waits for the fast node, which has one free; a task of one core takes that."""
    engine = make_engine(Rosella(theta=4), ExactSpeeds({"fast": 1.0, "slow": 0.01}))
    world = World(engine, make_node("fast", cpu=4), make_node("slow", cpu=4))
    world.add(*numbered(3))
    world.add(make_task("large", cpu=2))
    assert (world.placed().get("large"), set(world.placed().values())) == (None, {"fast"})
    world.add(make_task("small"))
    assert world.node_of("small") == "fast"
    assert world.faults == []
