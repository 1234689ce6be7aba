"""Quotas by kind of node: limits narrow the nodes of a pool's pods, whatever places them."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Fault, RecordPool
from eclectus.model.events import GangSeen, NodeSeen, PoolGone, PoolSeen
from eclectus.model.objects import Gang, Requirement, Task, Term
from eclectus.model.pool import NodeAmounts, Pool, PoolAmounts
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.clwl import CentralLeastWait, DistributedLeastWait
from eclectus.policies.place.eagle import Eagle
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.hawk import Hawk
from eclectus.policies.place.jiq import JoinIdle
from eclectus.policies.place.kube import KubeScores
from eclectus.policies.place.power_of_two import PowerOfTwo, Uniform
from eclectus.policies.place.pss import Proportional
from eclectus.policies.place.round_robin import RoundRobin
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella
from gangs import key
from worlds import World

PLACES = pytest.mark.parametrize("place", [BestFit, KubeScores, Rosella, lambda: Uniform(queue="lines")])


def on(value: str, gpus: int = 0, **amounts: int) -> NodeAmounts:
    """Amounts on the nodes with this model of GPU."""
    named = {**({"gpu": gpus} if gpus >= 0 else {}), **amounts}
    return NodeAmounts("model", value, tuple(sorted(named.items())))


def by_node(*kinds: NodeAmounts, **amounts: int) -> PoolAmounts:
    return PoolAmounts(tuple(sorted(amounts.items())), by_node=kinds)


def team(name: str = "team", **fields: Any) -> Pool:
    return Pool(name, namespaces=("default",), **fields)


def gpu_world(*pools: Pool, a100: int = 4, h100: int = 4, **roles: Any) -> World:
    """Two nodes with four GPUs of one model, two with those of another, and these Pools."""
    roles = {"order": FairPools(), **roles}
    nodes = [
        make_node(f"{model}-{at}", cpu=64, gpus=gpus, labels={"model": model})
        for model, gpus in (("a100", a100), ("h100", h100))
        for at in range(2)
    ]
    world = World(make_engine(roles.pop("place", BestFit()), **roles), *nodes)
    world.step(*map(PoolSeen, pools))
    return world


def pod(name: str, pool: str = "team", gpus: int = 1, **fields: Any) -> Task:
    fields = {"created": float(name.lstrip("abcdefgh") or 0), **fields}
    return make_task(name, 1, gpus=gpus, asked_pool=pool, **fields)


def pods(count: int, prefix: str = "a", **fields: Any) -> list[Task]:
    return [pod(f"{prefix}{at}", **fields) for at in range(count)]


def held(world: World, model: str) -> int:
    """GPUs of this model on which pods are."""
    on_model = [name for name, node in world.placed().items() if node.startswith(model)]
    return sum(dict(world.tasks[name].spec.requests).get("gpu", 0) for name in on_model)


def first_on(world: World, model: str) -> str:
    return next(name for name, node in world.placed().items() if node.startswith(model))


def reasons(world: World) -> set[str]:
    world.sleep(3.0)
    return {each.reason for each in world.reports}


def faults(world: World) -> list[Fault]:
    return [each for each in world.faults if isinstance(each, Fault)]


@pytest.mark.parametrize("place", [BestFit, KubeScores, Rosella])
def test_a_pod_goes_to_another_kind_of_node_where_the_limit_of_one_is_reached(place: Any) -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 2))), place=place())
    world.add(*pods(10))
    assert (held(world, "a100"), held(world, "h100")) == (2, 8)


def test_pods_in_queues_of_nodes_that_a_limit_forbids_by_now_go_to_another_kind() -> None:
    """Each node can run all of them, so none waits for room."""
    pool = team(max_share=by_node(on("a100", 2)))
    world = gpu_world(pool, a100=16, h100=16, place=Uniform(queue="lines"))
    world.add(*pods(16))
    assert (held(world, "a100"), held(world, "h100")) == (2, 14)


NODE_QUEUES = [
    *(partial(Rosella, replan=False, compare=each) for each in ("sq", "wait", "sed")),
    partial(Rosella, view="sample"),
    partial(Rosella, view="sample", distinct=True, query="uniform"),
    *(partial(each, queue="lines") for each in (Uniform, PowerOfTwo, RoundRobin)),
    *(JoinIdle, Proportional, Sparrow, Hawk, Eagle, CentralLeastWait, DistributedLeastWait),
]


@pytest.mark.parametrize("estimate", [1.0, 1000.0])  # seconds: short tasks and long ones
@pytest.mark.parametrize("place", NODE_QUEUES)
def test_no_policy_sends_a_pod_to_the_queue_of_a_node_that_a_limit_forbids(
    place: Any, estimate: float
) -> None:
    """Pods of one job, which some policies place together: the first of them fill the limit."""
    world = gpu_world(team(max_share=by_node(on("a100", 2))), a100=8, h100=4, place=place())
    world.add(*pods(14, job="one", estimate=estimate))
    world.sleep(60.0)
    assert faults(world) == []
    assert (held(world, "a100"), held(world, "h100")) == (2, 8)


@pytest.mark.parametrize("place", NODE_QUEUES)
def test_where_every_node_is_forbidden_pods_wait_for_quota_and_not_in_the_queue_of_a_node(place: Any) -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 2), on("h100", 1))), a100=8, h100=8, place=place())
    world.add(*pods(6, job="one", estimate=1000.0))
    world.sleep(60.0)
    assert faults(world) == []
    assert (held(world, "a100"), held(world, "h100")) == (2, 1)
    assert not world.engine._state.node_queues.by_row
    assert reasons(world) == {"WaitingForQuota"}
    world.end(first_on(world, "h100"))
    world.sleep(1.0)
    assert (held(world, "a100"), held(world, "h100")) == (2, 1)


def test_a_pod_in_the_queue_of_a_busy_node_leaves_it_when_a_limit_forbids_the_node() -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 2))), a100=1, h100=0, place=Uniform(queue="lines"))
    world.add(*pods(4))
    world.sleep(3.0)
    assert held(world, "a100") == 2
    assert reasons(world) == {"WaitingForQuota"}
    world.put_node(make_node("h100-2", cpu=64, gpus=4, labels={"model": "h100"}))
    world.settle()
    assert held(world, "h100") == 2


@PLACES
@pytest.mark.parametrize("order", [FifoOrder, FairPools])
def test_a_pod_of_which_all_nodes_are_forbidden_waits_for_quota_until_one_ends(
    place: Any, order: Any
) -> None:
    pool = team(max_share=by_node(on("a100", 2), on("h100", 1)))
    world = gpu_world(pool, place=place(), order=order(), wait_limit=1.0)
    world.add(*pods(4))
    world.sleep(30.0)
    assert (held(world, "a100"), held(world, "h100")) == (2, 1)
    assert reasons(world) == {"WaitingForQuota"}
    assert world.reports[-1].message == (
        "pool team holds 2 of at most 2 gpu on nodes with model=a100; "
        "pool team holds 1 of at most 1 gpu on nodes with model=h100"
    )
    world.end(first_on(world, "h100"))
    world.sleep(1.0)
    assert (held(world, "a100"), held(world, "h100")) == (2, 1)


def test_full_nodes_beside_a_limit_are_no_quota() -> None:
    """An autoscaler may add nodes of the other kind."""
    world = gpu_world(team(max_share=by_node(on("a100", 2))))
    world.add(*pods(11))
    assert reasons(world) == {"Unschedulable"}
    message = world.reports[-1].message
    assert "2 Insufficient gpu" in message
    assert "2 node(s) with model=a100 where pool team is at its limit of gpu" in message


def test_pods_of_other_pools_and_pods_that_request_none_of_it_are_not_concerned() -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 1), on("h100", 0))), team("other"))
    world.add(
        *pods(3), *pods(4, "b", gpus=0), *pods(3, "c", pool="other"), *pods(1, "d", priority=2_000_000_000)
    )
    assert len(world.placed()) == 1 + 4 + 3 + 1


def test_a_limit_of_a_pool_above_counts_all_pools_below_and_all_resources_that_it_names() -> None:
    top = Pool("top", max_share=by_node(on("a100", 8, cpu=3000), on("h100", -1, pods=2)))
    world = gpu_world(top, team("a", parent="top"), team("b", parent="top"))
    world.add(*pods(4, "a", pool="a"), *pods(4, "b", pool="b"))
    assert (held(world, "a100"), held(world, "h100")) == (3, 2)


def test_a_pod_that_is_larger_than_a_limit_goes_elsewhere() -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 2))))
    world.add(pod("a", gpus=3))
    assert (held(world, "a100"), held(world, "h100")) == (0, 3)


def test_a_gang_starts_whole_within_limits_by_node_or_not_at_all() -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 2), on("h100", 1))))
    members = [replace(each, gang=key("g")) for each in pods(4)]
    world.step(GangSeen(Gang(key("g"), 4)))
    world.add(*members)
    world.sleep(20.0)
    assert world.placed() == {}
    assert "WaitingForQuota" in reasons(world)
    world.step(PoolSeen(team(max_share=by_node(on("a100", 2), on("h100", 2)))))
    world.sleep(60.0)
    assert (held(world, "a100"), held(world, "h100")) == (2, 2)


def test_limits_follow_the_pool_its_pods_and_its_nodes() -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 1), on("h100", 0))))
    world.add(*pods(4))
    assert (held(world, "a100"), held(world, "h100")) == (1, 0)
    world.step(PoolSeen(team(max_share=by_node(on("a100", 2), on("h100", 0)))))
    world.settle()
    assert held(world, "a100") == 2
    world.step(NodeSeen(make_node("h100-0", cpu=64, gpus=4, labels={"model": "b200"})))
    world.settle()
    assert (held(world, "a100"), held(world, "h100")) == (2, 2)  # of which the limit is not any more
    world.end(first_on(world, "a100"))
    world.add(*pods(2, "b"))
    assert (held(world, "a100"), held(world, "h100")) == (1, 4)


def test_pods_that_run_already_count_when_a_limit_comes_and_none_is_left_when_the_pool_goes() -> None:
    world = gpu_world(team())
    selects = (("model", "a100"),)
    world.add(*pods(3, node_selector=selects))
    world.step(PoolSeen(team(max_share=by_node(on("a100", 4)))))
    world.add(*pods(3, "b", node_selector=selects))
    assert held(world, "a100") == 4
    world.step(PoolGone("team"))
    world.sleep(1.0)
    assert held(world, "a100") == 6
    state = world.engine._state
    assert all(not task.spec.quotas for task in state.placed.tasks())
    assert not state.cluster.pods.of_quota


def test_without_such_a_field_no_spec_has_quotas_and_nothing_is_counted() -> None:
    world = gpu_world(team(max_share=PoolAmounts((("gpu", 99),))))
    world.add(*pods(20))
    state = world.engine._state
    assert not any(task.spec.quotas for task in (*state.pending.values(), *state.placed.tasks()))
    assert not state.cluster.pods.of_quota


def test_two_profiles_are_held_by_one_limit() -> None:
    profiles = [make_profile(BestFit(), order=FairPools()), make_profile(Uniform(queue="lines"), "other")]
    node = make_node("a100-0", cpu=64, gpus=8, labels={"model": "a100"})
    world = World(Engine(profiles, Unlearned(), 1), node)
    world.step(PoolSeen(team(max_share=by_node(on("a100", 3)))))
    world.add(*pods(3), *pods(3, "b", profile="other"))
    assert held(world, "a100") == 3


def test_a_pod_of_higher_priority_evicts_one_of_its_own_pool_where_that_holds_the_limit() -> None:
    world = gpu_world(team(max_share=by_node(on("a100", 2), on("h100", 0))), relieve=Preemption())
    world.add(*pods(2))
    world.add(pod("b", priority=10))
    world.sleep(60.0)
    assert len(world.victims()) == 1
    assert "b" in world.placed()
    assert held(world, "a100") == 2


def test_pods_of_other_pools_are_not_evicted_for_a_pod_at_its_limit() -> None:
    world = gpu_world(
        team(max_share=by_node(on("a100", 1), on("h100", 0))), team("other"), relieve=Preemption()
    )
    world.add(*pods(1), *pods(15, "c", pool="other"))
    world.add(pod("b", priority=0))
    world.sleep(60.0)
    assert world.victims() == []


def test_a_minimum_of_a_kind_comes_first_for_pods_that_can_run_on_no_other() -> None:
    pools = team("a", min_share=by_node(on("a100", 3))), team("b", weight=99)
    world = gpu_world(*pools, h100=0)
    term = Term((Requirement("model", "In", ("a100",)),))
    world.add(*pods(8, "b", pool="b"), *pods(4, "a", pool="a", affinity=(term,)))
    of_a = [name for name in world.placed() if name[0] == "a"]
    assert len(of_a) == 3


def test_what_is_held_of_a_kind_is_recorded() -> None:
    world = gpu_world(team(min_share=by_node(on("h100", 1)), max_share=by_node(on("a100", 2))))
    world.add(*pods(5))
    records = [each for each in world.step(after=20.0) if isinstance(each, RecordPool)]
    assert records[-1].record.held_by_node == (on("a100", 2), on("h100", 3))
