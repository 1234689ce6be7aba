"""What pools cost a step, counted: ranks that are asked for, and work for Pools that come together."""

from __future__ import annotations

from typing import Any

from builders import make_cluster, make_engine, make_node, make_task
from eclectus.accounts.pool_tree import PoolTree
from eclectus.accounts.pools import Pools
from eclectus.accounts.reclaim import LOOK_SECONDS
from eclectus.engine.engine import Engine
from eclectus.engine.queues.head_heap import PathHeap
from eclectus.engine.quota import PoolMembers
from eclectus.framework import Spec, Task, View
from eclectus.model.events import BindConfirmed, PoolSeen, TaskGone, TaskSeen
from eclectus.model.pool import Pool, PoolAmounts, PoolPreemption
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from worlds import World

DEPTH = 3


class CountedPools(FairPools):
    """The same order, and how often it was asked."""

    asked = 0

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        self.asked += 1
        return super().rank(view, group, head)

    def rank_prefix(self, view: View, prefix: str, spec: Spec) -> tuple[float, ...]:
        self.asked += 1
        return super().rank_prefix(view, prefix, spec)


def tree(across: int) -> list[Pool]:
    """Pools of three levels, so many below each."""
    names = range(across)
    tops = [Pool(f"t{top}") for top in names]
    middles = [Pool(f"m{top}{middle}", parent=f"t{top}") for top in names for middle in names]
    leaves = [
        Pool(f"{each.name}{at}", parent=each.name, namespaces=("default",))
        for each in middles
        for at in names
    ]
    return [*tops, *middles, *leaves]


def test_an_end_and_a_bind_ask_for_few_ranks_however_many_pools_there_are() -> None:
    """Those of the pools above the pod that has ended, and of those above the pod that was bound."""
    order, pools = CountedPools(), tree(5)[-100:]
    world = World(make_engine(BestFit(), order=order), make_node("n", cpu=100))
    world.step(*map(PoolSeen, tree(5)))
    names = [pool.name for pool in pools]
    world.add(*(make_task(f"p{at}", asked_pool=names[at % 100], job=f"j{at}") for at in range(1_000)))
    running = sorted(world.placed())
    assert len(running) == 100
    order.asked, binds = 0, len(world.binds)
    for name in running[:50]:
        world.end(name)
    assert len(world.binds) - binds == 50
    assert order.asked / 50 <= 2 * DEPTH + 2


def test_a_bind_changes_the_value_of_each_pool_above_the_pod_once(monkeypatch: Any) -> None:
    """Though the pod leaves the tree, and what its pools hold is another amount."""
    order, followed, follow = FairPools(), list[str](), PathHeap._follow

    def counted_follow(heap: PathHeap[Any], level: Any) -> None:
        followed.append(level.name)
        follow(heap, level)

    world = World(make_engine(BestFit(), order=order), make_node("n", cpu=100))
    world.step(*map(PoolSeen, tree(3)))
    leaves = [pool.name for pool in tree(3)[-27:]]
    monkeypatch.setattr(PathHeap, "_follow", counted_follow)
    world.add(*(make_task(f"p{at}", asked_pool=leaves[at % 27]) for at in range(81)))
    assert len(world.placed()) == 81
    pools = len(set(followed))
    assert pools == 3 + 9 + 27
    assert len(followed) <= pools + DEPTH * 81, "each once as the pods arrive, then once a bind"


def test_nothing_is_decided_in_steps_of_answers_in_which_no_pod_waits(monkeypatch: Any) -> None:
    world = World(make_engine(BestFit(), order=FairPools()), make_node("n", cpu=100))
    world.answers_binds = False
    world.step(*map(PoolSeen, tree(2)))
    world.step(*(TaskSeen(make_task(f"p{at}", asked_pool="t00")) for at in range(20)))
    next_step_at, times, decide = world.engine.next_step_at(), list[float](), Engine._decide

    def counted_decide(engine: Engine, now: float) -> None:
        times.append(now)
        decide(engine, now)

    monkeypatch.setattr(Engine, "_decide", counted_decide)
    for bind in world.in_flight:
        world.step(BindConfirmed(bind.uid, bind.node), after=0.001)
        assert world.engine.next_step_at() == next_step_at
    assert not times
    world.advance_to_next_step()
    assert times == [next_step_at], "pools are looked at all the same"
    world.step(TaskGone("uid-p0"), after=0.001)
    assert world.engine.next_step_at() == times[0] + LOOK_SECONDS
    assert len(times) == 1


def test_a_pool_that_may_claim_sooner_than_before_does_so_though_no_pod_waits() -> None:
    """Between two looks it lacks what it lacked at the first, also if the pods that waited are gone."""

    def team(seconds: float) -> PoolSeen:
        after, least = PoolPreemption(min_share_seconds=seconds), PoolAmounts((("pods", 2),))
        return PoolSeen(Pool("team", namespaces=("default",), min_share=least, preemption=after))

    world = World(make_engine(BestFit(), order=FairPools()), make_node("n", cpu=1))
    world.step(team(600.0))
    world.add(*(make_task(name, asked_pool="team", created=at) for at, name in enumerate("abc")))
    world.sleep(20.0)
    world.delete("c")  # after which the pools are looked at, and after the next one not yet
    world.delete("b")
    starvation = world.engine._state.starvation
    assert not starvation.has_new_claims
    world.step(team(10.0))
    assert starvation.has_new_claims


def test_pools_that_come_together_are_derived_once_and_pods_looked_at_once(monkeypatch: Any) -> None:
    """Else 10,000 of them are looked at 10,000 times each, at every start of the scheduler."""
    derived, looks, path_of = list[str](), list[None](), PoolTree._path

    def counted_path(tree: PoolTree, name: str) -> str:
        derived.append(name)
        return path_of(tree, name)

    def all_pods() -> list[Task]:
        looks.append(None)
        return [make_task("a", asked_pool="m00"), make_task("b", asked_pool="m000")]

    monkeypatch.setattr(PoolTree, "_path", counted_path)
    pools, seen = Pools(make_cluster(make_node("n"))), tree(4)
    members = PoolMembers(pools, all_pods)
    for pool in seen:
        members.see(pool)
    assert members.is_moving
    assert members.take() == ["uid-a", "uid-b"]
    assert not members.is_changing
    assert [members.resolved(task).pool for task in all_pods()] == ["default/default", "t0/m00/m000"]
    assert len(looks) == 2, "one of them is the line above"
    assert len(derived) <= len(seen)
