"""Re-planning costs a round what it places and a few plans, however many tasks wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builders import ExactSpeeds, make_engine, make_node
from eclectus.framework import Action, Defer, PendingTasks, View
from eclectus.model.objects import Task
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.place import replan
from queueing import simulate
from worlds import World, numbered


class Counting(Rosella):
    """Counts the plans it makes."""

    plans = 0

    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        for action in super().place(view, turns):
            self.plans += isinstance(action, Defer)
            yield action


def crowd(tasks: list[Task], fast: float, slow: float, room: int = 1) -> tuple[World, Counting]:
    """All come at once, to a fast node of 40 slots and a slow one with room for so many."""
    policy = Counting(theta=4)
    engine = make_engine(policy, ExactSpeeds({"fast": fast, "slow": slow}, otherwise=fast))
    world = World(engine, make_node("fast", cpu=40), make_node("slow", cpu=room))
    world.add(*tasks)
    return world, policy


def test_a_round_plans_no_more_though_ten_times_as_many_wait() -> None:
    plans = []
    for waiting in (100, 1000):
        world, policy = crowd(numbered(40 + waiting), fast=1.0, slow=0.001)
        before = policy.plans
        world.step(after=1.0)
        plans.append(policy.plans - before)
        assert not any(node == "slow" for node in world.placed().values())
    assert plans == [replan.PLANNED_MOST] * 2


def test_a_queue_longer_than_worth_waiting_for_gives_the_slow_node_its_task() -> None:
    """(86.8 - 1) s x 40 tasks/s / 4 - 1, rounded up, may wait: 857, and the one behind them runs there."""
    world, _ = crowd(numbered(40 + 862), fast=1.0, slow=1.25**-20)
    assert [name for name, node in world.placed().items() if node == "slow"] == ["t897"]


def test_it_decides_as_if_all_were_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one kind of work; every response time of the run is the same."""
    found = []
    for most in (1, 10**9):
        monkeypatch.setattr(replan, "PLANNED_MOST", most)
        found.append(simulate(Rosella(theta=4), load=0.9, slots=1, tasks=250, seed=2))
    assert found[0] == found[1]


def test_when_the_first_in_line_has_waited_in_vain_nobody_behind_it_waits() -> None:
    world, _ = crowd(numbered(40 + 30), fast=1.0, slow=1.25**-18, room=60)  # 55.5 s a task
    world.sleep(54)
    assert set(world.placed().values()) == {"fast"}
    world.sleep(3)
    assert list(world.placed().values()).count("slow") == 30


def test_what_was_passed_over_is_told_why_it_waits() -> None:
    world, _ = crowd(numbered(40 + 100), fast=1.0, slow=0.001)
    world.sleep(60)
    told = {name: reason for name in ("t40", "t139") for reason, _ in world.messages(name)}
    assert told["t139"] == told["t40"] == "WaitingForNode"
