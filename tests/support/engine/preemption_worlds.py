"""Worlds in which pods are evicted for others."""

from __future__ import annotations

from builders import make_engine, make_task
from eclectus.framework import Place
from eclectus.model.events import BudgetSeen
from eclectus.model.objects import Budget, Node, Requirement, Task
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve.preemption import Preemption
from worlds import World, small_world


def world_of(*nodes: Node, place: Place | None = None, **settings: int) -> World:
    """A world with preemption; without nodes, one node of four cores."""
    engine = make_engine(place or LeastAllocated(), relieve=Preemption(**settings))
    return World(engine, *nodes) if nodes else small_world(engine)


def bound(name: str, node: str, cpu: float = 1, *, priority: int = 0, **fields: object) -> Task:
    """A pod of another scheduler on this node."""
    return make_task(name, cpu, profile="other", node=node, priority=priority, **fields)  # type: ignore[arg-type]


def budget(allowed: int, **fields: object) -> BudgetSeen:
    """A budget of the pods with the label app=web."""
    return BudgetSeen(Budget("default", "b", (Requirement("app", "In", ("web",)),), allowed, **fields))  # type: ignore[arg-type]
