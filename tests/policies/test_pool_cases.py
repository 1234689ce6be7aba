"""Known cases of fair pools with their figures, most of them of the Hadoop Fair Scheduler's own tests.

P9, P12, P14 and P16 are of these tests; P11 and P27 are of the order between pools, R1 of what may be taken
back. A slot is room for a pod.
"""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_node, make_task
from eclectus.model.pool import PoolAmounts, PoolPreemption
from pool_worlds import AFTER_60, cores, held, mine, pods, world_of
from worlds import World

BOTH_60 = PoolPreemption(min_share_seconds=60.0, fair_share_seconds=60.0)


def started_from(holding: dict[str, int], total: int, **pools: Any) -> list[str]:
    """Pools of which pods start, one after the other, once nodes have `total` cores; many of each wait."""
    made = (mine(name, **fields) for name, fields in pools.items())
    world = world_of(*made, nodes=(sum(holding.values()),))
    world.add(*(task for name, count in holding.items() for task in pods(name, count)))
    assert {name: held(world, name) for name in holding} == holding
    world.add(*(task for name in holding for task in pods(name, total, first=total)))
    before = len(world.binds)
    world.put_node(make_node("n0", cpu=total, pods=total))
    return [bind.name[0] for bind in world.binds[before:]]


def in_order(names: list[str]) -> list[str]:
    """Each once, where it comes first."""
    return list(dict.fromkeys(names))


def test_of_pools_below_their_minima_the_one_that_has_the_least_part_comes_first() -> None:
    """P11: A has 8 of 10 (.8), B 50 of 100 (.5); C has no minimum, and 4 by a weight of 4."""
    names = started_from(
        {"a": 8, "b": 50, "c": 4},
        300,
        a={"min_share": cores(10)},
        b={"min_share": cores(100)},
        c={"weight": 4.0},
    )
    assert in_order(names) == ["b", "a", "c"]
    assert names.index("a") == 30, "B has .8 by then"


def test_above_all_minima_the_one_that_has_the_least_part_of_its_share_comes_first() -> None:
    """P27: A has 6 of 10 (.6), B 30 of 40 (.75); C 10 and D 8 of their shares of 20 (.5 and .4)."""
    minima = {"a": {"min_share": cores(10)}, "b": {"min_share": cores(40)}}
    names = started_from({"a": 6, "b": 30, "c": 10, "d": 8}, 100, **minima, c={}, d={})
    assert in_order(names) == ["a", "b", "d", "c"]
    assert names[:3] == ["a", "a", "b"], "A has .8 then"


def test_a_pool_in_order_of_age_starts_the_high_priority_first() -> None:
    """P12: on four slots j1 of one task, j2 of three, j3 of one and with priority, j4 of three."""
    world = world_of(mine("team", policy="fifo"), nodes=(4,))
    jobs = {"j1": 1, "j2": 3, "j3": 1, "j4": 3}
    world.add(
        *(
            make_task(
                f"{job}-{at}", asked_pool="team", job=job, priority=int(job == "j3"), created=float(serial)
            )
            for serial, (job, tasks) in enumerate(jobs.items())
            for at in range(tasks)
        )
    )
    assert [bind.name for bind in world.binds] == ["j3-0", "j1-0", "j2-0", "j2-1"]


@pytest.mark.parametrize(("demand", "victims"), [(9, {"b2", "b3"}), (1, {"b3"})])
def test_a_minimum_is_taken_back_up_to_the_demand(demand: int, victims: set[str]) -> None:
    """P14: a job holds all of four slots; pool A has a minimum of two and a time of 60 s."""
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"), nodes=(4,))
    for at in range(4):
        world.add(*pods("b", 1, first=at, job="j1"))
        world.sleep(10.0)
    world.add(*pods("a", demand))
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(2.0)
    assert set(world.victims()) == victims


def test_a_pool_that_lacks_both_its_minimum_and_its_share_takes_back_one_of_them() -> None:
    """P16: of four slots its minimum is two, and so is its share: two pods go and not four."""
    world = world_of(mine("a", min_share=cores(2), preemption=BOTH_60), mine("b"), nodes=(4,))
    world.add(*pods("b", 9))
    world.add(*pods("a", 9))
    world.sleep(600.0)
    assert (len(world.victims()), held(world, "a"), held(world, "b")) == (2, 2, 2)


def shared_19_slots(running: int, demand: int, **times: float) -> World:
    """Pool A has a minimum of 5 and a share of 7.6, which is .4 of 19 slots; B fills what A does not."""
    slots = PoolAmounts((("pods", 5),))
    rules = PoolPreemption(**{f"{kind}_share_seconds": time for kind, time in times.items()})
    world = world_of(mine("a", weight=2.0, min_share=slots, preemption=rules), mine("b", weight=3.0))
    world.put_node(make_node("n0", cpu=1000, pods=19))
    world.add(*pods("a", running))
    world.add(*pods("b", 30))
    world.add(*pods("a", demand - running, first=running))
    assert held(world, "a") == running
    return world


@pytest.mark.parametrize(
    ("running", "demand", "times", "taken"),
    [
        (2, 9, {"min": 60.0}, 3),
        (2, 9, {"fair": 60.0}, 5),
        (2, 9, {"min": 60.0, "fair": 60.0}, 5),
        (3, 9, {"min": 60.0, "fair": 60.0}, 2),
        (2, 4, {"min": 60.0, "fair": 60.0}, 2),
        (4, 9, {"fair": 60.0}, 0),
    ],
)
def test_how_many_pods_a_pool_takes_back(
    running: int, demand: int, times: dict[str, float], taken: int
) -> None:
    """R1: up to the minimum of 5, or up to 7 where it has less than 3, half of 7.6; never up to the sum."""
    world = shared_19_slots(running, demand, **times)
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(600.0)
    assert len(world.victims()) == taken
    assert held(world, "a") == running + taken
