"""Prices of nodes, and what makes them, as people are shown them."""

from __future__ import annotations

from msgspec import Struct


class ConstraintDemand(Struct, frozen=True, gc=False, rename="camel"):
    """What is demanded of the nodes that satisfy a set of constraints, averaged over minutes.

    Of its scarcest resource, as shares of what all nodes have of that.
    """

    constraints: str  # in one line
    demand: float  # what pods with these constraints hold and wait for, 0 and more
    supply: float  # what the nodes that satisfy them have beside services, 0..1


class NodePrice(Struct, frozen=True, gc=False, rename="camel"):
    """What a node costs a pod, to policies that weigh what others need it for."""

    scarcity: float  # demand over supply of all constraints that the node satisfies
    least: float  # of the nodes that could run the pod, the least such price
    work: float = 1.0  # so many times as long the pod counts as running: other work is better done there
