"""Pools: which pod is in which, what limits do to any kind of placement, and in which order pods start."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.engine.queues.head_heap import PathHeap
from eclectus.framework import Profile, Reason, Wait
from eclectus.model.commands import RecordPool
from eclectus.model.events import (
    BindConfirmed,
    GangSeen,
    NamespaceSeen,
    NodeSeen,
    PoolGone,
    PoolSeen,
    Resumed,
    TaskSeen,
)
from eclectus.model.objects import Gang, Requirement, Task
from eclectus.model.pool import NodeAmounts, Pool, PoolAmounts
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.power_of_two import Uniform
from eclectus.policies.relieve.preemption import Preemption
from gangs import key
from worlds import World

SYSTEM = 2_000_001_000
ORDERS = pytest.mark.parametrize("order", [FifoOrder, FairPools, DominantShare])


def amounts(cpu: float = 0, percent: float | None = None, **others: int) -> PoolAmounts:
    """Amounts with cores."""
    named = {**({"cpu": int(cpu * 1000)} if cpu else {}), **others}
    return PoolAmounts(tuple(sorted(named.items())), percent)


def pool_world(*pools: Pool, cpu: float = 10, **roles: Any) -> World:
    """A node of ten cores and these Pools."""
    roles = {"order": FairPools(), **roles}
    world = World(make_engine(roles.pop("place", BestFit()), **roles), make_node("n", cpu=cpu))
    world.step(*map(PoolSeen, pools))
    return world


def pod(name: str, pool: str = "", cpu: float = 1, **fields: Any) -> Task:
    """A pod of the namespace `default` that asks for a pool, if it is given."""
    return make_task(name, cpu, **{"asked_pool": pool, "created": float(len(name)), **fields})


def mine(name: str, **fields: Any) -> Pool:
    """A pool that the namespace of all these pods may use."""
    return Pool(name, namespaces=("default",), **fields)


def pool_of(world: World, name: str) -> str:
    state = world.engine._state
    task = state.pending.get(f"uid-{name}") or state.placed.task(f"uid-{name}")
    assert task is not None
    return task.pool


# -- membership --------------------------------------------------------------------------------------


def test_without_a_pool_no_pod_is_in_one_and_the_first_pool_puts_every_pod_into_one() -> None:
    world = pool_world()
    world.add(pod("a"), pod("b", cpu=99))
    assert (pool_of(world, "a"), pool_of(world, "b")) == ("", "")
    world.step(PoolSeen(mine("team")))
    assert (pool_of(world, "a"), pool_of(world, "b")) == ("default/default", "default/default")
    world.step(PoolGone("team"))
    assert (pool_of(world, "a"), pool_of(world, "b")) == ("", "")


def test_a_label_counts_where_its_pool_admits_the_namespace() -> None:
    world = pool_world(Pool("research"), mine("vision", parent="research"), Pool("theirs", namespaces=("x",)))
    world.add(pod("a", "vision"), pod("b", "theirs"), pod("c", "nowhere"), pod("d", "research"))
    assert [pool_of(world, name) for name in "abcd"] == ["research/vision", *["default/default"] * 3]


def test_a_pool_selects_namespaces_by_their_labels() -> None:
    selector = (Requirement("team", "In", ("blue",)),)
    world = pool_world(Pool("blue", selector=selector))
    world.add(pod("a", "blue"))
    assert pool_of(world, "a") == "default/default"
    world.step(NamespaceSeen("default", (("team", "blue"),)))
    assert pool_of(world, "a") == "blue"


def test_a_namespace_names_its_pool_and_its_pods_recover_from_its_loss() -> None:
    world = pool_world(Pool("team"))
    world.step(NamespaceSeen("default", pool="team"))
    world.add(pod("a"))
    assert pool_of(world, "a") == "team"
    world.step(PoolGone("team"), PoolSeen(Pool("other")))
    assert pool_of(world, "a") == "recovery"
    world.step(PoolSeen(Pool("team")))
    assert pool_of(world, "a") == "team"


def test_pools_that_form_a_cycle_or_lack_a_parent_are_not_valid() -> None:
    world = pool_world(Pool("a", parent="b"), Pool("b", parent="a"), Pool("c", parent="gone"), mine("d"))
    for name in "abc":
        world.step(NamespaceSeen("default", pool=name))
        world.add(pod(f"p{name}"))
        assert pool_of(world, f"p{name}") == "recovery"


def test_a_pool_that_gets_another_parent_takes_its_pods_along() -> None:
    """What they hold counts for the new one at once, and its limit holds."""
    one, two = Pool("one", max_share=amounts(pods=2)), Pool("two", max_share=amounts(pods=5))
    world = pool_world(one, two, mine("team", parent="one"), mine("other", parent="two"))
    world.add(*(pod(f"t{at}", "team") for at in range(9)))
    assert len(world.placed()) == 2
    world.step(PoolSeen(mine("team", parent="two")))
    world.settle()
    world.add(pod("o", "other"))
    assert (pool_of(world, "t0"), pool_of(world, "t8")) == ("two/team", "two/team")
    assert sorted(world.placed()) == [f"t{at}" for at in range(5)]
    usage = world.engine._state.pools.usage
    assert (usage.held("one").get("pods", 0), usage.held("two")["pods"]) == (0, 5)


def test_pods_of_the_system_stand_above_the_tree() -> None:
    world = pool_world(mine("default", max_share=amounts(pods=0)))
    world.add(pod("a", priority=SYSTEM), pod("b", priority=10**9))
    assert world.placed() == {"a": "n"}


def test_many_pods_change_pools_in_slices_and_nothing_is_decided_between() -> None:
    world = pool_world(cpu=5)
    world.add(*(pod(f"p{at}", cpu=9) for at in range(1_500)))
    world.step(PoolSeen(mine("default", max_share=amounts(pods=3))), PoolSeen(mine("team")))
    assert world.engine.next_step_at() == world.now, "it goes on at once"
    world.step()
    assert {task.pool for task in world.engine._state.pending.values()} == {"default/default"}


def test_a_namespace_that_changes_pools_takes_five_thousand_pods_along_in_slices() -> None:
    """Nothing starts before the last one has: `small` has room, and is in a suspended pool until then."""
    world = pool_world(Pool("old"), Pool("new"))
    world.step(NamespaceSeen("default", pool="old"))
    world.add(pod("runs"))
    world.step(PoolSeen(Pool("old", suspended=True)))
    world.add(pod("small"), *(pod(f"p{at}", cpu=99) for at in range(4_998)))

    def moved() -> int:
        state = world.engine._state
        known = (*state.pending.values(), *state.placed.tasks())
        return len({task.uid for task in known if task.pool == "new"})

    world.step(NamespaceSeen("default", pool="new"))
    counts = [0, moved()]
    while counts[-1] < 5_000:
        assert world.engine.next_step_at() == world.now, "it goes on at once"
        assert len(world.binds) == 1
        world.step()
        counts.append(moved())
    assert counts == [0, 1_000, 2_000, 3_000, 4_000, 5_000]
    world.settle()
    assert set(world.placed()) == {"runs", "small"}
    assert world.engine._state.pools.usage.held("new") == {"cpu": 2_000, "pods": 2}


def test_pools_that_change_all_the_time_keep_no_pod_from_starting() -> None:
    world = pool_world(mine("team"))
    world.add(*(pod(f"p{at}", cpu=99) for at in range(1_500)), pod("small"))
    for at in range(4):
        world.step(PoolSeen(mine(f"more{at}")), TaskSeen(pod(f"s{at}", cpu=0.1)))
    world.settle()
    assert len(world.binds) >= 3


# -- limits ----------------------------------------------------------------------------------------------


@ORDERS
def test_no_more_pods_start_than_a_pool_may_hold_however_long_the_others_wait(
    order: Any,
) -> None:
    world = pool_world(mine("default", max_share=amounts(pods=2)), order=order(), wait_limit=10.0)
    world.add(*(pod(f"p{at}") for at in range(5)))
    assert len(world.placed()) == 2
    world.sleep(100.0)
    assert len(world.placed()) == 2
    world.end("p0")
    assert len(world.placed()) == 2


@ORDERS
def test_a_pod_that_waits_for_its_pool_says_so_whether_there_is_room_or_not(order: Any) -> None:
    world = pool_world(mine("default", max_share=amounts(cpu=2)), order=order(), cpu=2)
    world.add(pod("a", cpu=2), pod("b"))
    world.sleep(60.0)
    assert world.messages("b") == [("WaitingForQuota", "pool default holds 2000m of at most 2000m cpu")]


@ORDERS
def test_a_smaller_pod_passes_one_that_its_pool_has_no_room_for(order: Any) -> None:
    world = pool_world(mine("default", max_share=amounts(cpu=3)), order=order())
    world.add(pod("a", cpu=2))
    world.add(pod("bb", cpu=2), pod("ccc", cpu=1))
    assert set(world.placed()) == {"a", "ccc"}


@ORDERS
def test_a_limit_of_jobs(order: Any) -> None:
    """Of the parent of two pools: the eldest jobs run, and a pod of a running job needs no room."""
    world = pool_world(
        Pool("all", running_jobs_most=2), mine("x", parent="all"), mine("y", parent="all"), order=order()
    )
    world.add(pod("a", "x", job="1"))
    world.add(pod("b", "y", job="2"))
    world.add(pod("c", "x", job="3"), pod("d", "y", job="4"), pod("e", "x", job="1"))
    assert set(world.placed()) == {"a", "b", "e"}
    world.sleep(5.0)
    assert world.messages("c") == [("WaitingForQuota", "pool all runs 2 of at most 2 jobs")]
    world.end("b")
    assert set(world.placed()) == {"a", "e", "c"}


@ORDERS
def test_nothing_of_a_suspended_pool_starts(order: Any) -> None:
    world = pool_world(mine("default", suspended=True), order=order())
    world.add(pod("a"))
    world.sleep(5.0)
    assert world.messages("a") == [("WaitingForQuota", "pool default is suspended")]
    world.step(PoolSeen(mine("default")))
    world.settle()
    assert world.node_of("a") == "n"


def test_a_gang_starts_whole_or_not_at_all() -> None:
    world = pool_world(mine("default", max_share=amounts(pods=2)))
    world.step(GangSeen(Gang(key("g"), 4)))
    world.add(*(pod(f"g{at}", gang=key("g")) for at in range(4)))
    world.sleep(5.0)
    assert world.placed() == {}
    reason, message = world.messages("g0")[-1]
    assert reason == "WaitingForQuota"
    assert message == "PodGroup default/g: pool default holds 0 of at most 2 pods; 4 pods that start together"
    world.step(PoolSeen(mine("default", max_share=amounts(pods=4))))
    world.sleep(20.0)
    assert len(world.placed()) == 4


@pytest.mark.parametrize("members", [2, 4])
def test_a_gang_within_the_limit_starts_in_one_step(members: int) -> None:
    world = pool_world(mine("default", max_share=amounts(pods=2)))
    world.step(GangSeen(Gang(key("g"), members)))
    world.step(*(TaskSeen(pod(f"g{at}", gang=key("g"))) for at in range(members)))
    assert len(world.binds) == (2 if members == 2 else 0)


def test_a_gang_within_the_limit_starts_beside_singles() -> None:
    """Singles pass a gang for which the pool has no room; once both have ended, the gang starts whole."""
    world = pool_world(mine("default", max_share=amounts(pods=2)))
    world.step(GangSeen(Gang(key("g"), 2)))
    world.add(pod("s1"), pod("s2"))
    world.add(*(pod(f"g{at}", gang=key("g"), created=3.0) for at in range(2)), pod("s3", created=4.0))
    assert set(world.placed()) == {"s1", "s2"}
    world.end("s1")
    assert set(world.placed()) == {"s2", "s3"}
    world.end("s2")
    world.end("s3")
    world.sleep(20.0)
    assert set(world.placed()) == {"g0", "g1"}


def test_two_profiles_are_held_by_one_limit() -> None:
    profiles: list[Profile] = [
        make_profile(BestFit(), "eclectus"),
        make_profile(Uniform(queue="lines"), "other"),
    ]
    world = World(Engine(profiles, Unlearned(), 1), make_node("n", cpu=9))
    world.step(PoolSeen(mine("default", max_share=amounts(pods=3))))
    world.add(*(pod(f"p{at}", profile=("eclectus", "other")[at % 2]) for at in range(8)))
    assert len(world.placed()) == 3


def test_pods_in_node_queues_start_within_the_limit() -> None:
    world = pool_world(
        mine("default", max_share=amounts(pods=2)), order=FifoOrder(), place=Uniform(queue="lines"), cpu=1
    )
    world.add(*(pod(f"p{at}") for at in range(4)))
    assert len(world.placed()) == 1
    world.step(PoolSeen(mine("default", max_share=amounts(pods=1))))
    world.put_node(make_node("n", cpu=9))
    assert len(world.placed()) == 1
    world.end(next(iter(world.placed())))
    assert len(world.placed()) == 1


def test_no_pod_is_evicted_for_one_that_its_pool_has_no_room_for() -> None:
    world = pool_world(mine("default", max_share=amounts(cpu=2)), relieve=Preemption(), cpu=2)
    world.add(pod("a", cpu=2))
    world.add(pod("b", priority=5))
    world.sleep(60.0)
    assert world.victims() == []


@pytest.mark.parametrize(
    "lowered", [{"suspended": True}, {"max_share": amounts(6)}, {"running_jobs_most": 1}]
)
def test_a_limit_that_is_lowered_takes_a_nomination_back(lowered: Any) -> None:
    world = pool_world(mine("team"), relieve=Preemption())
    world.terminates_at_once = False
    world.add(pod("low", "team", cpu=6), pod("other", "team", cpu=4))
    world.add(pod("high", "team", cpu=4, priority=5))
    victims = world.victims()
    assert world.tasks["high"].nominated == "n"
    assert len(victims) == 1
    world.step(PoolSeen(mine("team", **lowered)))
    world.delete(*victims)
    assert "high" not in world.placed()
    assert world.tasks["high"].nominated == ""
    world.step(PoolSeen(mine("team")))
    world.sleep(1)
    assert world.node_of("high") == "n"


def test_a_bind_that_is_answered_and_not_seen_yet_is_no_nomination_though_its_pool_goes() -> None:
    here = PoolAmounts(by_node=(NodeAmounts("zone", "z1", (("cpu", 4000),)),))
    engine = make_engine(BestFit(), order=FairPools())
    node = make_node("n", cpu=4, labels={"zone": "z1"})
    engine.step([NodeSeen(node), PoolSeen(mine("team", max_share=here)), Resumed()], 0.0)
    (bind,) = engine.step([TaskSeen(pod("a", "team"))], 1.0)
    engine.step([BindConfirmed(bind.uid, bind.node)], 2.0)
    engine.step([PoolGone("team")], 3.0)
    assert not engine._state.placed.is_nominated("uid-a")
    assert engine._state.placed.node_of("uid-a") == "n"


def test_pods_that_come_into_a_pool_may_be_evicted_for_one_of_it_that_found_nobody_before() -> None:
    world = pool_world(mine("team"), mine("other"), relieve=Preemption(), cpu=2)
    world.add(pod("a", "team"), pod("b", "team"))
    world.add(pod("high", priority=5))
    world.sleep(60.0)
    assert world.victims() == []
    world.step(PoolGone("team"))  # its pods are in the pool of their namespace then
    world.sleep(60.0)
    assert world.node_of("high") == "n"


def test_a_pool_with_nobody_to_evict_is_in_no_other_pools_way() -> None:
    world = pool_world(mine("one"), mine("two"), relieve=Preemption(), cpu=2)
    world.add(pod("low", "two"), pod("lower", "two"))
    world.add(pod("highest", "one", priority=9), pod("high", "two", priority=5))
    world.sleep(60.0)
    assert world.placed().keys() >= {"high"}
    assert "highest" not in world.placed()


def test_a_bind_that_is_refused_gives_its_room_in_the_pool_back() -> None:
    world = pool_world(mine("default", max_share=amounts(pods=1)), order=FifoOrder())
    world.refuse = lambda bind: "conflict" if bind.name == "a" else ""
    world.add(pod("a"), pod("bb"))
    world.sleep(0.5)
    assert world.placed() == {"bb": "n"}


def test_a_percentage_follows_the_nodes() -> None:
    world = pool_world(
        Pool("all", max_share=amounts(percent=50.0)),
        mine("team", parent="all", max_share=amounts(percent=40)),
    )
    world.add(*(pod(f"p{at}", "team") for at in range(9)))
    assert len(world.placed()) == 2, "40 % of 50 % of ten cores"
    world.put_node(make_node("m", cpu=10))
    assert len(world.placed()) == 4


# -- the order of pools --------------------------------------------------------------------------------------


def started(world: World) -> list[str]:
    return [bind.name for bind in world.binds]


def test_pools_share_by_weight_and_what_is_idle_goes_to_the_others() -> None:
    world = pool_world(mine("x", weight=3.0), mine("y"), cpu=8)
    world.add(*(pod(f"{name}{at}", name) for name in "xy" for at in range(20)))
    assert sorted(name[0] for name in started(world)) == ["x"] * 6 + ["y"] * 2


def test_weights_and_minima_that_change_count_for_the_next_pod() -> None:
    world = pool_world(mine("x", weight=0.0), mine("y"), cpu=2)
    world.add(*(pod(f"{pool}{at}", pool) for at in range(4) for pool in "xy"))
    assert sorted(world.placed()) == ["y0", "y1"]
    world.step(PoolSeen(mine("x")))
    world.end("y0")
    assert sorted(world.placed()) == ["x0", "y1"]
    world.step(PoolSeen(mine("x", min_share=amounts(cpu=2))))
    world.end("y1")
    assert sorted(world.placed()) == ["x0", "x1"]


def test_a_minimum_comes_before_weights_and_weight_0_comes_last() -> None:
    world = pool_world(
        mine("x", weight=9.0), mine("y", min_share=amounts(cpu=5)), mine("z", weight=0.0), cpu=8
    )
    world.add(*(pod(f"{name}{at}", name) for name in "zxy" for at in range(20)))
    assert sorted(name[0] for name in started(world)) == ["x"] * 3 + ["y"] * 5
    for name in [name for name in world.tasks if name[0] != "z"]:
        world.delete(name)
    assert len(world.placed()) == 8


def test_pools_that_are_all_of_weight_0_share_what_is_left_to_them() -> None:
    world = pool_world(mine("x", weight=0.0), mine("y", weight=0.0), cpu=8)
    world.add(*(pod(f"{name}{at}", name) for name in "xy" for at in range(20)))
    assert sorted(name[0] for name in started(world)) == ["x"] * 4 + ["y"] * 4


def test_the_neediest_pool_is_first() -> None:
    """A holds .6 of its minimum and B .75; C and D, which have none, two cores and one: A, B, D, C."""
    pools = (
        mine("a", min_share=amounts(pods=5)), mine("b", min_share=amounts(pods=4)), mine("c"), mine("d"),
    )  # fmt: skip
    world = pool_world(*pools, cpu=100)
    held = {"a": 3, "b": 3, "c": 2, "d": 1}
    world.add(*(pod(f"{name}{at}", name, cpu=1) for name, count in held.items() for at in range(count)))
    world.put_node(make_node("n", cpu=9))
    world.add(*(pod(f"{name}-{at}", name) for name in "abcd" for at in range(9)))
    before = len(world.binds)
    world.put_node(make_node("n", cpu=15))
    assert [bind.name[0] for bind in world.binds[before:]] == ["a", "b", "a", "d", "c", "d"]


def test_a_namespace_with_many_kinds_of_pods_does_not_pass_one_with_equal_pods() -> None:
    world = pool_world(mine("x"), mine("y"), cpu=80)
    many = (pod(f"x{at}", "x", memory=0.001 * (at + 1), priority=1) for at in range(300))
    world.add(*(pod(f"y{at}", "y") for at in range(100)), *many)
    world.sleep(1.0)
    assert sorted(name[0] for name in started(world)) == ["x"] * 40 + ["y"] * 40


def test_a_high_priority_passes_pods_of_its_own_pool_alone() -> None:
    world = pool_world(mine("x"), mine("y"), cpu=4)
    world.add(*(pod(f"x{at}", "x", priority=at) for at in range(9)), *(pod(f"y{at}", "y") for at in range(9)))
    assert sorted(started(world)) == ["x7", "x8", "y0", "y1"]


def test_a_very_high_priority_waits_behind_a_needy_pool_and_one_of_the_systems_does_not() -> None:
    """Pool x holds all, so more than its share."""
    world = pool_world(mine("x"), mine("y", min_share=amounts(cpu=3)), cpu=4)
    world.add(*(pod(f"x{at}", "x") for at in range(4)))
    high, critical = pod("high", "x", priority=1_000_000), pod("critical", "x", priority=SYSTEM)
    world.add(high, critical, *(pod(f"y{at}", "y") for at in range(3)))
    world.put_node(make_node("n", cpu=9))
    assert started(world)[4:] == ["critical", "y0", "y1", "y2", "high"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("fifo", ["a0", "a1", "a2"]), ("fair", ["a0", "b0", "a1"]), ("sjf", ["b0", "a0", "a1"])],
)
def test_a_pool_without_children_orders_its_jobs_by_its_policy(policy: Any, expected: list[str]) -> None:
    world = pool_world(mine("team", policy=policy), cpu=3)
    jobs = [pod(f"a{at}", "team", job="a", created=at, estimate=9.0) for at in range(3)]
    world.add(*jobs, *(pod(f"b{at}", "team", job="b", created=9.0 + at, estimate=1.0) for at in range(1)))
    assert started(world) == expected


def test_a_pool_at_its_limit_leaves_the_turn_to_the_order_of_its_children() -> None:
    """The limit is the parent's: below it both children start as many, though one came first."""
    world = pool_world(
        Pool("all", max_share=amounts(pods=4)), mine("x", parent="all"), mine("y", parent="all")
    )
    world.add(*(pod(f"x{at}", "x") for at in range(9)), *(pod(f"y{at}", "y") for at in range(9)))
    assert sorted(name[0] for name in world.placed()) == ["x", "x", "y", "y"]
    for name in [name for name in world.placed() if name[0] == "x"]:
        world.end(name)
    assert sorted(name[0] for name in world.placed()) == ["x", "x", "y", "y"]


