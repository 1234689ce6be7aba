"""Hierarchical dominant resource fairness (H-DRF): namespaces share the cluster, jobs their namespace's part.

Bhattacharya, Culler, Friedman, Ghodsi, Shenker, Stoica, "Hierarchical Scheduling for Diverse Datacenter
Workloads", SoCC 2013. The tree is filled task by task: from the root down, the child with the least share
over its weight is next. Adding up shares along a tree, and comparing each child by its largest, starves
siblings that need different resources: what a job holds of CPUs would keep its sibling from GPUs.

Departures:
- the tree has two levels, where the paper's may have any number; `pools` has more.
- the paper scales the children of a node to the least of them before it adds them up, and leaves out what is
  saturated. Here namespaces are compared by their share of one resource, the dominant one of the pod that is
  next. So what is saturated has no part, since no pod that needs it is next; and a job that once got much
  makes its namespace no poorer, which scaling it down would do.
- every pod with a node counts, as in `drf`; the number of pods is a resource among the jobs of a namespace.
- `spec.priority` is compared first, as everywhere in Kubernetes.
"""

from dataclasses import dataclass

from eclectus.framework import Order, OrderTraits, Spec, Task, View, setting


@dataclass(eq=False)
class HierarchicalShare(Order):
    """Priority, then the namespace of the least share, then its job of the least dominant share, then age."""

    traits = OrderTraits(needs_one_at_a_time=True, ranks_prefixes=True, needs=frozenset({"shares"}))

    weights: dict[str, float] = setting(
        {},
        "weight of a namespace, by its name: one of weight 2 is entitled to twice as much as one of 1",
        why="1 for every namespace that is not listed",
        least=1e-3,
        most=1e6,
    )

    def group(self, task: Task) -> str:
        """The job, below its namespace; a pod without one is a job of its own."""
        return f"{task.namespace}/{task.job or task.uid}"

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """By priority; among the jobs of a namespace by dominant share."""
        return (-head.priority, view.shares(self).dominant_share(group))

    def rank_prefix(self, view: View, prefix: str, spec: Spec) -> tuple[float, ...]:
        """The share of a namespace over its weight, of the dominant resource of what it would start next."""
        weight = self.weights.get(prefix, 1.0)
        return (view.shares(self).share_of_dominant(prefix, spec.requests, weight),)
