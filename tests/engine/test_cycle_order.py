"""The order of groups follows what changes: it is that of ranks asked anew, and few ranks are asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builders import make_engine, make_node
from eclectus.engine.engine import Engine
from eclectus.framework import Action, Bind, Place, Unschedulable, View
from eclectus.model.objects import Task
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.tetris import Tetris
from job_stories import ORDERS, JobStory
from worlds import World, numbered


class Forgetful(Engine):
    """Keeps no ranks from one step to the next."""

    def step(self, events, now):  # type: ignore[no-untyped-def]
        for pending in self._state.class_queues:
            pending._ranks = pending._ages = None
            pending._heaps = ()
        return super().step(events, now)


@pytest.mark.parametrize("place", [LeastAllocated, Tetris])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(3))
def test_kept_ranks_give_the_same_order_as_ranks_asked_anew(
    place: type[Place], order: str, seed: int
) -> None:
    kept = make_engine(place(), order=ORDERS[order]())
    forgetful = Forgetful([*kept._state.profiles.values()], kept._state.learn)
    assert JobStory(kept, seed).run(80).commands == JobStory(forgetful, seed).run(80).commands


class CountedShares(DominantShare):
    """Counts how often it is asked for a rank."""

    asked = 0

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        self.asked += 1
        return super().rank(view, group, head)


class CountingPlace(LeastAllocated):
    """Counts the tasks that it is offered."""

    offered = 0

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        for task in pending:
            self.offered += 1
            has_room = view.task_class(task).fits_now_count
            yield (
                Bind(task, int(view.task_class(task).fits_now_rows[0])) if has_room else Unschedulable(task)
            )


def jobs_that_wait(count: int) -> tuple[World, CountedShares, CountingPlace]:
    """One pod runs, and so many jobs of the same class wait."""
    order, place = CountedShares(by="job"), CountingPlace()
    world = World(make_engine(place, order=order), make_node("n", cpu=1))
    world.add(*(numbered(1, "first")), *(task for at in range(count) for task in job(at)))
    return world, order, place


def job(at: int) -> list[Task]:
    return numbered(1, f"t{at}.", job=f"j{at}")


def test_a_refused_class_is_refused_in_all_groups_at_once() -> None:
    world, _, place = jobs_that_wait(50)
    assert place.offered == 2
    assert world.engine.queue_counts().unschedulable == 50
    world.add(*job(51))
    assert place.offered == 2


@pytest.mark.parametrize("waiting", [20, 200])
def test_an_end_and_a_bind_ask_few_ranks_and_offer_two_tasks_whatever_waits(waiting: int) -> None:
    world, order, place = jobs_that_wait(waiting)
    world.end("first0")
    order.asked = place.offered = 0
    (name,) = world.placed()
    world.end(name)
    assert place.offered == 2  # one was placed, and the next had no room
    assert order.asked <= 8
    assert len(world.placed()) == 1


def test_a_change_of_the_cluster_s_totals_ranks_all_groups_again() -> None:
    world, order, _ = jobs_that_wait(20)
    world.end("first0")
    order.asked = 0
    world.put_node(make_node("another", cpu=1))
    assert order.asked >= 19
