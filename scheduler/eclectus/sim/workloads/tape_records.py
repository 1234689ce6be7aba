"""The pods of a tape: when each arrived, where it ran and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from eclectus.model.events import Event, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.tape import Step


class RecordedPod:
    """One pod of the tape's profiles. Times are seconds on the tape's clock, inf for what did not happen."""

    def __init__(self, task: Task, arrived: float) -> None:
        self.task, self.arrived = task, arrived
        self.node = ""
        self.started = self.ended = self.gone = inf

    @property
    def ran(self) -> bool:
        """Whether it ran."""
        return self.started < inf

    @property
    def over(self) -> float:
        """When it ended or was deleted."""
        return min(self.ended, self.gone)


class TapeRecord:
    """The nodes and pods of a tape."""

    def __init__(self, steps: Iterable[Step], profiles: Iterable[str]) -> None:
        """Read the steps; only pods with these schedulerNames count. Raises what `steps` raises."""
        self._profiles = frozenset(profiles)
        self.pods: dict[str, RecordedPod] = {}
        self.nodes: set[str] = set()
        self.begins, self.ends = inf, 0.0
        for step in steps:
            self.begins, self.ends = min(self.begins, step.now), step.now
            for event in step.events:
                self._apply(event, step.now)

    def seconds(self, pod: RecordedPod) -> float:
        """How long the pod ran within the tape, in seconds."""
        return min(pod.over, self.ends) - max(pod.started, self.begins)

    def _apply(self, event: Event, now: float) -> None:
        match event:
            case NodeSeen(node=node):
                self.nodes.add(node.name)
            case TaskSeen(task=task):
                self._apply_task(task, now)
            case TaskGone(uid=uid) if uid in self.pods:
                self.pods[uid].gone = min(self.pods[uid].gone, now)

    def _apply_task(self, task: Task, now: float) -> None:
        if task.profile not in self._profiles or task.gates:
            return  # a pod arrives when its last scheduling gate is removed
        pod = self.pods.setdefault(task.uid, RecordedPod(task, now))
        if task.started is not None:
            pod.node, pod.started = task.node, task.started
        if task.ended:
            pod.ended = min(pod.ended, now if task.finished is None else task.finished)
