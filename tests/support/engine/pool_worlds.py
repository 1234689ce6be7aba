"""Nodes and Pools whose pods wait, and take room back."""

from __future__ import annotations

from typing import Any

from builders import make_engine, make_node, make_task
from eclectus.model.events import PoolSeen
from eclectus.model.objects import Task
from eclectus.model.pool import Pool, PoolAmounts, PoolPreemption
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.reclaim import Reclaim
from worlds import World

AFTER_60 = PoolPreemption(min_share_seconds=60.0)
FAIR_60 = PoolPreemption(fair_share_seconds=60.0)


def cores(count: float) -> PoolAmounts:
    """So many cores."""
    return PoolAmounts((("cpu", int(1000 * count)),))


def mine(name: str, **fields: Any) -> Pool:
    """A pool that the namespace of all these pods may use."""
    return Pool(name, namespaces=("default",), **fields)


def world_of(*pools: Pool, nodes: tuple[float, ...] = (8,), relieve: Any = None, **roles: Any) -> World:
    """Nodes of so many cores, and these Pools."""
    roles |= {"order": FairPools(), "relieve": relieve or Reclaim()}
    engine = make_engine(BestFit(), wait_limit=None, **roles)
    world = World(engine, *(make_node(f"n{at}", cpu=cpu) for at, cpu in enumerate(nodes)))
    world.step(*map(PoolSeen, pools))
    return world


def pods(pool: str, count: int, cpu: float = 1, first: int = 0, **fields: Any) -> list[Task]:
    """Pods of a pool, named by it and numbered."""
    named = range(first, first + count)
    return [
        make_task(f"{pool}{at}", cpu, **{"asked_pool": pool, "created": float(at), **fields}) for at in named
    ]


def held(world: World, pool: str) -> int:
    """The pods of a pool that are bound."""
    return sum(name.startswith(pool) for name in world.placed())
