"""Whether a task fits on a node without some of its pods: a question, which changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Task
from eclectus.model.outranking import outranks


class RoomWithout:
    """One node as it would be without the pods removed so far, for one more task of a class.

    What waiting tasks will hold there does not count: they have no room yet. The class must be up to date.
    """

    __slots__ = ("_excess", "_removed", "row", "task_class")

    def __init__(self, task_class: TaskClass, row: int) -> None:
        cluster = task_class.cluster
        used, allocatable = cluster.used[row], cluster.allocatable[row]
        self.task_class, self.row = task_class, row
        # Column of each demanded resource -> by how much the node is too full for the task.
        self._excess = {
            column: float(used[column] + demand - allocatable[column])
            for column, demand in cluster.parts(task_class.spec.requests)
        }
        self._removed: dict[str, Task] = {}

    def remove(self, pod: Task) -> None:
        """Without this pod, which is on the node and not removed yet."""
        self._removed[pod.uid] = pod
        self._add(pod, -1)

    def restore(self, pod: Task) -> None:
        """With this pod again."""
        del self._removed[pod.uid]
        self._add(pod, 1)

    @property
    def removed(self) -> Collection[Task]:
        """The pods that the node is without."""
        return self._removed.values()

    @property
    def short_columns(self) -> list[int]:
        """Columns of the demanded resources of which it would have too little."""
        return [column for column, excess in self._excess.items() if excess > 0]

    @property
    def fits(self) -> bool:
        """Whether a task of the class fits now. False where no node that has no pods could run it."""
        task_class, row, removed = self.task_class, self.row, self.removed
        if not task_class.scalars.feasible[row] or any(each > 0 for each in self._excess.values()):
            return False
        if task_class.topology is not None and not task_class.topology.allows_without(row, removed):
            return False
        cluster, spec = task_class.cluster, task_class.spec
        return all(rule.holds_without(cluster, spec, row, removed) for rule in task_class.usage_rules)

    def _add(self, pod: Task, sign: int) -> None:
        for column, amount in self.task_class.cluster.held_parts(pod):
            if column in self._excess:
                self._excess[column] += sign * amount


def without_outranked(
    task_class: TaskClass, row: int, pods: Iterable[tuple[Task, float]], task: Task
) -> RoomWithout | None:
    """The node without those of its pods that the task outranks; None if it outranks none.

    `pods`: all that are there, each with a time that does not matter, as `PlacedPods.on_row` gives them.
    """
    lower = [pod for pod, _ in pods if outranks(task, pod)]
    if not lower:
        return None
    room = RoomWithout(task_class, row)
    for pod in lower:
        room.remove(pod)
    return room