def test_a_pool_at_its_limit_costs_no_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    world = pool_world(mine("x", max_share=amounts(pods=1)), mine("y"))
    world.add(*(pod(f"x{at}", "x") for at in range(50)))
    asked: list[str] = []
    rank = FairPools.rank

    def counted(self: FairPools, view: Any, group: str, head: Task) -> tuple[float, ...]:
        asked.append(group)
        return rank(self, view, group, head)

    monkeypatch.setattr(FairPools, "rank", counted)
    world.add(pod("y0", "y"))
    assert len(asked) <= 6, asked


# -- what is written -------------------------------------------------------------------------------------


def records(world: World) -> list[RecordPool]:
    return [each for each in world.faults if isinstance(each, RecordPool)]  # World keeps other commands there


def test_what_a_pool_holds_and_waits_for_is_written_and_nothing_while_nothing_changes() -> None:
    world = pool_world(mine("x", min_share=amounts(cpu=20)))
    world.add(*(pod(f"p{at}", "x", cpu=2) for at in range(6)))
    world.sleep(30.0)
    record = records(world)[-1].record
    assert dict(record.held) == {"cpu": 10_000, "pods": 5}
    assert dict(record.demand) == {"cpu": 12_000, "pods": 6}
    assert dict(record.share)["cpu"] == 10_000
    assert (record.waiting_pods, record.running_jobs) == (1, 5)
    assert record.below_min_since == 0.1, "all pools are looked at ten times a second"
    count = len(records(world))
    world.sleep(3600.0)
    assert len(records(world)) == count


