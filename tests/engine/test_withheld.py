"""An Order may withhold tasks: they say why, cost nothing, and are asked about again when it matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan

import pytest

from builders import make_engine, make_task
from eclectus.cluster.changelog import ChangeLog
from eclectus.framework import Order, OrderTraits, Reason, View, Wait
from eclectus.model.objects import Task
from eclectus.policies.place.allocation import LeastAllocated
from worlds import World, numbered, small_world

WHY = Reason("not before its time")


@dataclass(eq=False)
class Withholding(Order):
    """Withholds what `answer` says; groups are paths."""

    answer: Callable[[View, str, Task], Wait | None]
    traits = OrderTraits(withholds=True, ranks_by_path=True)

    def __post_init__(self) -> None:
        self.asked = 0
        self.log = ChangeLog[str](100)

    def group(self, task: Task) -> str:
        return f"{task.job}/{task.stage}"

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        return (task.created, serial)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...] | Wait:
        self.asked += 1
        return self.answer(view, group, head) or (head.created,)

    def changes(self, view: View) -> ChangeLog[str]:
        return self.log


def until(seconds: float) -> Callable[[View, str, Task], Wait | None]:
    return lambda view, group, head: Wait(WHY, seconds) if view.now < seconds else None


def world_of(answer: Callable[[View, str, Task], Wait | None]) -> tuple[World, Withholding]:
    order = Withholding(answer)
    return small_world(make_engine(LeastAllocated(), order=order, wait_limit=100.0)), order


def test_a_withheld_task_is_placed_at_its_time_though_nothing_happens() -> None:
    world, _ = world_of(until(7.0))
    world.add(make_task("a"))
    assert world.placed() == {}
    world.sleep(6.9)
    assert world.placed() == {}
    world.sleep(0.1)
    assert world.placed() == {"a": "n0"}


def test_it_says_why_it_waits_beside_room() -> None:
    world, _ = world_of(until(7.0))
    world.add(make_task("a"))
    world.sleep(2.0)
    assert world.messages("a") == [("WaitingForNode", WHY.message)]


def test_it_costs_no_question_while_nothing_changes() -> None:
    world, order = world_of(until(50.0))
    world.add(*numbered(3, job="j", stage="s"))
    order.asked = 0
    world.add(make_task("other", cpu=9, profile="nobody"))
    world.sleep(20.0)
    assert order.asked == 0


def test_a_recorded_change_of_a_prefix_asks_again_about_all_groups_below_it() -> None:
    open_jobs = set[str]()
    world, order = world_of(lambda view, group, head: None if head.job in open_jobs else Wait(WHY, inf))
    world.add(
        make_task("a", job="j", stage="s"),
        make_task("b", job="j", stage="t", cpu=2),
        make_task("c", job="k", stage="s"),
    )
    open_jobs.add("j")
    world.step()
    assert world.placed() == {}
    order.log.record("j")
    world.step()
    world.settle()
    assert set(world.placed()) == {"a", "b"}


def test_of_one_class_some_groups_may_be_withheld() -> None:
    world, _ = world_of(
        lambda view, group, head: Wait(WHY, 9.0) if head.job == "j" and view.now < 9 else None
    )
    world.add(make_task("a", job="j"), make_task("b", job="k"))
    assert set(world.placed()) == {"b"}
    world.sleep(9.0)
    assert set(world.placed()) == {"a", "b"}


def test_an_answer_changes_the_rank_of_other_groups_in_the_same_cycle() -> None:
    """Of two stages of one job the second is withheld as soon as the first has a task on a node."""
    placed = list[str]()

    class Exclusive(Withholding):
        traits = OrderTraits(withholds=True, ranks_by_path=True, needs=frozenset({"binds"}))

        def placed(self, view: View, task: Task, row: int) -> None:
            placed.append(task.name)
            self.log.record(task.job)

    order = Exclusive(
        lambda view, group, head: Wait(WHY, inf) if placed and head.name not in placed else None
    )
    world = small_world(make_engine(LeastAllocated(), order=order))
    world.add(make_task("a", job="j", stage="s"), make_task("b", job="j", stage="t", cpu=2, created=1))
    assert placed == ["a"]


def test_the_wait_limit_holds_for_withheld_tasks() -> None:
    world, _ = world_of(lambda view, group, head: Wait(WHY, inf))
    world.add(make_task("a"))
    world.sleep(100.0)
    assert world.placed() == {"a": "n0"}


def test_it_may_be_deleted_changed_and_joined_while_it_is_withheld() -> None:
    world, _ = world_of(until(5.0))
    world.add(make_task("a"), make_task("b"))
    world.delete("a")
    world.put(make_task("b", priority=3))
    world.add(make_task("c"))
    world.sleep(5.0)
    assert set(world.placed()) == {"b", "c"}


@pytest.mark.parametrize(
    "answer",
    [Wait(WHY, 0.0), Wait(WHY, -1.0), Wait(WHY, nan), Wait(Reason(), inf)],
    ids=["now", "past", "nan", "no reason"],
)
def test_an_answer_that_would_be_a_busy_loop_or_says_no_reason_is_a_fault(answer: Wait) -> None:
    world, _ = world_of(lambda view, group, head: answer)
    world.add(make_task("a"))
    assert world.faults
    assert world.placed() == {}


def test_an_order_that_withholds_against_its_traits_is_a_fault() -> None:
    class Silent(Withholding):
        traits = OrderTraits()

    world = small_world(make_engine(LeastAllocated(), order=Silent(until(5.0))))
    world.add(make_task("a"), make_task("b", cpu=2))
    assert "traits do not say" in world.faults[0].message


def test_times_that_follow_each_other_closely_make_no_busy_loop() -> None:
    world, order = world_of(lambda view, group, head: Wait(WHY, view.now + 1e-9))
    world.add(make_task("a"))
    world.sleep(1.0)
    assert order.asked < 500
