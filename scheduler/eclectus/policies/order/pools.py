"""Fair pools: pools share the cluster level by level, and each orders its own jobs.

Zaharia, Borthakur, Sen Sarma, Elmeleegy, Shenker, Stoica, "Job Scheduling for Multi-User MapReduce Clusters",
2009, the Hadoop Fair Scheduler. From the root down, the next pod comes from the child that needs it most: one
below its minimum share and demand first, the one that has the least part of it; then the one that holds
least for its weight; a child of weight 0 last. In a pool without children its policy orders its jobs.

Departures:
- siblings are compared by the resource of which the next pod requests the largest part, as in `h-drf`;
- `spec.priority` is compared among the pods of one pool alone: else a tenant with a high class would beat
  every share. Priorities of the system's own stand above the tree;
- what a job holds is its dominant share, divided by nothing: jobs of a pool have no weights;
- without a Pool object it is `fifo`.
"""

from dataclasses import dataclass
from math import inf

from eclectus.framework import Order, OrderTraits, Spec, Task, View, pool_group


@dataclass(eq=False)
class FairPools(Order):
    """From the root down, the pool that is furthest below its share; in it, the job that its policy names."""

    traits = OrderTraits(needs_one_at_a_time=True, ranks_prefixes=True, needs=frozenset({"pools", "work"}))

    def group(self, task: Task) -> str:
        """The job, below its pool; empty without Pools and for pods that stand above them."""
        return pool_group(task)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """What stands above the tree first; in a pool by priority, then by its policy."""
        if not head.pool:
            return (-1.0, -head.priority)
        pool = view.pools.tree.of_path(head.pool)
        match "fair" if pool is None else pool.policy:
            case "fair":
                return (0.0, -head.priority, view.pools.usage.dominant_share(group))
            case "sjf":
                return (0.0, -head.priority, inf if head.estimate is None else head.estimate)
            case "srtf":
                return (0.0, -head.priority, view.work_left(head))
            case _:
                return (0.0, -head.priority)

    def rank_prefix(self, view: View, prefix: str, spec: Spec) -> tuple[float, ...]:
        """Below its minimum first, by the part that it has; then by what it holds over its weight."""
        pools = view.pools
        least, weight = pools.ranked_by(prefix)
        if least or spec.quotas:
            part = pools.part_of_minimum(prefix, spec)
            if part < 1.0:
                return (0.0, part)
        share = pools.usage.share_of_dominant(prefix, spec.requests, weight or 1.0)
        return (1.0 if weight else 2.0, share)
