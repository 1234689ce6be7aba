"""Traits: what a policy says of itself, by which the engine and the other roles know what it does.

A policy states its traits as a class attribute, or as a property where its settings decide. The engine reads
them, and so does the table of combinations that make no sense (policies/table.py). The defaults are those
of the plainest policy of a role. tests/policies/test_traits.py checks that they are true.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import Struct

Need = Literal[
    "shares", "pools", "work", "prices", "arrivals", "jobs", "images", "budgets", "spread objects",
    "binds", "task arrivals", "start times", "task ends", "restartable pods",
]  # fmt: skip

NEEDS: Mapping[Need, str] = {
    "shares": "`view.shares(self)`: what each group of `counted_by` holds",
    "pools": "`view.pools` in ranks: prefixes are pools, and none is offered that is at its limit",
    "work": "`view.work_left`: the work of each job that has not begun",
    "prices": "`view.node_prices()` and `view.is_long`: how scarce nodes are",
    "arrivals": "`view.arrivals`: how many tasks of each class arrive",
    "jobs": "`view.jobs`: the DAG jobs. The live scheduler then also watches DagJobs",
    "images": "the images that tasks name and nodes have, for scores by image",
    "budgets": "`view.budgets`, watched for every policy that evicts: no policy need ask for them",
    "spread objects": "Services and controllers, watched for profiles that spread their pods by default",
    "binds": "`Order.placed` is called for each bind of the profile",
    "task arrivals": "`Learn.arrived` is called for each task",
    "start times": "`Learn.started` is called for each task that runs",
    "task ends": "`Learn.left` is called for each task that has gone",
    "restartable pods": "`view.restartable`: the pods on nodes whose work may begin anew",
}
"""What a policy may need, and what for. All of it costs, so it is kept, watched or called only on request."""

Needs = frozenset[Need]
NO_NEEDS: Needs = frozenset()


TITLES: dict[str, str] = {}
"""`module:class` -> role and name, as the table of policies has them (policies/table.py)."""


class Policy:
    """A policy of one role. As text it is its role and the name that a configuration gives it."""

    title: ClassVar[str]
    """`place/phoenix`, as the table of policies says; of a class that is in no table its own name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.title = TITLES.get(f"{cls.__module__}:{cls.__qualname__}", cls.__name__)

    def __str__(self) -> str:
        return self.title


class Traits(Struct, frozen=True, kw_only=True):
    """What a policy of any role says of itself."""

    needs: Needs = NO_NEEDS
    """What is to be kept for it, watched for it, or reported to it (`NEEDS`)."""


class OrderTraits(Traits, frozen=True, kw_only=True):
    """What an Order says of itself."""

    ranks_groups: bool = True
    """It overrides `rank`. Without it all groups are equal, and no index of them is kept."""
    needs_one_at_a_time: bool = False
    """Its ranks follow what groups hold, so a task must be bound before it names the next."""
    ranks_by_time: bool = False
    """Its ranks depend on `view.now`, so all groups are ranked again in each scheduling cycle."""
    ranks_by_path: bool = False
    """Its groups are paths, `team/job`, and a rank depends on what is counted of the path's prefixes too."""
    ranks_prefixes: bool = False
    """Its groups are paths, and prefixes have ranks of their own, by `rank_prefix`: groups are compared level
    by level from the root. A rank then depends on what is counted of its own group alone."""
    withholds: bool = False
    """It may answer Wait instead of a rank."""
    reserves_nodes: bool = False
    """A JobPlanner that may answer `reserve_nodes`, and is asked by `keeps_node` how long that holds."""


class PlaceTraits(Traits, frozen=True, kw_only=True):
    """What a Place policy says of itself."""

    joins_node_queues: bool = False
    """It may answer Enqueue or ReserveMany: tasks get a node on arrival, and the Line orders them there."""
    defers: bool = False
    """It may answer Defer."""
    defers_until_change: bool = False
    """For a class that it defers it answers the same until something changes that its answer depends on: the
    nodes on which the class is feasible (what pods hold there, background load, shape), the learned speeds of
    its workload, the tasks of the class that wait and their order, the time `until` of a deferral, or what
    classes that are feasible on the same nodes are answered. The engine does not ask before. Without it,
    deferred tasks are offered in every scheduling cycle."""
    asks_solver: bool = False
    """It may answer Ask. The live scheduler then runs a solver in a process of its own."""
    preempts: bool = False
    """It may answer Preempt. The live scheduler then also watches PodDisruptionBudgets."""
    prices_data: bool = False
    """It weighs where the data of tasks are, by what `view.data_gains` has learned. Of each class queue the
    engine then offers first the tasks that have their data on a node with room."""
    data_levels: tuple[str, ...] = ()
    """Labels of nodes, the nearest first, by which it tells apart how far other nodes are from the data."""
    takes_all_pending: bool = False
    """It takes tasks of every class queue before its first answer, so no answer can change the order."""


class LineTraits(Traits, frozen=True, kw_only=True):
    """What a Line policy says of itself."""

    first_come: bool = False
    """`next` always answers the first of the queue. The engine then does not call it."""
    steals: bool = False
    """`steal` may move reservations to other nodes. The engine asks no other policy for them."""


class SpeculateTraits(Traits, frozen=True, kw_only=True):
    """What a Speculate policy says of itself."""

    copies: bool = False
    """It may name stragglers. Without it running tasks are not followed, and it is not asked."""
    pool_share: float = 0.1
    """How many copies a pool may have at a time, as a share of its slots."""
    job_share: float = 0.1
    """How many a job may have, as a share of its running tasks."""
    job_least: int = 1
    """How many a job may have in any case."""
    slots_share: float = 0.0
    """How many a job may have, as a share of the slots of its pool, if that is more."""


class RelieveTraits(Traits, frozen=True, kw_only=True):
    """What a Relieve policy says of itself."""

    evicts: bool = False
    """It may answer Evict. The live scheduler then also watches PodDisruptionBudgets."""
    reclaims: bool = False
    """It may answer Evict with a claim, so it is asked even if no pod has a lower priority."""


class HoldTraits(Traits, frozen=True, kw_only=True):
    """What a Hold policy says of itself."""

    waits: bool = False
    """Its tasks may wait for nodes with their data. Without it nothing is kept about data, and it is not
    asked."""
    levels: tuple[str, ...] = ()
    """Keys of node labels, the nearest first: nodes of one value are near each other."""
    longest: float = 0.0
    """For how long a class queue waits at most, without a start, while room stays unused for it, seconds."""
