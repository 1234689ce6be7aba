"""When nodes with the data of a task get room for it, as far as is known of what runs there.

A slot is room for what the task requests. Pods on a node leave in the order in which they are expected to
end; each run of them that makes room together is one slot. Services never leave. Nothing is said of a task

- if no node is known to have its data;
- if a pod in the way is of a kind of work of which too few have ended to know how long it takes;
- if something else than room keeps the task off one of these nodes;
- if more than `PODS_MOST` pods are there;
- once `HELD_MOST` queues of its namespace have been held in the step. Who goes elsewhere starts, which costs
  more than this; who is held could be asked about in vain.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import itemgetter

from eclectus.cluster.locality import names_of
from eclectus.cluster.nodes import Cluster
from eclectus.engine.placed_pods import PlacedPods
from eclectus.feasibility.task_class import ClassCache, TaskClass
from eclectus.maths.backlog_wait import ServiceTimes
from eclectus.maths.next_slot import Life, NextSlot
from eclectus.model.objects import Task

PODS_MOST = 400  # on the nodes with the data of a task: half a millisecond
HELD_MOST = 32  # in a step

_Lacks = dict[int, float]  # column of a resource -> how much of it must get free
_Leaving = tuple[float, _Lacks, Life]  # when a pod is expected to end, what it frees of that, and its life


class NearSlots:
    """The next slots near data."""

    def __init__(
        self, cluster: Cluster, classes: ClassCache, placed: PlacedPods, service_times: ServiceTimes
    ) -> None:
        self._cluster, self._classes = cluster, classes
        self._placed, self._service_times = placed, service_times
        self._held = Counter[str]()  # by namespace, in this step

    def begin_step(self) -> None:
        """No queue has been held yet."""
        self._held.clear()

    def hold(self, namespace: str) -> None:
        """A queue of this namespace is held in this step."""
        self._held[namespace] += 1

    def next(self, task: Task, now: float) -> NextSlot | None:
        """The next slot for a task on a node with its data; None where that is not known."""
        if self._held[task.namespace] >= HELD_MOST:
            return None
        return self.of(task, self._classes.current(task.spec, task.workload), now)

    def of(self, task: Task, task_class: TaskClass, now: float) -> NextSlot | None:
        """The same at any time, by the task's class, which is up to date."""
        slots, left = list[list[Life]](), PODS_MOST
        rows = [row for name in names_of(task.inputs) if (row := self._cluster.rows.get(name)) is not None]
        for row in rows:
            if not task_class.feasible[row]:
                continue
            lacks = self._lacks(task, row)
            left -= self._placed.count_on(row)
            leaving = self._leaving(row, lacks, now) if lacks and left >= 0 else None
            if leaving is None:
                return None
            slots += _slots(leaving, lacks)
        return NextSlot(slots) if rows else None

    def _lacks(self, task: Task, row: int) -> _Lacks:
        """What must get free on a node so that it has room for the task."""
        found: _Lacks = {}
        allocatable, used, tentative, _ = self._cluster.layers[:, row]
        for column, demand in self._cluster.parts(task.spec.requests):
            lack = used[column] + tentative[column] + demand - allocatable[column]
            if lack > 0.0:
                found[column] = float(lack)
        return found

    def _leaving(self, row: int, lacks: _Lacks, now: float) -> list[_Leaving] | None:
        """The pods on a node that free some of what it lacks; None if it is not known when one ends."""
        found = list[_Leaving]()
        for pod, since in self._placed.on_row(row):
            freed = {column: amount for column, amount in self._cluster.held_parts(pod) if column in lacks}
            if not freed or pod.spec.long_running:
                continue
            service = self._service_times.of(pod.workload)
            if service is None:
                return None
            found.append((since + service.mean_seconds, freed, Life(now - since, *service)))
        return found


def _slots(leaving: Sequence[_Leaving], lacks: _Lacks) -> Iterator[list[Life]]:
    """The runs of pods, those that are expected to end first before others, each of which makes room."""
    run, missing = list[Life](), dict(lacks)
    for _, freed, life in sorted(leaving, key=itemgetter(0)):
        run.append(life)
        for column, amount in freed.items():
            missing[column] -= amount
        if max(missing.values()) <= 0.0:
            yield run
            run, missing = [], dict(lacks)