def test_a_restart_keeps_since_when_a_pool_lacks_its_minimum() -> None:
    world = pool_world()
    world.add(*(pod(f"p{at}", "x", cpu=9) for at in range(2)))
    world.step(PoolSeen(mine("x", min_share=amounts(cpu=20), below_min_since=-50.0)))
    world.sleep(20.0)
    assert records(world)[-1].record.below_min_since == -50.0
    world.delete("p1")
    world.sleep(20.0)
    assert records(world)[-1].record.below_min_since is None


def test_a_storm_of_changes_is_written_at_most_a_hundred_times_a_minute() -> None:
    """The first minute, in which every pool is new, is one of these."""
    world = pool_world(*(mine(f"q{at}") for at in range(200)), cpu=1_000)
    world.put_node(make_node("n", cpu=1_000, pods=10_000))
    for round_ in range(6):
        world.add(*(pod(f"r{round_}-{at}", f"q{at}", cpu=1) for at in range(200)))
        world.sleep(10.0)
    assert 90 <= len(records(world)) <= 100


def test_a_pool_that_lacks_its_minimum_for_a_moment_is_not_written_for_that() -> None:
    """Each pod of it that ends leaves room, which its next one gets half a second later."""
    world = pool_world(mine("x", min_share=amounts(cpu=4)))
    world.add(*(pod(f"p{at}", "x") for at in range(4)))
    world.sleep(20.0)
    before = len(records(world))
    for at in range(30):
        world.delete(f"p{at}")
        world.add(pod(f"p{at + 4}", "x", cpu=99))  # it fits no node
        world.sleep(0.5)
        world.delete(f"p{at + 4}")
        world.add(pod(f"p{at + 4}", "x"))
        world.sleep(0.5)
    assert len(records(world)) - before <= 4


