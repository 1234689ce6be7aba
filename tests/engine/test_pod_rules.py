"""Topology spread and inter-pod affinity in the engine: a placement counts for the next, and wakes pods."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Report
from eclectus.model.events import BindConfirmed, NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import PodAffinityTerm, Requirement, SpreadConstraint, Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.rosella import Rosella
from worlds import World

WEB = (("app", "web"),)
OF_WEB = (Requirement("app", "In", ("web",)),)
BY_ZONE = SpreadConstraint("zone", "default", OF_WEB, counts_itself=True)
NEAR_WEB = PodAffinityTerm("zone", OF_WEB, ("default",))
ALONE = PodAffinityTerm("host", OF_WEB, ("default",))
ZONES = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
NODES = [
    NodeSeen(make_node(name, cpu=99, labels={"zone": zone, "host": name})) for name, zone in ZONES.items()
]
POLICIES = [Rosella, LeastAllocated, PowerOfTwo]


def spread(name: str, **fields: Any) -> Task:
    return make_task(name, labels=WEB, spread=(BY_ZONE,), topology_keys=("zone",), **fields)


def near(name: str, *, itself: bool = False, **fields: Any) -> Task:
    labels = WEB if itself else (("app", "db"),)
    rules = {"affinity_terms": (NEAR_WEB,), "topology_keys": ("zone",), "matches_itself": itself}
    return make_task(name, labels=labels, **rules, **fields)


def alone(name: str, **fields: Any) -> Task:
    return make_task(name, labels=WEB, own_anti_affinity=(ALONE,), anti_affinity_terms=(ALONE,), **fields)


def running(task: Task, node: str) -> TaskSeen:
    return TaskSeen(replace(task, node=node, profile="another", phase="Running"))


def bound(commands: Any) -> dict[str, str]:
    return {command.name: command.node for command in commands if isinstance(command, Bind)}


def step_until_quiet(engine: Engine, events: list[Any], now: float) -> dict[str, str]:
    """Confirm what is bound until nothing more is."""
    found: dict[str, str] = {}
    while True:
        binds = [each for each in engine.step(events, now) if isinstance(each, Bind)]
        if not binds:
            return found
        found.update(bound(binds))
        events, now = [BindConfirmed(bind.uid, bind.node) for bind in binds], now + 0.001


@pytest.mark.parametrize("policy", POLICIES)
def test_pods_of_one_step_are_spread_evenly(policy: Any) -> None:
    engine = make_engine(policy())
    pods = [TaskSeen(spread(f"p{at}")) for at in range(30)]
    placed = step_until_quiet(engine, [*NODES, *pods, Resumed()], 0.0)
    assert Counter(ZONES[node] for node in placed.values()) == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize("policy", [*POLICIES, Sparrow])
def test_no_two_pods_that_keep_each_other_away_share_a_node(policy: Any) -> None:
    engine = make_engine(policy())
    placed = step_until_quiet(
        engine, [*NODES, *(TaskSeen(alone(f"p{at}")) for at in range(6)), Resumed()], 0.0
    )
    assert sorted(placed.values()) == sorted(ZONES)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_first_of_pods_that_want_each_other_chooses_the_zone_for_all(policy: Any) -> None:
    engine = make_engine(policy())
    pods = [TaskSeen(near(f"p{at}", itself=True)) for at in range(8)]
    placed = step_until_quiet(engine, [*NODES, *pods, Resumed()], 0.0)
    assert len(placed) == 8
    assert len({ZONES[node] for node in placed.values()}) == 1


@pytest.mark.parametrize("first", [0, 1], ids=["it comes first", "it comes second"])
def test_a_pod_that_is_placed_in_the_same_cycle_keeps_others_away(first: int) -> None:
    """The pod that is kept away has no rule of its own."""
    engine = make_engine()
    pods = [TaskSeen(alone("keeps-away")), TaskSeen(make_task("kept-away", labels=WEB))]
    events = [NODES[0], *pods[first:], *pods[:first], Resumed()]
    placed = step_until_quiet(engine, events, 0.0)
    assert len(placed) == 1


def test_a_pod_waits_for_a_pod_to_be_near_and_is_woken_by_it() -> None:
    engine = make_engine()
    assert not step_until_quiet(engine, [*NODES, TaskSeen(near("p")), Resumed()], 0.0)
    assert not step_until_quiet(engine, [running(make_task("db", labels=(("app", "db"),)), "b1")], 1.0)
    woken = step_until_quiet(engine, [running(make_task("web", labels=WEB), "b1")], 2.0)
    assert woken == {"p": "b1"}


def test_a_pod_that_ends_elsewhere_opens_a_zone() -> None:
    """Its node has no room for the pod that waits: the zone's other node has."""
    world = World(make_engine())
    for event in NODES[:3]:
        world.put_node(event.node)
    world.put_node(make_node("full", cpu=1, labels={"zone": "a"}))
    world.add(replace(make_task("b0", labels=WEB), node="b1", phase="Running"))
    world.add(replace(make_task("a0", labels=WEB), node="full", phase="Running"))
    world.add(replace(make_task("a1", labels=WEB), node="a1", phase="Running"))
    waits = spread("p", node_selector=(("zone", "a"),))
    constraint = replace(BY_ZONE, honors_affinity=False)
    world.add(replace(waits, spec=replace(waits.spec, spread=(constraint,))))
    assert not world.node_of("p")
    world.delete("a0")
    assert world.node_of("p") in ("a1", "a2")


def test_a_zone_that_catches_up_opens_the_others() -> None:
    engine = make_engine()
    full = [running(make_task(f"{name}-web", labels=WEB), name) for name in ("a1", "b1")]
    pinned = spread("p", node_selector=(("zone", "a"),))
    constraint = replace(BY_ZONE, honors_affinity=False)
    pinned = replace(pinned, spec=replace(pinned.spec, spread=(constraint,)))
    assert not step_until_quiet(engine, [*NODES, *full, TaskSeen(pinned), Resumed()], 0.0)
    woken = step_until_quiet(engine, [running(make_task("c", labels=WEB), "c1")], 1.0)
    assert set(woken) == {"p"}


def test_labels_that_change_count() -> None:
    engine = make_engine()
    other = make_task("w")
    assert not step_until_quiet(engine, [*NODES, running(other, "c1"), TaskSeen(near("p")), Resumed()], 0.0)
    assert step_until_quiet(engine, [running(replace(other, labels=WEB), "c1")], 1.0) == {"p": "c1"}


def test_the_messages_are_kube_schedulers() -> None:
    engine = make_engine()
    placed = [running(alone(f"{name}-web"), name) for name in ZONES]
    commands = list(engine.step([*NODES, *placed, TaskSeen(alone("p")), Resumed()], 0.0))
    commands += engine.step([], 5.0)
    (message,) = (each.message for each in commands if isinstance(each, Report))
    assert message.startswith("0/4 nodes are available: 4 node(s) didn't match pod anti-affinity rules.")
