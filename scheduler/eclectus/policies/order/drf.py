"""Dominant resource fairness: the next task comes from who has the least.

Ghodsi, Zaharia, Hindman, Konwinski, Shenker, Stoica, "Dominant Resource Fairness: Fair Allocation of
Multiple Resource Types", NSDI 2011. A group's dominant share is the largest of its shares of the resources
of all nodes. Progressive filling: again and again, the group of least dominant share over weight that has
a task with room gets one task. In whole amounts, so equal shares tie exactly; ties go by age.

Departures:
- a group's share counts every pod it has on a node, also those of other schedulers and of profiles that
  know no shares: they hold what they hold. Pod places are a resource too.
- `spec.priority` goes before shares, as everywhere in Kubernetes.
- what waits in a node's line or is planned on a busy node holds nothing yet: with a Place policy that
  commits on arrival, shares steer little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from eclectus.framework import ClassQueue, Order, View
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.model.settings import Setting
from eclectus.policies.shared.by_group import turns_by_group


@dataclass(eq=False)
class DominantShare(Order):
    """Priority, then the least dominant share over weight, then age."""

    by: Annotated[
        Literal["namespace", "job", "label"],
        Setting(
            "who shares: namespaces, jobs, or pods of one value of a label", why="a namespace is a tenant"
        ),
    ] = "namespace"
    label: Annotated[
        str,
        Setting(
            "the label of by: label; pods without it are one group",
            why="none: by: label must name one",
        ),
    ] = ""
    weights: Annotated[
        dict[str, float],
        Setting(
            "what a group may hold relative to others, by its name",
            why="1 for whoever is not named here",
            least=1e-3,
            most=1e6,
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.by == "label") != bool(self.label):
            raise SettingsError("label", "belongs to by: label, and by: label needs it")

    @property
    def counted_by(self) -> Callable[[Task], str]:
        """The same groups as the turns'."""
        return self.group

    def group(self, task: Task) -> str:
        """Who shares."""
        if self.by == "namespace":
            return task.namespace
        if self.by == "job":
            return task.job or task.uid
        return dict(task.labels).get(self.label, "")

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Within a group: priority, then age."""
        return (-task.priority, task.created, serial)

    def queues_in_order(self, view: View, lanes: Iterable[ClassQueue]) -> Iterator[ClassQueue]:
        """What a group was given in one turn counts in the next."""
        usage, weights = view.shares(self), self.weights

        def rank(lane: ClassQueue, head: Task) -> tuple[float, ...]:
            return (-head.priority, usage.dominant_share(lane.group, weights.get(lane.group, 1.0)))

        yield from turns_by_group(lanes, rank)
