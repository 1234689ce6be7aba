"""`place: kube` takes a node of the greatest sum of kube-scheduler's scores, computed here one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import dumb_scores
from builders import make_engine, make_node, make_task
from dumb_scores import Asked
from eclectus.model.commands import Bind
from eclectus.model.events import (
    Event,
    FreeStorageSeen,
    NodeSeen,
    Resumed,
    StorageDriverSeen,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import (
    Node,
    PodAffinityTerm,
    Preference,
    Requirement,
    Spec,
    SpreadConstraint,
    Taint,
    Task,
    Term,
    Toleration,
    WeightedTerm,
)
from eclectus.model.volumes import FreeStorage
from eclectus.policies.place.kube import KubeScores
from storage_objects import LATE, make_claim, named, seen, with_claims
from worlds import World

GIB, MIB = 2**30, 2**20
KEYS = st.sampled_from(["zone", "zone", "kubernetes.io/hostname", "rack"])
WEB = (Requirement("app", "In", ("web",)),)
TERMS = st.builds(PodAffinityTerm, KEYS, st.sampled_from([WEB, WEB, ()]), st.just(("default",)))
WEIGHTED = st.builds(WeightedTerm, st.sampled_from([-100, -7, 1, 30]), TERMS)
ZONE_A, GPU = (Term((Requirement(key, "In", (value,)),)) for key, value in (("zone", "a"), ("gpu", "yes")))
SPREAD = st.builds(
    SpreadConstraint,
    KEYS,
    st.just("default"),
    st.sampled_from([WEB, WEB, ()]),
    st.just(False),
    st.sampled_from([1, 1, 3]),
    st.just(1),
    st.booleans(),
    st.booleans(),
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    cpu, memory = draw(st.sampled_from([(0, 0), (0, 0), (500, 0), (500, GIB), (100, 3 * GIB)]))
    amounts = tuple((name, amount) for name, amount in (("cpu", cpu), ("memory", memory)) if amount)
    spread, needs_all = draw(st.lists(SPREAD, max_size=2)), draw(st.sampled_from([True, True, False]))
    preferences = st.builds(Preference, st.sampled_from([1, 10, 100]), st.sampled_from([ZONE_A, GPU]))
    return Spec(
        requests=amounts,
        score_requests=(cpu or 100, memory or 200 * MIB),
        node_selector=draw(st.sampled_from([(), (), (), (("gpu", "yes"),)])),
        tolerations=draw(st.sampled_from([(), (Toleration("s", "Exists"), Toleration("t", "Exists"))])),
        preferences=tuple(draw(st.lists(preferences, max_size=2))),
        preferred_terms=tuple(draw(st.lists(WEIGHTED, max_size=2))),
        preferred_spread=tuple(replace(each, needs_all_keys=needs_all) for each in spread),
        images=draw(st.sampled_from([(), ("web:1",), ("web:1", "web:1", "db:1")])),
    )


PODS = st.builds(
    lambda spec, labels: Task("uid-p", "default", "p", spec=spec, labels=labels),
    specs(),
    st.sampled_from([(), (("app", "web"),), (("app", "web"),)]),
)
PLACED = st.builds(
    lambda task, terms: replace(task, spec=replace(task.spec, affinity_terms=terms)),
    PODS,
    st.lists(TERMS, max_size=1).map(tuple),
)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    found = []
    for at in range(draw(st.integers(2, 5))):
        labels = {"kubernetes.io/hostname": f"n{at}"}
        labels |= draw(st.sampled_from([{}, {"zone": "a"}, {"zone": "b"}, {"zone": "c"}]))
        labels |= draw(st.sampled_from([{}, {"gpu": "yes"}]))
        taints = draw(st.sampled_from([(), (), (Taint("s", effect="PreferNoSchedule"),), (Taint("t"),)]))
        sizes = [("web:1", draw(st.sampled_from([0, 400 * MIB, 5000 * MIB]))), ("db:1", 90 * MIB)]
        images = tuple((name, size) for name, size in sizes if size)
        cpu, memory = draw(st.sampled_from([(4, 8), (4, 16), (32, 8)]))
        found.append(make_node(f"n{at}", cpu, memory, pods=9, labels=labels, taints=taints, images=images))
    return found


def choices(events: list[Event], task: Task, draws: int) -> set[str]:
    """The nodes that the policy draws for a pod that comes and goes."""
    engine, found = make_engine(KubeScores()), set[str]()
    engine.step([*events, Resumed()], 0.0)
    for at in range(draws):
        asks = replace(task, uid=f"uid-{at}", name=f"p{at}")
        binds = [each for each in engine.step([TaskSeen(asks)], float(at)) if isinstance(each, Bind)]
        found |= {each.node for each in binds}
        engine.step([TaskGone(asks.uid)], at + 0.5)
    return found


def may_run(task: Task, node: Node) -> bool:
    labels, hard = dict(node.labels), [each for each in node.taints if each.effect == "NoSchedule"]
    selected = all(labels.get(key) == value for key, value in task.spec.node_selector)
    return selected and (not hard or bool(task.spec.tolerations))


def has_room(task: Task, node: Node, placed: list[tuple[Node, Task]]) -> bool:
    there = [pod for other, pod in placed if other.name == node.name]
    held = Counter[str]()
    for pod in (*there, task):
        held.update(dict(pod.spec.requests))
    wanted = dict(task.spec.requests)  # of a node that others have filled too much, nothing else counts
    return len(there) < 9 and all(held[name] <= amount for name, amount in node.allocatable if name in wanted)


@settings(max_examples=100, deadline=None)
@given(nodes(), st.lists(st.tuples(st.integers(0, 99), PLACED), max_size=6), PODS)
def test_it_takes_a_node_of_the_greatest_sum(
    there: list[Node], pods: list[tuple[int, Task]], task: Task
) -> None:
    placed = [
        (
            there[pick % len(there)],
            replace(pod, uid=f"uid-r{at}", node=there[pick % len(there)].name, phase="Running"),
        )
        for at, (pick, pod) in enumerate(pods)
    ]
    fitting = [node for node in there if may_run(task, node) and has_room(task, node, placed)]
    events = [*map(NodeSeen, there), *(TaskSeen(pod) for _, pod in placed)]
    found = choices(events, task, 4)
    totals = dumb_scores.totals(Asked(task, fitting, there, placed)) if fitting else {}
    best = {name for name, total in totals.items() if total == max(totals.values())}
    assert found <= best, totals
    assert bool(found) == bool(best)


# -- worked examples -------------------------------------------------------------------------------


def placed_by(policy: KubeScores, *tasks: Task, on: Any) -> list[str]:
    world = World(make_engine(policy), *on)
    world.add(*tasks)
    return [world.node_of(task.name) for task in tasks]


def test_equal_nodes_are_drawn() -> None:
    placed = placed_by(
        KubeScores(),
        *(make_task(f"p{at}", cpu=1) for at in range(30)),
        on=[make_node(f"n{at}", cpu=1) for at in range(30)],
    )
    assert sorted(placed) == sorted(f"n{at}" for at in range(30))
    assert placed != [f"n{at}" for at in range(30)]


def test_a_soft_taint_weighs_more_than_free_room() -> None:
    soft = (Taint("k", effect="PreferNoSchedule"),)
    nodes = [make_node("small", cpu=4), make_node("large", cpu=64, taints=soft)]
    assert placed_by(KubeScores(), make_task("p"), on=nodes) == ["small"]
    assert placed_by(KubeScores(taint_toleration=0), make_task("p"), on=nodes) == ["large"]


def test_images_are_worth_a_fuller_node() -> None:
    nodes = [make_node("empty"), make_node("has", images=(("web:1", 4000 * MIB),))]
    tasks = [make_task("before", node_name="has"), make_task("p", images=("web:1",))]
    assert placed_by(KubeScores(), *tasks, on=nodes) == ["has", "has"]
    assert placed_by(KubeScores(image_locality=0), *tasks, on=nodes) == ["has", "empty"]


def test_images_are_wanted_only_where_they_weigh_something() -> None:
    assert make_engine(KubeScores()).needs["images"] == {"eclectus"}
    assert "images" not in make_engine(KubeScores(image_locality=0)).needs


def test_storage_that_stays_free_is_worth_a_fuller_node_and_follows_what_is_published() -> None:
    def free(node: str, gib: int) -> FreeStorageSeen:
        on = (Requirement("kubernetes.io/hostname", "In", (node,)),)
        return FreeStorageSeen(FreeStorage(node, "late", 2 * GIB, on, gib * GIB))

    def placed(policy: KubeScores, *events: Event) -> str:
        engine = make_engine(policy)
        nodes = [make_node(name, labels=named(name)) for name in ("empty", "roomy")]
        before = TaskSeen(make_task("before", node_name="roomy", cpu=1))
        engine.step([*map(NodeSeen, nodes), *seen(LATE, make_claim()), before, Resumed()], 0.0)
        engine.step([StorageDriverSeen("csi.example", publishes_capacity=True), *events], 1.0)
        commands = engine.step([TaskSeen(with_claims("p", "data", cpu=1))], 2.0)
        return next(each.node for each in commands if isinstance(each, Bind))

    more = [free("empty", 2), free("roomy", 100)]
    assert placed(KubeScores(), *more) == "roomy"
    assert placed(KubeScores(volume_binding=0), *more) == "empty"
    assert placed(KubeScores(), *more, free("empty", 100)) == "empty"


@pytest.mark.parametrize("pods", [9, 10])
def test_pods_that_prefer_to_be_apart_are_spread_evenly(pods: int) -> None:
    term = WeightedTerm(-100, PodAffinityTerm("kubernetes.io/hostname", WEB, ("default",)))
    nodes = [make_node(f"n{at}", cpu=64, labels={"kubernetes.io/hostname": f"n{at}"}) for at in range(3)]
    tasks = [make_task(f"p{at}", labels=(("app", "web"),), preferred_terms=(term,)) for at in range(pods)]
    counts = Counter(placed_by(KubeScores(), *tasks, on=nodes)).values()
    assert max(counts) - min(counts) <= pods % 3
