"""Of a pod for which no node has room: which rules refuse, which nodes are nearest, what they lack."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.framework import Defer, Unschedulable, Wait
from eclectus.model.events import TaskSeen
from eclectus.model.explanation import FilterStep, Lack, NearMiss, OtherPod, Refusal
from eclectus.model.objects import HostPort, PodAffinityTerm, Requirement, SpreadConstraint, Taint, Term
from eclectus.policies.relieve.preemption import Preemption
from explain_questions import Answering, explain
from worlds import World, numbered, small_world

ZONE = Requirement("app", "In", ("web",))


def test_insufficient_room_names_the_rules_and_the_nearest_node() -> None:
    world = World(make_engine(), make_node("large", cpu=4), make_node("small", cpu=1))
    world.add(make_task("x", cpu=3.7))
    world.step(after=2.0)
    world.add(make_task("a", cpu=1.6))
    found = explain(world, "a", after=5.0)
    assert (found.state, found.summary) == ("unschedulable", "no node has room for it")
    assert found.waiting is not None
    assert (found.waiting.since, found.waiting.class_pods, found.waiting.ahead) == (5.0, 1, 0)
    assert found.funnel is not None
    assert found.funnel.steps == (
        FilterStep("NodeUnschedulable", 2),
        FilterStep("TaintToleration", 2),
        FilterStep("NodeResourcesFit", 0, (Refusal("Insufficient cpu", 2),)),
    )
    assert (found.funnel.nodes, found.funnel.feasible, found.funnel.with_room) == (2, 1, 0)
    assert found.funnel.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert found.nearest == (
        NearMiss("small", (Lack("NodeResourcesFit", "cpu", 600, permanent=True),)),
        NearMiss("large", (Lack("NodeResourcesFit", "cpu", 1300),), (OtherPod("default", "x"),)),
    )


@pytest.mark.parametrize(
    ("node", "task", "lack"),
    [
        ({"taints": (Taint("gpu"),)}, {}, Lack("TaintToleration", "tolerated taints", permanent=True)),
        ({"unschedulable": True}, {}, Lack("NodeUnschedulable", "spec.unschedulable=false", permanent=True)),
        ({}, {"node_selector": (("disk", "ssd"),)}, Lack("NodeAffinity", "disk=ssd", permanent=True)),
        (
            {},
            {"affinity": (Term((Requirement("disk", "In", ("ssd", "nvme")),)),)},
            Lack("NodeAffinity", "disk in (ssd, nvme)", permanent=True),
        ),
        ({}, {"node_name": "other"}, Lack("NodeName", "the requested node name", permanent=True)),
        ({"memory": 1}, {"memory": 3}, Lack("NodeResourcesFit", "memory", 2 * 2**30, permanent=True)),
        ({}, {"gpus": 1}, Lack("NodeResourcesFit", "gpu", 1, permanent=True)),
    ],
)
def test_what_no_pod_that_leaves_would_change(
    node: dict[str, object], task: dict[str, object], lack: Lack
) -> None:
    world = World(make_engine(), make_node("n", **node))  # type: ignore[arg-type]
    world.add(make_task("a", **task))  # type: ignore[arg-type]
    found = explain(world, "a")
    assert (found.state, found.summary) == ("unschedulable", "no node, however empty, could run it")
    assert found.nearest == (NearMiss("n", (lack,)),)
    assert found.funnel is not None
    assert (found.funnel.feasible, found.funnel.steps[-1].left) == (0, 0)


def test_the_nearest_nodes_are_those_that_lack_least() -> None:
    world = World(
        make_engine(),
        make_node("n0", cpu=1, taints=(Taint("t"),), labels={"zone": "b"}),
        make_node("n1", cpu=4, taints=(Taint("t"),), labels={"zone": "a"}),
        make_node("n2", cpu=3.5, labels={"zone": "a"}),
        make_node("n3", cpu=3, labels={"zone": "a"}),
    )
    world.add(make_task("a", cpu=4, node_selector=(("zone", "a"),)))
    assert [miss.node for miss in explain(world, "a").nearest] == ["n1", "n2", "n3"]


def test_of_very_many_affinity_terms_only_nodes_that_could_run_the_pod_are_near() -> None:
    world = World(
        make_engine(), make_node("far", labels={"disk": "hdd"}), make_node("n", labels={"disk": "d7"})
    )
    terms = tuple(Term((Requirement("disk", "In", (f"d{at}",)),)) for at in range(40))
    world.add(make_task("x", cpu=4, node_name="n"), make_task("a", affinity=terms))
    assert explain(world, "a").nearest == (
        NearMiss("n", (Lack("NodeResourcesFit", "cpu", 1000),), (OtherPod("default", "x"),)),
    )


def test_a_taken_port_names_the_pod_that_holds_it() -> None:
    world = small_world(make_engine())
    world.add(make_task("x", host_ports=(HostPort(80),)), make_task("y"))
    world.add(make_task("a", host_ports=(HostPort(80),)))
    (miss,) = explain(world, "a").nearest
    assert [lack.rule for lack in miss.lacks] == ["NodePorts"]
    assert miss.fits_without == (OtherPod("default", "x"),)


SPREAD = SpreadConstraint("zone", "default", (ZONE,), counts_itself=True)
APART = PodAffinityTerm("host", (ZONE,), ("default",))


@pytest.mark.parametrize(
    ("rules", "plugin", "reason"),
    [
        (
            {"spread": (SPREAD,), "topology_keys": ("zone",)},
            "PodTopologySpread",
            "node(s) didn't match pod topology spread constraints",
        ),
        (
            {"own_anti_affinity": (APART,), "anti_affinity_terms": (APART,)},
            "InterPodAffinity",
            "node(s) didn't match pod anti-affinity rules",
        ),
    ],
)
def test_rules_about_other_pods_name_their_plugin_and_the_pod(
    rules: dict[str, object], plugin: str, reason: str
) -> None:
    labels = (("app", "web"),)
    nodes = [make_node(f"n{at}", labels={"zone": f"z{at}", "host": f"h{at}"}) for at in range(2)]
    world = World(make_engine(), nodes[0])
    world.add(make_task("x", labels=labels))
    world.put_node(replace(nodes[1], unschedulable=True))
    world.add(make_task("a", labels=labels, **rules))  # type: ignore[arg-type]
    found = explain(world, "a")
    assert found.funnel is not None
    assert FilterStep(plugin, 0, (Refusal(reason, 1),)) in found.funnel.steps
    on_n0 = next(miss for miss in found.nearest if miss.node == "n0")
    assert on_n0.lacks == (Lack(plugin, reason),)


def test_room_that_is_held_for_a_pod_of_another_scheduler_is_in_the_way() -> None:
    world = small_world(make_engine(), cpu=1)
    world.step(TaskSeen(make_task("x", profile="other", nominated="n0", priority=3)))
    world.add(make_task("a"))
    (miss,) = explain(world, "a").nearest
    assert miss.fits_without == (OtherPod("default", "x", 3, nominated=True),)


def test_room_that_is_planned_for_others_is_in_the_way() -> None:
    policy = Answering(lambda task: Defer(task, Wait(row=0)) if task.name == "big" else Unschedulable(task))
    world = small_world(make_engine(policy, relieve=Preemption()), cpu=2)
    world.step(TaskSeen(make_task("x", profile="other", node="n0")))
    world.add(make_task("big", cpu=2))
    world.add(make_task("a", priority=5))
    found = explain(world, "a")
    assert [(miss.planned, miss.fits_without) for miss in found.nearest] == [(True, ())]
    assert found.preemption is not None
    assert found.preemption.reason == (
        "on 1 of the 1 nodes examined room is only planned for pods that wait: nobody is evicted for that"
    )


def test_more_pods_than_are_named_are_counted() -> None:
    world = small_world(make_engine(), cpu=8)
    world.add(*numbered(8, cpu=1))
    world.add(make_task("a", cpu=7))
    (miss,) = explain(world, "a").nearest
    assert (len(miss.fits_without), miss.not_listed) == (5, 2)


def test_without_nodes_the_message_is_kube_schedulers() -> None:
    world = World(make_engine())
    world.add(make_task("a"))
    found = explain(world, "a")
    assert found.funnel is not None
    assert (found.funnel.nodes, found.funnel.message) == (0, "no nodes available to schedule pods")


def test_a_feature_that_is_not_built_is_named() -> None:
    world = small_world(make_engine())
    world.add(make_task("a", unsupported=("pod groups",)))
    found = explain(world, "a")
    assert found.summary == "pod asks for pod groups, which Eclectus does not support yet"
    assert found.nearest == ()
