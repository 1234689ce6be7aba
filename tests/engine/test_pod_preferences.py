"""Preferences about other pods in the engine: a placement counts for the next, and no pod is held back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.framework import Place
from eclectus.model.commands import Bind
from eclectus.model.events import NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import PodAffinityTerm, Requirement, SpreadConstraint, Task, WeightedTerm
from eclectus.policies.place.allocation import LeastAllocated, MostAllocated
from eclectus.policies.place.kube import KubeScores
from eclectus.policies.rosella import Rosella
from worlds import World

WEB = (("app", "web"),)
OF_WEB = (Requirement("app", "In", ("web",)),)
NEAR = PodAffinityTerm("zone", OF_WEB, ("default",))
APART = PodAffinityTerm("host", OF_WEB, ("default",))
SPREAD = SpreadConstraint("zone", "default", OF_WEB, counts_itself=True)
ZONES = {"a1": "a", "a2": "a", "b1": "b", "c1": "c"}
NODES = [make_node(name, cpu=16, labels={"zone": zone, "host": name}) for name, zone in ZONES.items()]
POLICIES = [Rosella, LeastAllocated, MostAllocated, KubeScores]


def web(name: str, **fields: Any) -> Task:
    return make_task(name, labels=WEB, **fields)


@pytest.mark.parametrize("policy", POLICIES)
def test_pods_with_soft_spread_are_spread_over_zones(policy: type[Place]) -> None:
    world = World(make_engine(policy()), *NODES)
    world.add(*(web(f"p{at}", cpu=0.1, preferred_spread=(SPREAD,)) for at in range(30)))
    zones = Counter(ZONES[node] for node in world.placed().values())
    assert max(zones.values()) - min(zones.values()) <= 1, zones


@pytest.mark.parametrize("policy", POLICIES)
def test_pods_that_prefer_to_be_apart_share_a_node_only_where_they_must(policy: type[Place]) -> None:
    world = World(make_engine(policy()), *NODES)
    apart = (WeightedTerm(-100, APART),)
    world.add(*(web(f"p{at}", cpu=1, preferred_terms=apart) for at in range(4)))
    assert sorted(world.placed().values()) == sorted(ZONES)
    world.add(web("fifth", cpu=1, preferred_terms=apart))
    assert world.node_of("fifth")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_pod_goes_where_the_pods_are_that_it_prefers(policy: type[Place]) -> None:
    world = World(make_engine(policy()), *NODES)
    world.add(web("first", node_name="b1"))
    near = (WeightedTerm(100, NEAR),)
    world.add(*(make_task(f"p{at}", preferred_terms=near) for at in range(3)))
    assert {world.node_of(f"p{at}") for at in range(3)} == {"b1"}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("fields", "zones"),
    [
        ({"preferred_terms": (WeightedTerm(50, NEAR),)}, {"c"}),
        ({"affinity_terms": (NEAR,)}, {"c"}),
        ({"preferred_terms": (WeightedTerm(-50, NEAR),)}, {"a", "b"}),
    ],
)
def test_pods_there_attract_the_pods_that_their_terms_match(
    policy: type[Place], fields: dict[str, Any], zones: set[str]
) -> None:
    engine = make_engine(policy())
    there = replace(make_task("there", **fields), node="c1", profile="another", phase="Running")
    # The pod that waits is seen first: the terms of others are new to it.
    engine.step([*map(NodeSeen, NODES), TaskSeen(web("p")), TaskSeen(there)], 0.0)
    (bind,) = (each for each in engine.step([Resumed()], 1.0) if isinstance(each, Bind))
    assert ZONES[bind.node] in zones


def test_a_pod_that_prefers_full_nodes_takes_another() -> None:
    world = World(make_engine(Rosella()), make_node("full", cpu=1, labels={"zone": "a"}), NODES[2])
    world.add(web("first", node_name="full", long_running=True))
    world.add(make_task("p", preferred_terms=(WeightedTerm(100, NEAR),)))
    assert world.node_of("p") == "b1"


def test_pods_without_such_preferences_are_placed_as_before() -> None:
    def placed(*others: Task) -> dict[str, str]:
        world = World(make_engine(Rosella()), *NODES)
        world.add(*others)
        world.add(*(make_task(f"p{at}", cpu=1) for at in range(20)))
        return {name: node for name, node in world.placed().items() if name.startswith("p")}

    prefers = make_task("other", cpu=1, node_name="a1", preferred_terms=(WeightedTerm(5, NEAR),))
    assert placed(prefers) == placed(make_task("other", cpu=1, node_name="a1"))