def test_only_the_status_of_a_pool_moves_nothing() -> None:
    world = pool_world(mine("x"))
    world.add(pod("a", "x", cpu=99))
    moved = world.engine._state.pools.tree
    generation = id(moved._by_path)
    world.step(PoolSeen(replace(mine("x"), below_min_since=7.0)))
    assert id(moved._by_path) == generation
    assert not moved._is_stale


def test_a_level_outlives_what_takes_no_part_below_it() -> None:
    """The only child has no rank; then its parent must still be there when the child has one, or goes."""
    ranks: dict[str, tuple[float, ...] | Wait] = {"all": (1.0,), "all/team": Wait(Reason("full"))}
    heap = PathHeap[str](lambda prefix: ranks[prefix])
    heap.keep("pod", "all/team/job", (0.0, ((),), (), 1))
    assert heap.first() is None
    assert heap.withholds
    ranks["all/team"] = (2.0,)
    assert heap.rerank(["all/team"])
    assert heap.first() == ((0.0, ((1.0,), (2.0,), ()), (), 1), "pod")
    ranks["all/team"] = Wait(Reason("full"))
    heap.rerank(["all/team"])
    heap.discard("pod")
    assert not heap.withholds
    assert not heap.rerank(["all"])
    assert not heap.rerank(["all/team"])
