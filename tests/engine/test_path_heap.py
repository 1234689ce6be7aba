"""Items by paths, level by level: against one that looks at all of them, with prefixes that take no part."""

from __future__ import annotations

from random import Random

import pytest

from builders import make_engine, make_node, make_task
from eclectus.accounts.group_shares import prefixes
from eclectus.engine.queues.head_heap import PathHeap
from eclectus.framework import Reason, Wait
from eclectus.model.events import PoolSeen
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from worlds import World

WITHHELD = Wait(Reason("full"))
GROUPS = [f"{a}/{b}/{c}/{job}" for a in "ab" for b in "cd" for c in "ef" for job in "123"]
PREFIXES = sorted({prefix for group in GROUPS for prefix in prefixes(group)})


@pytest.mark.parametrize("seed", range(20))
def test_the_first_item_is_that_of_the_least_ranks(seed: int) -> None:
    random = Random(seed)
    ranks: dict[str, tuple[float, ...] | Wait] = dict.fromkeys(PREFIXES, (0.0,))
    heap, values = PathHeap[str](lambda prefix: ranks[prefix]), dict[str, float]()
    for _ in range(400):
        match random.randrange(3):
            case 0:
                group = random.choice(GROUPS)
                values[group] = random.random()
                heap.keep(group, group, (0.0, ((values[group],),), group))
            case 1 if values:
                group = random.choice(sorted(values))
                del values[group]
                heap.discard(group)
            case _:
                changed = random.sample(PREFIXES, random.randint(1, len(PREFIXES)))
                for prefix in changed:
                    ranks[prefix] = random.choice((WITHHELD, (random.random(),)))
                heap.rerank(changed)
        free = [each for each in values if not any(ranks[it] is WITHHELD for it in prefixes(each))]
        expected = min(
            free, key=lambda it: ([ranks[each] for each in prefixes(it)], values[it]), default=None
        )
        first = heap.first()
        assert (None if first is None else first[1]) == expected
    for group in values:
        heap.discard(group)
    assert heap.first() is None
    assert not heap.withholds
    assert not heap._levels


def test_prefixes_without_a_rank_are_known_before_the_first_item_is_asked_for() -> None:
    heap = PathHeap[str](lambda prefix: WITHHELD)
    heap.keep("item", "a/b/item", (0.0, ((0.0,),), "item"))
    assert heap.withholds
    heap.discard("item")
    assert not heap.withholds


def test_a_rank_that_fails_changes_nothing() -> None:
    ranks: dict[str, tuple[float, ...]] = {"a": (1.0,), "b": (2.0,)}
    heap = PathHeap[str](lambda prefix: ranks[prefix])
    for group in ("a/item", "b/item"):
        heap.keep(group, group, (0.0, ((0.0,),), group))
    del ranks["b"]
    ranks["a"] = (3.0,)
    with pytest.raises(KeyError):
        heap.rerank("ab")
    assert heap.known_rank("a") == (1.0,)
    assert heap.first() == ((0.0, ((1.0,), (0.0,)), "a/item"), "a/item")


def test_a_pod_of_a_full_pool_that_is_deleted_stops_nothing() -> None:
    least = PoolAmounts((("pods", 1),))
    world = World(make_engine(BestFit(), order=FairPools()), make_node("n", cpu=9))
    world.step(
        PoolSeen(Pool("all")),
        PoolSeen(Pool("team", parent="all", max_share=least, namespaces=("default",))),
    )
    world.add(*(make_task(f"p{at}", asked_pool="team") for at in range(4)))
    world.settle()
    world.delete("p2")
    world.delete("p3")
    world.end("p0")
    assert world.node_of("p1") == "n"
