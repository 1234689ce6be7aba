"""What is said of a pod that waits to be placed together with others."""

from __future__ import annotations

import pytest

from builders import make_engine
from eclectus.cli.explain.explained_text import pod_lines
from eclectus.explain.pod import explain_pod
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve.preemption import Preemption
from gangs import group, members
from worlds import World, small_world


def explained(world: World, name: str = "g0"):
    return explain_pod(world.engine, "default", name, world.now)


@pytest.fixture
def world() -> World:
    return small_world(make_engine(LeastAllocated(), relieve=Preemption()), nodes=2, cpu=2)


def test_it_names_the_group_and_what_it_lacks(world: World) -> None:
    world.add(*members(count=1))
    found = explained(world)
    assert (found.state, found.summary) == ("gang", "waiting for PodGroup default/g, which does not exist")
    world.step(group(minimum=3))
    assert explained(world).summary == "PodGroup default/g has 1 of the 3 pods that start together"
    assert "waits to be placed together with its pod group" in " ".join(pod_lines(explained(world)))


def test_it_says_how_many_have_room_and_when_the_gang_is_tried_again(world: World) -> None:
    world.step(group(minimum=5))
    world.add(*members(count=5))
    found = explained(world)
    assert found.waiting is not None
    assert found.waiting.next_check == 1.0
    assert found.summary.startswith("PodGroup default/g: room for 4 of the 5 pods that start together")


def test_nobody_is_evicted_for_a_part_of_a_gang(world: World) -> None:
    world.step(group(minimum=2))
    world.add(*members(count=2, cpu=3, priority=5))
    preemption = explained(world).preemption
    assert preemption is not None
    assert preemption.state == "gangIncomplete"


def test_to_explain_changes_nothing(world: World) -> None:
    world.step(group(minimum=2))
    world.add(*members(count=2, cpu=3))
    before = len(world.engine._state.view.classes)
    explained(world, "g1")
    assert len(world.engine._state.view.classes) == before
