"""What an explanation says of a node: what it holds, what is learned of it, and why it gets no pods."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.explain import node as explanations
from eclectus.explain.node import (
    CLASSES_BESIDE_PODS_MOST,
    CLASSES_MOST,
    learned_nodes,
    learned_page,
    node_explanation,
)
from eclectus.model.events import LoadSeen, TaskSeen
from eclectus.model.explanation import NodeExplanation, OtherPod, Refusal, ResourceUse
from eclectus.model.learned import LearnedNode, LearnedWork
from eclectus.model.objects import PodAffinityTerm, Requirement, Taint
from eclectus.policies.rosella import RosellaLearn
from worlds import World, numbered, small_world

GIB = 2**30


def explain(world: World, name: str = "n0") -> NodeExplanation:
    return world.engine.read(node_explanation, name)


def test_what_it_holds() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("service", cpu=1, priority=7, long_running=True), make_task("a", cpu=0.5, memory=2))
    found = explain(world)
    assert found.resources == (
        ResourceUse("pods", 110, 2, services=1),
        ResourceUse("cpu", 4000, 1500, services=1000),
        ResourceUse("memory", 64 * GIB, 2 * GIB),
    )
    assert (found.pods, found.pod_count) == ((OtherPod("default", "a"), OtherPod("default", "service", 7)), 2)
    assert (found.conditions, found.summary) == (("takesPods",), "it takes pods")


def test_of_many_pods_some_are_named() -> None:
    world = small_world(make_engine(), cpu=9)
    world.add(*numbered(9))
    found = explain(world)
    assert (len(found.pods), found.pod_count) == (5, 9)
    assert (found.conditions, found.summary) == (("full",), "nothing is left of cpu")


def test_room_that_is_planned_for_pods_that_wait() -> None:
    world = World(make_engine(learn=ExactSpeeds({"n0": 10.0})), make_node("n0", cpu=1), make_node("slow"))
    world.add(*numbered(2))
    (cpu,) = (use for use in explain(world).resources if use.resource == "cpu")
    assert (cpu.held, cpu.planned) == (1000, 1000)


def test_cordons_and_taints() -> None:
    world = small_world(make_engine())
    taints = (Taint("a", "b"), Taint("c", effect="NoExecute"), Taint("soft", effect="PreferNoSchedule"))
    world.put_node(make_node("n0", taints=taints, unschedulable=True))
    found = explain(world)
    assert found.conditions == ("cordoned", "tainted")
    assert found.taints == ("a=b:NoSchedule", "c:NoExecute")
    assert found.summary == (
        "it is cordoned (spec.unschedulable); it takes only pods that tolerate a=b:NoSchedule, c:NoExecute"
    )


def test_what_is_learned_of_it() -> None:
    world = small_world(make_engine(learn=RosellaLearn()))
    world.add(*numbered(3, workload="sort"))
    for name in ("t0", "t1", "t2"):
        world.end(name, 5.0)
    learned = explain(world).learned
    assert learned is not None
    assert (learned.state, [work.workload for work in learned.work]) == ("live", ["sort"])
    assert learned.work[0].samples == 3
    assert [learned] == list(world.engine.read(learned_nodes))


def test_without_samples_it_counts_as_typical() -> None:
    learned = explain(small_world(make_engine(learn=RosellaLearn()))).learned
    assert learned is not None
    assert (learned.state, learned.speed, learned.confidence, learned.work) == ("unknown", 1.0, 0.0, ())


def test_without_a_learner_nothing_is_said() -> None:
    assert explain(small_world(make_engine())).learned is None


def pages(world: World, most: int) -> list[list[str]]:
    """The names of the nodes of every page."""
    found, after = list[list[str]](), ""
    while (page := world.engine.read(learned_page, after, most, world.now)).items:
        assert page.last is not None
        found.append([each.node for each in page.items])
        after = page.last
    return found


def test_speeds_are_listed_page_by_page_of_every_node_in_the_order_of_names() -> None:
    world = World(make_engine(learn=RosellaLearn()), *(make_node(name) for name in ("c", "a", "b")))
    world.add(make_task("t", workload="sort"))
    world.end("t")
    assert pages(world, 2) == [["a", "b"], ["c"]]
    found = world.engine.read(learned_page, "", 500, world.now)
    assert found.left == 0
    assert [work.workload for each in found.items for work in each.work] == ["sort"]


def test_a_page_of_speeds_ends_where_it_has_so_many_kinds_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanations, "CELLS_MOST", 2)
    names = [f"n{at}" for at in range(5)]
    world = World(make_engine(learn=Known(work=1)), *(make_node(name) for name in names))
    assert pages(world, 500) == [["n0", "n1"], ["n2", "n3"], ["n4"]]
    world = World(make_engine(learn=Known(work=9)), *(make_node(name) for name in names))
    assert pages(world, 500) == [[name] for name in names]


def test_of_a_learner_that_says_nothing_every_node_is_unknown() -> None:
    found = small_world(make_engine()).engine.read(learned_page, "", 500, 7.0)
    (node,) = found.items
    assert (node.node, node.at, node.state, node.confidence, node.work) == ("n0", 7.0, "unknown", 0.0, ())


class Known(ExactSpeeds):
    """Knows so many kinds of work of every node."""

    def __init__(self, work: int) -> None:
        super().__init__({})
        self._work = tuple(LearnedWork(f"w{at}", 1.0, 1, 0.5) for at in range(work))

    def learned_node(self, node: str) -> LearnedNode:
        return LearnedNode(node, 1, 0.0, "live", 1.0, 0.5, self._work)


class Dead(ExactSpeeds):
    """Believes every node dead."""

    def learned_node(self, node: str) -> LearnedNode:
        return LearnedNode(node, 1, 0.0, "dead", 0.0, 1.0, ())


def test_a_node_that_is_believed_dead() -> None:
    found = explain(small_world(make_engine(learn=Dead({}))))
    assert found.conditions == ("dead",)
    assert found.summary.startswith("the learner believes it dead")


def test_background_load() -> None:
    world = small_world(make_engine())
    world.step(LoadSeen((("n0", 0.25),)))
    assert explain(world).background_load == pytest.approx(0.25)


def test_why_it_does_not_take_the_pods_that_wait() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(
        *(make_task(f"l{at}", node_selector=(("disk", "ssd"),)) for at in range(2)),
        *(make_task(f"b{at}", cpu=2, memory=99) for at in range(3)),
    )
    found = explain(world)
    assert found.waiting_pods == 5
    assert found.refused == (
        Refusal("Insufficient cpu", 3),
        Refusal("Insufficient memory", 3),
        Refusal("node(s) didn't match Pod's node affinity/selector", 2),
    )


def test_rules_about_other_pods_are_asked_for_some_classes() -> None:
    term = PodAffinityTerm("host", (Requirement("app", "In", ("web",)),), ("default",))
    world = World(make_engine(), make_node("n0", labels={"host": "h"}))
    world.add(make_task("x", labels=(("app", "web"),)))
    more = CLASSES_BESIDE_PODS_MOST + 2
    world.add(*(make_task(f"t{at}", cpu=0.1 + at / 10, own_anti_affinity=(term,)) for at in range(more)))
    found = explain(world)
    assert found.waiting_pods == CLASSES_BESIDE_PODS_MOST
    assert found.refused == (
        Refusal("node(s) didn't match pod anti-affinity rules", CLASSES_BESIDE_PODS_MOST),
    )


def test_of_many_classes_some_are_compared() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(*(make_task(f"t{at}", cpu=2 + at) for at in range(CLASSES_MOST + 3)))
    assert explain(world).waiting_pods == CLASSES_MOST


def test_nominated_pods_and_its_queue() -> None:
    world = small_world(make_engine())
    world.step(TaskSeen(make_task("a", profile="other", nominated="n0")))
    found = explain(world)
    assert (found.nominated, found.pod_count) == ((OtherPod("default", "a", nominated=True),), 1)
    assert found.queued == 0


def test_a_node_that_is_not_known() -> None:
    found = explain(small_world(make_engine()), "nobody")
    assert (found.conditions, found.summary) == (("unknown",), "this scheduler knows no such node")
