"""What is explained of a flow problem: the arcs of a pod's group, and what staying costs."""

from __future__ import annotations

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.explain.pod import explain_pod
from eclectus.model.explanation import FlowArc, FlowPart
from eclectus.policies.place.fit import BestFit
from eclectus.policies.quincy.place import Quincy
from flow_answers import answer
from worlds import World

SPEEDS = {"fast": 1.0, "slow": 0.5, "slowest": 0.1}


def asked() -> World:
    """Two equal pods for three nodes, of which two are worth taking."""
    world = World(
        make_engine(Quincy(), learn=ExactSpeeds(SPEEDS)), *(make_node(name, cpu=1) for name in SPEEDS)
    )
    world.answers_solves = False
    world.step(*(), after=1.0)
    world.add(*(make_task(f"t{at}", created=1.0) for at in range(3)))
    return world


def part(world: World, name: str, after: float = 0.0) -> FlowPart | None:
    return explain_pod(world.engine, "default", name, world.now + after).flow


def test_the_arcs_of_a_pod_that_is_asked_about() -> None:
    found = part(asked(), "t0", after=2.0)
    assert found is not None
    assert (found.asked, found.answer, found.pods, found.staying, found.stay) == (2.0, "awaited", 3, 2000, 0)
    assert found.nodes == (
        FlowArc("fast", 1000, 1),
        FlowArc("slow", 2000, 1),
        FlowArc("slowest", 10000, 1),
    )


def test_flows_are_known_once_it_is_answered_also_of_pods_that_are_bound() -> None:
    world = asked()
    solved = answer(world.engine, world.solves[-1])
    assert solved is not None
    world.step(solved)
    world.settle()
    (bound, *_) = world.placed()
    found = part(world, bound)
    assert found is not None
    assert found.answer == "optimal"
    assert found.stay + sum(arc.flow for arc in found.nodes) == 3
    assert found.nodes[0] == FlowArc("fast", 1000, 1, 1)
    assert found.nodes[-1] == FlowArc("slowest", 10000, 1, 0)


def test_other_pods_and_other_policies_have_none() -> None:
    world = asked()
    world.add(make_task("late"))
    assert part(world, "late") is None
    other = World(make_engine(BestFit()), make_node("n", cpu=1))
    other.add(make_task("a"))
    assert part(other, "a") is None


def test_a_running_pod_is_shown_what_staying_and_ending_cost() -> None:
    """It has run for 10 s; who waits loses 30 s by that, or 5."""
    for waited, ended in ((60.0, 1), (10.0, 0)):
        quincy = Quincy("quincy", running="preempt", min_runtime=0.0, min_gain=0.0)
        world = World(make_engine(quincy), make_node("n", cpu=1))
        world.terminates_at_once = False
        world.add(make_task("runs", node="n", started=0.0, restartable=True, job="old"))
        world.step(after=10.0)
        world.add(make_task("waits", created=10.0 - waited, job="new"))
        found = part(world, "runs")
        assert found is not None
        assert (found.is_running, found.pods, found.staying, found.stay) == (True, 1, 100, ended)
        assert found.nodes == (FlowArc("n", -10_000, 1, 1 - ended),)
        assert found.without_node == "(end)"
        assert found.why == (
            "others get their places" if ended else "they lose more if they end than others by waiting"
        )
