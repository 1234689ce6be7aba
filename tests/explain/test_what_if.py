"""What would be different: the answer is what another engine says to which it has really happened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.config.what_if import read_question
from eclectus.explain.node import node_explanation
from eclectus.explain.pod import explain_pod
from eclectus.explain.what_if import Question, what_if_explanation
from eclectus.framework import Place
from eclectus.model.errors import QuestionError
from eclectus.model.events import Paused, TaskSeen
from eclectus.model.explanation import PodExplanation, RuleDifference, WhatIfExplanation
from eclectus.model.objects import (
    HostPort,
    Node,
    PodAffinityTerm,
    Requirement,
    SpreadConstraint,
    Taint,
    Task,
    Toleration,
)
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella
from worlds import World, small_world

WEB = Requirement("app", "In", ("web",))
APART = PodAffinityTerm("zone", (WEB,), ("default",))
SPREAD = SpreadConstraint("zone", "default", (WEB,), counts_itself=True)


def ask(world: World, *texts: str, name: str = "a", policy: str = "") -> WhatIfExplanation:
    question = read_question(texts, policy, "default")
    return world.engine.read(what_if_explanation, ("default", name), question, world.now)


def waiting(place: object = None, *nodes: Node, pods: tuple[Task, ...] = (), **pod: object) -> World:
    """The nodes with their pods, and then `a`, which is not placed because the engine does not lead."""
    world = World(make_engine(place, relieve=Preemption()), *nodes)  # type: ignore[arg-type]
    world.step(*(TaskSeen(each) for each in pods))
    world.step(Paused())
    world.step(TaskSeen(make_task("a", **pod)))  # type: ignore[arg-type]
    return world


def explained(world: World) -> PodExplanation:
    return explain_pod(world.engine, "default", "a", world.now)


# -- the same as if it had happened ----------------------------------------------------------------

NODES = (
    make_node("n", cpu=2, labels={"zone": "x", "disk": "ssd"}, taints=(Taint("gpu"), Taint("old", "y"))),
    make_node("m", cpu=1, labels={"zone": "y", "disk": "hdd"}),
)
BOUND = make_task("x", cpu=1, node="m", priority=3, labels=(("app", "web"),), host_ports=(HostPort(80),))


def changed_node(name: str, **fields: object) -> Callable[[World], None]:
    node = next(each for each in NODES if each.name == name)
    return lambda world: world.put_node(replace(node, **fields))


def changed_task(**fields: object) -> Callable[[World], None]:
    def happen(world: World) -> None:
        task = world.engine._state.pending["uid-a"]
        spec = {key: fields[key] for key in fields if key != "priority"}
        world.step(
            TaskSeen(replace(task, spec=replace(task.spec, **spec), priority=fields.get("priority", 0)))
        )

    return happen


def gone(world: World) -> None:
    world.tasks["x"] = BOUND
    world.delete("x")


def gone_from_nothing(world: World) -> None:
    gone(world)
    changed_node("m", allocatable=(("memory", 2**36), ("pods", 110)))(world)


def more_nodes(world: World) -> None:
    for at in range(2):
        world.put_node(replace(NODES[1], name=f"m-like-{at}", taints=(Taint("new"),)))


HAPPENS: list[tuple[tuple[str, ...], Callable[[World], None]]] = [
    (("node=n,taint-=gpu",), changed_node("n", taints=(Taint("old", "y"),))),
    (("node=n,taint-=gpu:NoSchedule,taint-=old",), changed_node("n", taints=())),
    (("node=m,taint+=new=v:NoExecute",), changed_node("m", taints=(Taint("new", "v", "NoExecute"),))),
    (("node=m,taint+=new",), changed_node("m", taints=(Taint("new"),))),
    (("node=m,cordon=true",), changed_node("m", unschedulable=True)),
    (("node=m,label+=zone=z",), changed_node("m", labels=(("disk", "hdd"), ("zone", "z")))),
    (("node=m,label-=zone",), changed_node("m", labels=(("disk", "hdd"),))),
    (
        ("node=m,allocatable.cpu=4,allocatable.memory=1Gi,allocatable.example.com/card=2",),
        changed_node(
            "m", allocatable=(("cpu", 4000), ("example.com/card", 2), ("memory", 2**30), ("pods", 110))
        ),
    ),
    (("delete-pod=x",), gone),
    (("delete-pod=default/x", "node=m,allocatable.cpu=0"), gone_from_nothing),
    (("add-node-like=m,count=2,taint+=new",), more_nodes),
    (("request.cpu=100m",), changed_task(requests=(("cpu", 100), ("memory", 2**31)))),
    (
        ("request.memory=0,request.example.com/card=1",),
        changed_task(requests=(("cpu", 1500), ("example.com/card", 1))),
    ),
    (("selector-=disk",), changed_task(node_selector=())),
    (
        ("toleration+=gpu,toleration+=old=y:NoSchedule",),
        changed_task(
            tolerations=(Toleration("gpu", "Exists"), Toleration("old", "Equal", "y", "NoSchedule"))
        ),
    ),
    (("priority=5",), changed_task(priority=5)),
]


@pytest.mark.parametrize(("texts", "happen"), HAPPENS, ids=[" ".join(texts) for texts, _ in HAPPENS])
@pytest.mark.parametrize(
    "rules",
    [
        {"cpu": 1.5, "memory": 2, "node_selector": (("disk", "hdd"),)},
        {
            "cpu": 1.5, "memory": 2, "node_selector": (("disk", "hdd"),), "host_ports": (HostPort(80),),
            "labels": (("app", "web"),), "own_anti_affinity": (APART,), "anti_affinity_terms": (APART,),
            "spread": (SPREAD,), "topology_keys": ("zone",),
        },
    ],
    ids=["plain", "rules about pods"],
)  # fmt: skip
def test_the_answer_is_what_would_be_explained_if_it_had_happened(
    texts: tuple[str, ...], happen: Callable[[World], None], rules: dict[str, object]
) -> None:
    world, other = (waiting(LeastAllocated(), *NODES, pods=(BOUND,), **rules) for _ in range(2))
    before = explained(world)
    found = ask(world, *texts)
    happen(other)
    expected = explained(other)
    assert found.pod.funnel == expected.funnel
    assert found.pod.nearest == expected.nearest
    assert found.pod.preemption == expected.preemption
    assert found.changes == texts
    assert explained(world) == before, "the question has changed something"


# -- the sentence and the differences --------------------------------------------------------------


def test_a_taint_that_is_removed_lets_the_pod_be_placed() -> None:
    world = waiting(LeastAllocated(), make_node("n", taints=(Taint("gpu"),)), make_node("m", cpu=0.5))
    found = ask(world, "node=n,taint-=gpu")
    assert found.summary == "it would be placed on node n"
    assert (found.with_room_before, found.with_room) == (0, 1)
    assert found.rules == (RuleDifference("TaintToleration", 1, 0),)
    assert (found.pod.waiting, found.pod.attempts) == (None, None)


def test_nodes_that_pass_one_rule_may_be_refused_by_the_next() -> None:
    nodes = [make_node(f"n{at}", cpu=1, taints=(Taint("gpu"),)) for at in range(3)]
    found = ask(waiting(LeastAllocated(), *nodes, cpu=2), "toleration+=gpu")
    assert found.summary == "it would fit on no node"
    assert found.rules == (RuleDifference("TaintToleration", 3, 0), RuleDifference("NodeResourcesFit", 0, 3))
    assert found.placement.answered == "noRoom"


def test_a_change_may_take_room_away() -> None:
    found = ask(waiting(LeastAllocated(), make_node("n")), "node=n,cordon=true")
    assert found.summary == "it would fit on no node any more"
    assert (found.with_room_before, found.with_room) == (1, 0)


def test_a_higher_priority_may_evict() -> None:
    world = waiting(LeastAllocated(), *NODES, pods=(BOUND,), node_selector=(("disk", "hdd"),))
    found = ask(world, "priority=5")
    assert found.summary == "it would fit on no node, unless pods of lower priority were evicted"
    assert found.pod.preemption is not None
    assert [each.name for each in found.pod.preemption.candidates[0].victims] == ["x"]


def test_a_gated_pod_would_be_placed_without_its_gates() -> None:
    found = ask(waiting(LeastAllocated(), make_node("n", cpu=0.5), gates=("g",)), "request.cpu=250m")
    assert found.summary == "once its gates are removed, it would be placed on node n"


def test_a_busy_faster_node_would_be_waited_for() -> None:
    learn = ExactSpeeds({"fast": 10.0})
    world = World(make_engine(Rosella(), learn), make_node("fast", cpu=1), make_node("slow", cpu=1))
    world.add(make_task("x"))
    assert world.node_of("x") == "fast"
    world.put_node(make_node("slow", cpu=1, taints=(Taint("gpu"),)))
    world.add(make_task("a"))
    found = ask(world, "node=slow,taint-=gpu")
    assert (found.placement.answered, found.placement.node) == ("defers", "fast")
    assert found.summary == "1 node would have room, and place/rosella would let it wait for node fast"


def test_a_node_that_is_added_is_as_fast_as_the_one_that_it_is_like() -> None:
    learn = ExactSpeeds({"fast": 10.0})
    nodes = [make_node("fast", cpu=1), make_node("slow", cpu=1)]
    world = World(make_engine(Rosella(), learn), *nodes)
    world.add(make_task("x"), make_task("y", node_name="slow"), make_task("a"))
    found = ask(world, "add-node-like=slow", "add-node-like=fast,count=2")
    assert found.summary == "it would be placed on node fast-like-0"
    assert [each.node for each in found.placement.candidates] == [
        "fast-like-0", "fast-like-1", "slow-like-0"
    ]  # fmt: skip


@pytest.mark.parametrize("place", [LeastAllocated(), Rosella()])
def test_more_nodes_than_the_arrays_have_rows(place: Place) -> None:
    world = waiting(place, *NODES, pods=(BOUND,), cpu=1)
    found = ask(world, "add-node-like=m,count=100")
    assert (found.with_room_before, found.with_room) == (0, 100)
    assert found.pod.funnel is not None
    assert found.pod.funnel.nodes == 102
    assert found.placement.answered == "places"
    assert world.engine.read(node_explanation, "m-like-0").conditions == ("unknown",)


# -- what cannot be answered -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node=q,cordon=true", "there is no node 'q'; there are m, n"),
        ("add-node-like=q", "there is no node 'q'; there are m, n"),
        ("node=m,taint-=gpu", "taint-=gpu: node 'm' has no such taint; it has none"),
        ("node=n,taint-=gpu:NoExecute", "has no such taint; it has gpu:NoSchedule, old:NoSchedule"),
        ("node=n,label-=rack", "label-=rack: node 'n' has no such label; it has disk, zone"),
        ("delete-pod=other/x", "there is no pod other/x that holds room on a node"),
        ("selector-=disk", "selector-=disk: the pod's nodeSelector has no such key; it has none"),
    ],
)
def test_what_does_not_exist_is_named_beside_what_does(text: str, message: str) -> None:
    with pytest.raises(QuestionError) as raised:
        ask(waiting(LeastAllocated(), *NODES, pods=(BOUND,)), text)
    assert message in str(raised.value)


def test_of_many_nodes_some_are_listed() -> None:
    world = small_world(make_engine(), nodes=20, cpu=1)
    world.add(make_task("a", cpu=2))
    with pytest.raises(QuestionError, match=r"there are n0, n1, .* and 12 more"):
        ask(world, "node=q,cordon=true")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (make_task("a", node="m"), "it is bound, has ended, waits for another one, or does not exist"),
        (make_task("a", profile="other"), "is not one that waits for this scheduler, which serves eclectus"),
        (make_task("a", cpu=9, deleting=True), "pod default/a is being deleted"),
        (make_task("b"), "does not exist"),
    ],
)
def test_only_of_pods_that_wait_here(task: Task, message: str) -> None:
    world = World(make_engine(), *NODES)
    world.step(TaskSeen(task))
    with pytest.raises(QuestionError, match=message):
        world.engine.read(what_if_explanation, ("default", "a"), Question(), 0.0)
