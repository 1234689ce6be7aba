"""A policy can set no field of its view, and nobody changes a view that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builders import make_engine, make_task
from eclectus.framework import Action, PendingTasks, View
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.sim.world.dispatchers import StaleView
from worlds import small_world


class Keeping(LeastAllocated):
    """Keeps every view that it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.views: list[View] = []

    def place(self, view: View, pending: Iterator[Any]) -> Iterator[Action]:
        self.views.append(view)
        yield from super().place(view, pending)


class Setting(LeastAllocated):
    """Sets a field of its view before it answers."""

    def __init__(self, field: str) -> None:
        super().__init__()
        self.field = field

    def place(self, view: View, pending: Iterator[Any]) -> Iterator[Action]:
        for task in pending:
            setattr(view, self.field, None)
            yield from super().place(view, iter([task]))


@pytest.mark.parametrize("stale", [False, True], ids=["fresh", "stale"])
@pytest.mark.parametrize("field", [*View.__struct_fields__, "speeds", "new"])
def test_a_policy_that_sets_a_field_of_its_view_is_a_fault(field: str, stale: bool) -> None:
    policy = Setting(field)
    world = small_world(make_engine(StaleView(policy, 10.0, corrects=True) if stale else policy))
    before = world.engine._state.view
    world.add(make_task("a"))
    assert [fault.message.split(":")[0] for fault in world.faults] == ["AttributeError"]
    assert world.node_of("a") == ""
    after = world.engine._state.view
    fields = [each for each in View.__struct_fields__ if each != "now"]
    assert [getattr(before, each) for each in fields] == [getattr(after, each) for each in fields]


@pytest.mark.parametrize("stale", [False, True], ids=["fresh", "stale"])
def test_a_view_keeps_the_time_of_its_step(stale: bool) -> None:
    policy = Keeping()
    world = small_world(make_engine(StaleView(policy, 10.0, corrects=True) if stale else policy))
    began = world.now
    world.add(make_task("a"))
    world.sleep(3)
    world.add(make_task("b"))
    assert [view.now - began for view in policy.views] == [0.0, 3.0]


def test_what_an_action_changes_is_seen_by_who_holds_the_view() -> None:
    seen: list[int] = []

    class Looking(LeastAllocated):
        def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
            for action in super().place(view, pending):
                yield action
                seen.append(sum(1 for row in view.cluster.rows.values() for _ in view.placed.on_row(row)))

    small_world(make_engine(Looking())).add(make_task("a"), make_task("b"))
    assert seen == [1, 2]
