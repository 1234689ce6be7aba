"""Dominant resource fairness (DRF): the next task comes from the group with the least dominant share.

Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, "Dominant Resource Fairness: Fair Allocation of
Multiple Resource Types", NSDI 2011. A group's dominant share is the largest of its shares of the resources
of all nodes. Progressive filling: of the groups that have a task with room, the one with the least dominant
share divided by weight gets one task, and so on. Amounts are integers, so equal shares compare as equal;
ties are decided by age.

Departures:
- a group's share counts all its pods that have a node, also pods of other schedulers and of profiles with
  another Order, because they occupy the same resources. The number of pods is a resource too.
- `spec.priority` is compared before shares, as everywhere in Kubernetes.
- tasks in node queues and deferred tasks do not count, since they hold no resources yet. So a Place policy
  that assigns a node on arrival is refused beside it, and so is one that takes all tasks before it places any
  (policies/table.py).
"""

from dataclasses import dataclass
from typing import Literal

from eclectus.framework import Order, OrderTraits, SettingsError, Task, View, setting


@dataclass(eq=False)
class DominantShare(Order):
    """Priority, then the least dominant share over weight, then age."""

    traits = OrderTraits(needs_one_at_a_time=True, needs=frozenset({"shares"}))

    by: Literal["namespace", "job", "label"] = setting(
        "namespace",
        "what forms a group: a namespace, a job, or the pods with the same value of a label",
        why="a namespace is a tenant",
    )
    label: str = setting(
        "", "key of the label for by: label; pods without it form one group", why="only by: label needs one"
    )
    weights: dict[str, float] = setting(
        {},
        "weight of a group, by its name: a group of weight 2 may hold twice as much as one of weight 1",
        why="1 for every group that is not listed",
        least=1e-3,
        most=1e6,
    )

    def __post_init__(self) -> None:
        if (self.by == "label") != bool(self.label):
            raise SettingsError("label", "belongs to by: label, and by: label needs it")

    def group(self, task: Task) -> str:
        """The namespace, the job (or the pod itself without one), or the value of the label."""
        if self.by == "namespace":
            return task.namespace
        if self.by == "job":
            return task.job or task.uid
        return dict(task.labels).get(self.label, "")

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """By priority, then by dominant share over weight; a task that was placed counts at once."""
        return -head.priority, view.shares(self).dominant_share(group, self.weights.get(group, 1.0))
