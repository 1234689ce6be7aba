"""How pools stand, and which come before a pod's own: in explanations of pods, and in metrics."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from builders import make_engine, make_node, make_task
from eclectus.cli.explain.explained_text import pod_lines
from eclectus.engine.engine import Engine
from eclectus.explain.pod import explain_pod
from eclectus.explain.pools import AHEAD_MOST, standings, standings_page
from eclectus.framework import Order
from eclectus.live.metrics_page import POOLS_MOST, AtScrape, pool_metrics, text
from eclectus.model.events import PoolSeen
from eclectus.model.explanation import PoolAhead, PoolsAhead
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from worlds import World

PAGE = Path(__file__).parents[2] / "docs" / "pools.md"


def cores(count: int) -> PoolAmounts:
    return PoolAmounts((("cpu", 1000 * count),))


def starved_world() -> World:
    """Pool b holds both cores; a, which has a minimum of one, waits; so does c, which may hold nothing."""
    world = World(make_engine(BestFit(), order=FairPools(), wait_limit=None), make_node(cpu=2))
    least, none = cores(1), cores(0)
    pools = Pool("a", min_share=least), Pool("b"), Pool("c", max_share=none)
    world.step(*(PoolSeen(Pool(**{**fields(pool), "namespaces": ("default",)})) for pool in pools))
    world.add(*(make_task(f"b{at}", asked_pool="b") for at in range(2)))
    world.add(make_task("a", asked_pool="a"), make_task("c", asked_pool="c"))
    world.sleep(31.0)
    return world


def fields(pool: Pool) -> dict[str, object]:
    return {name: getattr(pool, name) for name in pool.__struct_fields__}


def text_of(engine: Engine, name: str, now: float) -> list[str]:
    return list(pod_lines(explain_pod(engine, "default", name, now)))


def test_a_pod_that_waits_is_explained_with_what_its_pool_holds() -> None:
    world = starved_world()
    (line,) = (line for line in text_of(world.engine, "a", world.now) if line.startswith("Pool:"))
    assert line.split(maxsplit=1)[1] == (
        "a; holds 0 cpu of a share of 1, minimum 1; below its minimum for 31s"
    )


def test_a_pod_that_its_pool_has_no_room_for_says_so_first() -> None:
    world = starved_world()
    lines = text_of(world.engine, "c", world.now)
    assert any("waits for room in its pool" in line for line in lines)
    assert any("pool c holds 0m of at most 0m cpu" in line for line in lines)
    assert any("at most 0" in line for line in lines if line.startswith("Pool:"))


def ahead_of(world: World, name: str) -> tuple[PoolsAhead, ...]:
    return explain_pod(world.engine, "default", name, world.now).pools_ahead


def test_which_pools_come_before_a_pods_own_and_of_these_none_that_is_at_its_limit() -> None:
    world = starved_world()
    world.add(make_task("b2", asked_pool="b"))
    assert ahead_of(world, "b2") == (PoolsAhead("", (PoolAhead("a", waiting_pods=1, below_minimum=True),)),)
    lines = [each for each in text_of(world.engine, "b2", world.now) if each.startswith("Pool")]
    assert lines[1].split(maxsplit=2)[2] == "a (1 pod waits, below its minimum)"
    assert "\n\n" + "".join(f"    {line}\n" for line in lines) in PAGE.read_text(), "the page shows this"
    assert ahead_of(world, "a") == (), "nobody is served before it"
    assert ahead_of(world, "c") == (), "it waits for its limit, whoever is ahead"


def test_pools_ahead_are_named_level_by_level_the_neediest_first() -> None:
    world = World(make_engine(BestFit(), order=FairPools(), wait_limit=None), make_node(cpu=14))
    parents = {"x": "top", "y": "top", "z": "top", "below": "other"}
    pools = (*parents, "top", "other", "idle", *(f"p{at}" for at in range(6)))
    made = (Pool(name, parent=parents.get(name, ""), namespaces=("default",)) for name in pools)
    world.step(*(PoolSeen(pool) for pool in made))
    held = {"x": 3, "y": 1, "z": 3, "below": 1, "p0": 3, "p1": 2, "p2": 1}
    for name, count in held.items():
        world.add(*(make_task(f"{name}-{at}", asked_pool=name) for at in range(count)))
    waiting = (*parents, *(f"p{at}" for at in range(6)))
    world.add(*(make_task(f"waits-{name}", asked_pool=name) for name in waiting))
    world.add(make_task("asked", asked_pool="x"))
    of_root, of_top = ahead_of(world, "asked")
    assert [each.path for each in of_root.pools] == ["p3", "p4", "p5"], "they hold nothing"
    assert len(of_root.pools) == AHEAD_MOST
    assert of_root.not_listed == 4, "p2, other, p1 and p0 hold less than top"
    assert of_top == PoolsAhead("top", (PoolAhead("top/y", waiting_pods=1),))
    (line,) = (each for each in text_of(world.engine, "asked", world.now) if each.startswith("Pools ahead:"))
    assert line.endswith("p5 (1 pod waits), 4 more; in top: top/y (1 pod waits)")


def test_a_pool_without_an_object_is_named_with_the_namespace_of_its_pods() -> None:
    world = World(make_engine(BestFit(), order=FairPools(), wait_limit=None), make_node(cpu=1))
    world.step(PoolSeen(Pool("elsewhere")))
    world.add(replace(make_task("runs"), namespace="mine"))
    others = {"waits": "mine", "other": "theirs"}
    world.add(*(replace(make_task(name), namespace=namespace) for name, namespace in others.items()))
    (found,) = explain_pod(world.engine, "mine", "waits", world.now).pools_ahead
    assert found == PoolsAhead("default", (PoolAhead("default/theirs", "theirs", waiting_pods=1),))


def test_pods_that_no_node_could_run_are_ahead_of_nobody() -> None:
    world = starved_world()
    world.add(make_task("b2", asked_pool="b"), make_task("huge", cpu=9, asked_pool="a"))
    world.delete("a")
    assert ahead_of(world, "b2") == ()


@pytest.mark.parametrize("order", [FifoOrder(), HierarchicalShare()])
def test_an_order_that_compares_no_pools_has_none_ahead(order: Order) -> None:
    """The namespace of the other pod comes first by `h-drf`, which knows nothing of pools."""
    world = World(make_engine(BestFit(), order=order, wait_limit=None), make_node(cpu=1))
    world.step(PoolSeen(Pool("elsewhere")))
    world.add(make_task("runs"))
    world.add(make_task("waits"), replace(make_task("other"), namespace="theirs"))
    assert ahead_of(world, "waits") == ()


def test_pools_are_metrics() -> None:
    world = starved_world()
    found = world.engine.read(lambda state: list(standings(state, world.now)))
    registry = CollectorRegistry()
    registry.register(AtScrape(lambda: pool_metrics(found)))
    lines = text(registry).decode().splitlines()
    for line in (
        'eclectus_pool_held{pool="b",resource="cpu"} 2.0',
        'eclectus_pool_share{pool="a",resource="cpu"} 1.0',
        'eclectus_pool_demand{pool="a",resource="cpu"} 1.0',
        'eclectus_pool_waiting_pods{pool="a"} 1.0',
        'eclectus_pool_running_jobs{pool="b"} 2.0',
        'eclectus_pool_below_share_seconds{kind="minimum",pool="a"} 30.9',
        'eclectus_pool_below_share_seconds{kind="minimum",pool="b"} 0.0',
    ):
        assert line in lines


def test_pools_are_listed_page_by_page_in_the_order_of_their_paths() -> None:
    world = starved_world()
    read = world.engine.read
    first = read(standings_page, "", 2, world.now)
    assert ([each.path for each in first.items], first.left, first.last) == (["a", "b"], 1, "b")
    assert (first.items[0].waiting_pods, first.items[1].running_jobs) == (1, 2)
    last = read(standings_page, "b", 2, world.now)
    assert ([each.path for each in last.items], last.left) == (["c"], 0)
    everything = {each.path: each for each in read(lambda state: list(standings(state, world.now)))}
    assert {each.path: each for each in (*first.items, *last.items)} == everything


def test_many_pools_have_no_more_series_than_the_largest() -> None:
    world = World(make_engine(BestFit(), order=FairPools()), make_node(cpu=2))
    world.step(*(PoolSeen(Pool(f"p{at}", namespaces=("default",))) for at in range(300)))
    world.add(make_task("big", asked_pool="p299"), make_task("waits", cpu=9, asked_pool="p3"))
    found = world.engine.read(lambda state: list(standings(state, world.now)))
    by_name = {metric.name: metric for metric in pool_metrics(found)}
    waiting = {
        sample.labels["pool"]: sample.value for sample in by_name["eclectus_pool_waiting_pods"].samples
    }
    assert len(waiting) == POOLS_MOST + 1
    assert "p299" in waiting
    assert sum(waiting.values()) == 1
