"""Deferred classes are not asked about until an answer may have changed: no decision is another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Action, Learn, PendingTasks, View
from eclectus.model.events import LoadSeen, NodeSeen, TaskGone, TaskSeen
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.rosella.place import REPLANNING
from job_stories import ORDERS, JobStory
from queueing import simulate
from worlds import World, numbered

POOL = (("pool", "a"),)
SPEEDS = {"fast": 0.1, "slow": 0.001}


class Counting(Rosella):
    """Counts its answers."""

    answers = 0

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for action in super().place(view, pending):
            self.answers += 1
            yield action


class Unchanging(Counting):
    """What arrives changes nothing: prices and loads fade with time, and are a reason to ask again."""

    def epoch(self, view: View) -> int:
        return 0


# The same policy under the same name, which messages contain, asked about deferred tasks in every cycle.
AlwaysAsked: type[Rosella] = type(
    "AlwaysAsked", (Rosella,), {"traits": replace(REPLANNING, defers_until_change=False)}
)
AlwaysAsked.title = Rosella.title


def waiting_world(policy: Rosella, **roles: object) -> World:
    """In a pool a full fast node, for which t1 and t2 wait beside a slow one; and a node outside the pool."""
    learn = ExactSpeeds(dict(SPEEDS), otherwise=0.1)
    world = World(
        make_engine(policy, learn, wait_limit=None, **roles),
        *(make_node(name, cpu=1, labels=dict(POOL)) for name in SPEEDS),
        make_node("outside", cpu=4),
    )
    world.add(*numbered(3, node_selector=POOL))
    world.step()  # t0 was placed in the cycle before, so t1 and t2 had to be asked about again
    assert set(world.placed()) == {"t0"}
    return world


def test_a_deferred_class_is_not_asked_about_and_its_deferrals_stay() -> None:
    policy = Counting(theta=6.0)
    world = waiting_world(policy)
    asked, tentative = policy.answers, world.engine._state.cluster.tentative.copy()
    for event in (
        TaskGone("unknown"),
        TaskSeen(make_task("foreign", profile="other")),
        TaskSeen(make_task("elsewhere", profile="other", node="outside")),
        LoadSeen((("outside", 0.9),)),
    ):
        world.step(event)
    assert policy.answers == asked
    assert (world.engine._state.cluster.tentative == tentative).all()
    assert tentative.sum() > 0


EVENTS: dict[str, Callable[[World], object]] = {
    "a task joins": lambda world: world.add(make_task("t9", node_selector=POOL, created=9.0)),
    "a task leaves": lambda world: world.delete("t2"),
    "a deferred task leaves": lambda world: world.delete("t1"),
    "a task changes": lambda world: world.put(make_task("t2", node_selector=POOL, priority=3)),
    "a task ends": lambda world: world.end("t0"),
    "a node changes": lambda world: world.put_node(make_node("slow", cpu=2, labels=dict(POOL))),
    "a node comes": lambda world: world.put_node(make_node("new", cpu=1)),
    "a node goes": lambda world: world.drop_node("outside"),
    "room is taken": lambda world: world.add(make_task("f", cpu=0.1, profile="other", node="slow")),
    "load changes": lambda world: world.step(LoadSeen((("slow", 0.9),))),
    "a class that may use the same nodes": lambda world: world.add(make_task("any", cpu=0.5)),
}


@pytest.mark.parametrize("event", EVENTS)
def test_what_may_change_an_answer_activates_the_class(event: str) -> None:
    policy = Counting(theta=6.0)
    world = waiting_world(policy)
    asked = policy.answers
    EVENTS[event](world)
    assert policy.answers > asked + (event == "a class that may use the same nodes")


def test_new_speeds_activate_the_class() -> None:
    policy = Counting(theta=6.0)
    world = waiting_world(policy)
    learn = world.engine._state.learn
    assert isinstance(learn, ExactSpeeds)
    learn._rate[world.engine._state.cluster.rows["slow"]] = 0.1
    learn._epoch += 1
    world.step()
    world.settle()
    assert world.node_of("t1") == "slow"


def test_the_end_of_a_deferral_activates_the_class() -> None:
    policy = Unchanging(theta=6.0)
    world = waiting_world(policy)
    asked = policy.answers
    world.sleep(800.0)  # reports and rechecks, but no event
    assert policy.answers == asked
    world.sleep(400.0)
    assert world.node_of("t1") == "slow"


def test_a_changed_share_activates_classes_whose_order_ranks_by_shares() -> None:
    policy = Counting(theta=6.0)
    world = waiting_world(policy, order=DominantShare(by="label", label="team"))
    asked = policy.answers
    world.add(make_task("elsewhere", profile="other", node="outside"))
    assert policy.answers > asked


def test_a_pool_does_not_activate_another() -> None:
    policy = Counting(theta=6.0)
    world = waiting_world(policy)
    asked = policy.answers
    outside = make_task("b", cpu=1, tolerations=(), node_selector=(("pool", "b"),))
    world.step(NodeSeen(make_node("b", cpu=1, labels={"pool": "b"})))
    world.step()
    again = policy.answers
    assert again > asked  # by the new node
    world.add(outside)
    assert world.node_of("b") == "b"
    assert policy.answers == again + 1


def test_a_deferred_class_is_activated_by_a_class_of_another_profile() -> None:
    policy = Counting(theta=6.0)
    profiles = [make_profile(policy, "eclectus"), make_profile(LeastAllocated(), "packed")]
    learn = ExactSpeeds(dict(SPEEDS), otherwise=0.1)
    world = World(Engine(profiles, learn), *(make_node(name, cpu=1) for name in SPEEDS))
    world.add(*numbered(3))
    world.step()
    asked = policy.answers
    world.step()
    assert policy.answers == asked
    world.add(make_task("p", profile="packed", created=-1.0))
    assert world.node_of("p") == "slow"  # as if nothing were deferred: it is the older pod
    assert policy.answers > asked


def test_a_policy_that_does_not_say_so_is_asked_in_every_cycle() -> None:
    class Patient(Counting):
        traits = replace(REPLANNING, defers_until_change=False)  # type: ignore[assignment]

    policy = Patient(theta=6.0)
    world = waiting_world(policy)
    asked = policy.answers
    world.step()
    world.step()
    assert policy.answers == asked + 2 * 2


LEARNERS: dict[str, Callable[[], Learn]] = {
    "known speeds": lambda: ExactSpeeds({f"n{at}": (1.0, 0.2, 0.05)[at % 3] for at in range(500)}, 0.2),
    "learned speeds": lambda: RosellaLearn(window=8),
}


@pytest.mark.parametrize("theta", [1.0, 4.0])
@pytest.mark.parametrize("learn", LEARNERS)
@pytest.mark.parametrize("order", ORDERS)
def test_it_decides_as_if_deferred_classes_were_asked_about_in_every_cycle(
    theta: float, learn: str, order: str
) -> None:
    def commands(policy: type[Rosella], seed: int) -> list[object]:
        engine = make_engine(policy(theta=theta), LEARNERS[learn](), order=ORDERS[order]())
        return list(JobStory(engine, seed).run(70).commands)

    for seed in range(2):
        assert commands(Rosella, seed) == commands(AlwaysAsked, seed)


@pytest.mark.parametrize("theta", [2.0, 4.0])
def test_simulated_responses_are_the_same_as_if_it_were_asked_in_every_cycle(theta: float) -> None:
    found = [
        simulate(policy(theta=theta), load=0.85, slots=2, tasks=400, seed=5)
        for policy in (Rosella, AlwaysAsked)
    ]
    assert found[0] == found[1]
