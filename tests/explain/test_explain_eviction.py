"""What eviction could do for a pod, or why nobody is evicted."""

from __future__ import annotations

from builders import make_engine, make_node, make_task
from eclectus.explain.node import ROWS_MOST
from eclectus.model.events import BudgetSeen, Paused, TaskSeen
from eclectus.model.explanation import EvictionCandidate, OtherPod
from eclectus.model.objects import Budget, Requirement
from eclectus.policies.relieve.preemption import Preemption
from explain_questions import explain
from worlds import World, numbered, small_world

ZONE = Requirement("app", "In", ("web",))


def full(relieve: object = None, **fields: object) -> World:
    """A full node with a pod of priority 1, and `a`, of priority 5, that waits."""
    roles = {"relieve": relieve} if relieve else {}
    world = small_world(make_engine(**roles), cpu=2)  # type: ignore[arg-type]
    world.add(make_task("x", cpu=2, priority=1, labels=(("app", "web"),)))
    world.step(Paused(), BudgetSeen(Budget("default", "b", (ZONE,), allowed=0)))
    world.step(TaskSeen(make_task("a", cpu=2, priority=5, **fields)))  # type: ignore[arg-type]
    return world


def test_candidates_for_eviction_are_named_with_the_budgets_that_they_violate() -> None:
    found = explain(full(Preemption()), "a").preemption
    assert found is not None
    assert (found.state, found.examined) == ("possible", 1)
    assert found.candidates == (EvictionCandidate("n0", (OtherPod("default", "x", 1),), violated_budgets=1),)


def test_a_profile_that_evicts_nobody_says_whom_it_could_evict() -> None:
    found = explain(full(), "a").preemption
    assert found is not None
    assert found.state == "profileEvictsNobody"
    assert [each.node for each in found.candidates] == ["n0"]


def test_a_policy_never_is_named() -> None:
    found = explain(full(Preemption(), preempts=False), "a").preemption
    assert found is not None
    assert (found.state, found.candidates) == ("policyNever", ())


def test_without_a_lower_priority_nobody_is_looked_for() -> None:
    world = small_world(make_engine(relieve=Preemption()), cpu=1)
    world.add(*numbered(2))
    found = explain(world, "t1").preemption
    assert found is not None
    assert (found.state, found.reason) == ("noLowerPriority", "no pod on a node has a priority below 0")


def test_evictions_that_would_not_help_are_counted() -> None:
    nodes = [make_node(name, cpu) for name, cpu in (("n", 2), ("m", 9), ("o", 4))]
    world = World(make_engine(relieve=Preemption()), *nodes)
    world.add(*(make_task(name, cpu=4, priority=9) for name in ("x0", "x1", "x2")))
    world.add(make_task("y", cpu=2, priority=0), make_task("z", cpu=1, priority=0))
    world.add(make_task("a", cpu=3, priority=5))
    found = explain(world, "a", after=0.5).preemption
    assert found is not None
    assert (found.state, found.examined, found.next_check) == ("notHelpful", 2, 0.5)
    assert found.reason == (
        "it would fit on none of the 2 nodes examined without their pods of a priority below 5 "
        "(1 Insufficient cpu, 1 without any); 2 of 3 nodes could run it when empty"
    )


def test_few_nodes_are_searched_for_victims() -> None:
    """On each node a pod of a higher priority has the room, and one of a lower priority a little."""
    world = small_world(make_engine(relieve=Preemption()), nodes=ROWS_MOST + 6, cpu=4)
    high = (make_task(f"x{at}", cpu=3, priority=9) for at in range(ROWS_MOST + 6))
    low = (make_task(f"y{at}", cpu=1, priority=0) for at in range(ROWS_MOST + 6))
    world.add(*high, *low, make_task("a", cpu=3, priority=5))
    found = explain(world, "a", after=0.5).preemption
    assert found is not None
    assert (found.state, found.examined) == ("notHelpful", ROWS_MOST)


def test_a_nominated_pod_names_who_is_leaving() -> None:
    world = small_world(make_engine(relieve=Preemption()), cpu=2)
    world.terminates_at_once = False
    world.add(make_task("x", cpu=2))
    world.add(make_task("a", cpu=2, priority=5))
    world.step()
    found = explain(world, "a", after=3.0)
    assert found.nomination is not None
    assert (found.nomination.node, found.nomination.since) == ("n0", 3.0)
    assert found.nomination.leaving == (OtherPod("default", "x", 0, leaving=True),)
    assert found.preemption is not None
    assert found.preemption.state == "nominated"
