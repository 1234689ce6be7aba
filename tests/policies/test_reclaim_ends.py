"""Reclaim ends, whatever the tree, though controllers create victims again at once; and it keeps its rules.

Two hundred trees are among the fast tests, ten thousand among the slow ones.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from eclectus.model.commands import Fault
from eclectus.model.events import BudgetSeen
from eclectus.model.objects import Budget, Requirement
from eclectus.model.pool import NO_AMOUNTS, Pool, PoolAmounts, PoolPreemption
from gangs import group, key
from pool_worlds import mine, pods
from reclaim_rules import JudgedWorld

LABEL = (("app", "kept"),)
FAST, TREES, EACH = 200, 10_000, 20


def some_cores(random: Random, most: int, chance: float) -> PoolAmounts:
    if random.random() >= chance:
        return NO_AMOUNTS
    return PoolAmounts((("cpu", 500 * random.randrange(2 * most + 1)),))


def tree(random: Random) -> list[Pool]:
    """Two to four pools at the top, of which some have others below them."""

    def pool(name: str, **fields: Any) -> Pool:
        rules = PoolPreemption(
            min_share_seconds=random.choice([None, 10.0, 10.0, 10.0]),
            fair_share_seconds=random.choice([None, 20.0, 20.0]),
            min_runtime_seconds=random.choice([0.0, 0.0, 30.0]),
            allow_from=random.random() < 0.9,
            dry_run=random.random() < 0.1,
        )
        return mine(
            name,
            weight=random.choice([0.0, 1.0, 1.0, 1.0, 3.0]),
            min_share=some_cores(random, 5, 0.7),
            max_share=some_cores(random, 8, 0.1),
            preemption=rules,
            **fields,
        )

    found = list[Pool]()
    for name in "abcd"[: random.randrange(2, 5)]:
        found.append(pool(name))
        if random.random() < 0.4:
            found += [pool(f"{name}{below}", parent=name) for below in "xyz"[: random.randrange(1, 4)]]
    return [each for each in found if not _is_reversed(each)]


def _is_reversed(pool: Pool) -> bool:
    """Such a Pool is not valid."""
    most, least = (dict(each.amounts).get("cpu") for each in (pool.max_share, pool.min_share))
    return most is not None and least is not None and least > most


def world_of(random: Random) -> JudgedWorld:
    """Nodes that the pods of some pools have filled before those of the others come."""
    pools = tree(random)
    names = {each.name for each in pools}
    pools = [each for each in pools if not each.parent or each.parent in names]
    world = JudgedWorld(pools, [random.choice([1, 2, 4]) for _ in range(random.randrange(1, 4))])
    allowed = random.randrange(4)
    world.step(BudgetSeen(Budget("default", "kept", (Requirement("app", "In", ("kept",)),), allowed)))
    parents = {each.parent for each in pools}
    waves: tuple[list[Any], list[Any]] = ([], [])
    for at, each in enumerate(each for each in pools if each.name not in parents):
        count, cpu = random.randrange(9), random.choice([0.5, 1.0, 2.0])
        fields: dict[str, Any] = {"labels": LABEL} if random.random() < 0.2 else {}
        if count > 1 and random.random() < 0.3:
            quorum = random.randrange(2, count + 1)
            world.quorums[f"g{at}"] = quorum
            world.step(group(f"g{at}", quorum))
            fields["gang"] = key(f"g{at}")
        waves[random.random() < 0.5].extend(pods(each.name, count, cpu, **fields))
    for wave in waves:
        if wave:
            world.add(*wave)
    return world


def reclaims_and_ends(seed: int) -> int:
    """How many pods are evicted until it has ended."""
    random = Random(seed)
    world = world_of(random)
    pods_before = len(world.tasks)
    world.sleep(300.0)
    count = len(world.evictions)
    world.sleep(600.0)
    assert len(world.evictions) == count, "it does not end"
    assert count <= pods_before, "more are evicted than there are pods"
    assert not [each for each in world.faults if isinstance(each, Fault)]
    return count


@pytest.mark.parametrize(
    "first",
    [*range(0, FAST, EACH), *(pytest.param(at, marks=pytest.mark.slow) for at in range(FAST, TREES, EACH))],
)
def test_reclaim_ends_and_keeps_its_rules(first: int) -> None:
    for seed in range(first, first + EACH):
        reclaims_and_ends(seed)


def test_some_of_the_trees_need_evictions() -> None:
    assert sum(map(bool, map(reclaims_and_ends, range(20)))) >= 3
