"""Where a policy would put a pod: asked on the state of now, without a trace in the policy that decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.config.what_if import read_question
from eclectus.engine.engine import Engine
from eclectus.explain.what_if import DRAWS, NODE_QUEUES, Question, what_if_explanation
from eclectus.framework import Action, PendingTasks, Place, Reason, Unschedulable, View
from eclectus.model.events import Paused, TaskSeen
from eclectus.model.explanation import PolicyAnswer
from eclectus.policies import table
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.place.allocation import LeastAllocated, MostAllocated
from eclectus.policies.place.round_robin import RoundRobin
from eclectus.policies.place.tetris import Tetris
from eclectus.policies.rosella import Rosella
from worlds import World

NODES = (make_node("small", cpu=2), make_node("large", cpu=8), make_node("full", cpu=1))


def waiting(place: Place | None = None, engine: Engine | None = None) -> World:
    """Three nodes, of which one is full, and `a`, which is not placed because the engine does not lead."""
    world = World(engine or make_engine(place), *NODES)
    world.step(TaskSeen(make_task("x", node="full")), TaskSeen(make_task("y", node="small")), Paused())
    world.step(TaskSeen(make_task("a")))
    return world


def answer(world: World, name: str, policy: Place | None = None) -> PolicyAnswer:
    question = read_question([], name, "default") if policy is None else Question((), (), policy)
    return world.engine.read(what_if_explanation, ("default", "a"), question, world.now).placement


def test_every_policy_says_where_or_why_not() -> None:
    world = waiting()
    for name in table.PLACE:
        found = answer(world, name)
        assert found.policy == f"place/{name}"
        if found.answered == "places":
            assert found.node in ("small", "large")
            assert {each.node for each in found.candidates} <= {"small", "large"}
            assert sum(each.draws for each in found.candidates) == found.draws == DRAWS
        else:
            assert found.answered == "cannotSay"
            assert found.reason


def test_candidates_are_in_the_policys_order() -> None:
    world = waiting()
    least, most = answer(world, "least-allocated"), answer(world, "most-allocated")
    assert (least.node, [each.node for each in least.candidates]) == ("large", ["large", "small"])
    assert (most.node, [each.node for each in most.candidates]) == ("small", ["small", "large"])
    costs = [each.cost for each in least.candidates]
    assert costs == sorted(cost for cost in costs if cost is not None)
    assert [each.draws for each in least.candidates] == [DRAWS, 0]


def test_a_policy_that_draws_shows_what_it_has_drawn() -> None:
    nodes = [make_node(f"n{at}") for at in range(40)]
    world = World(make_engine(), *nodes)
    world.step(Paused())
    world.step(TaskSeen(make_task("a")))
    found = answer(world, "uniform")
    assert len(found.candidates) > 1
    assert all(each.cost is None for each in found.candidates)


@pytest.mark.parametrize("name", ["sparrow", "hawk", "eagle", "clwl"])
def test_policies_with_node_queues_say_so(name: str) -> None:
    found = answer(waiting(), name)
    assert (found.answered, found.reason) == ("cannotSay", NODE_QUEUES)


def test_without_a_name_the_policy_of_the_profile_answers_with_its_settings() -> None:
    world, plain = (waiting(MostAllocated(resources=each)) for each in ({"memory": 1}, {"cpu": 1}))
    found = world.engine.read(what_if_explanation, ("default", "a"), Question(), world.now).placement
    assert (found.policy, found.answered, found.node) == ("place/most-allocated", "places", "small")
    assert found.candidates == answer(world, "most-allocated").candidates
    assert found.candidates != answer(plain, "most-allocated").candidates


def test_the_policy_that_decides_keeps_its_turn() -> None:
    place = RoundRobin()
    world = waiting(place)
    before = vars(place).copy()
    assert [answer(world, "round-robin").node for _ in range(3)] == ["small"] * 3
    assert vars(place) == before


def test_learned_speeds_count() -> None:
    engine = make_engine(Rosella(), ExactSpeeds({"small": 5.0, "large": 1.0}))
    world = waiting(engine=engine)
    assert answer(world, "rosella").node == "small"
    assert answer(world, "least-allocated").node == "large"


def test_what_nobody_counts_cannot_be_asked_for() -> None:
    found = answer(waiting(LeastAllocated()), "rosella")
    assert found.reason == "it counts node prices, which this scheduler does not"


def test_shares_are_those_of_the_policy_that_decides() -> None:
    tetris = Tetris(fairness=0.5)
    assert answer(waiting(tetris), "tetris").answered == "places"
    assert "shares of groups" in answer(waiting(), "tetris", Tetris(fairness=0.5)).reason


@dataclass
class Failing(Place):
    """Raises."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        raise ValueError("no idea")


@dataclass
class Refusing(Place):
    """Refuses."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Unschedulable(task, Reason("its budget is spent"))


class Plain(Place):
    """No dataclass, so that nothing is known of its settings."""

    place = Refusing.place


def test_a_policy_that_fails_refuses_or_cannot_be_made_again() -> None:
    world = waiting(LeastAllocated())
    failed = answer(world, "failing", Failing())
    assert (failed.answered, failed.reason) == ("cannotSay", "it failed: ValueError: no idea")
    refused = answer(world, "refusing", Refusing())
    assert (refused.answered, refused.reason) == ("refuses", "its budget is spent")
    assert answer(world, "plain", Plain()).answered == "cannotSay"
    sentence = world.engine.read(what_if_explanation, ("default", "a"), Question((), (), Refusing()), 0.0)
    said = "2 nodes would have room, and Refusing would refuse it: its budget is spent"
    assert sentence.summary == said


def test_the_draws_of_the_engine_are_not_used_up() -> None:
    worlds = [
        waiting(engine=Engine([make_profile(table.PLACE["uniform"]())], Unlearned(), 7)) for _ in range(2)
    ]
    answer(worlds[0], "uniform")
    assert worlds[0].engine._state.view.rng.getstate() == worlds[1].engine._state.view.rng.getstate()
