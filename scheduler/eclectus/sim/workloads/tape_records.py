"""What a tape of the live scheduler tells of pods: when each came, where it ran and for how long."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from eclectus.model.events import Event, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.tape import Step


class Pod:
    """One pod of ours. Times in seconds on the tape's clock, inf for what did not happen."""

    def __init__(self, task: Task, arrived: float) -> None:
        self.task, self.arrived = task, arrived
        self.node = ""
        self.started = self.ended = self.gone = inf

    @property
    def ran(self) -> bool:
        """Whether it was seen to run."""
        return self.started < inf

    @property
    def over(self) -> float:
        """When it ended or was deleted."""
        return min(self.ended, self.gone)


class Record:
    """A whole tape, read once."""

    def __init__(self, steps: Iterable[Step], profiles: Iterable[str]) -> None:
        """Pods of these scheduler names are looked at. Raises what `steps` raises."""
        self._profiles = frozenset(profiles)
        self.pods: dict[str, Pod] = {}
        self.nodes: set[str] = set()
        self.begins, self.ends = inf, 0.0
        for step in steps:
            self.begins, self.ends = min(self.begins, step.now), step.now
            for event in step.events:
                self._note(event, step.now)

    def seconds(self, pod: Pod) -> float:
        """How long it ran while the tape ran; until the end of the tape where it did not end before."""
        return min(pod.over, self.ends) - max(pod.started, self.begins)

    def _note(self, event: Event, now: float) -> None:
        match event:
            case NodeSeen(node=node):
                self.nodes.add(node.name)
            case TaskSeen(task=task):
                self._see(task, now)
            case TaskGone(uid=uid) if uid in self.pods:
                self.pods[uid].gone = min(self.pods[uid].gone, now)

    def _see(self, task: Task, now: float) -> None:
        if task.profile not in self._profiles or task.gates:
            return  # a pod arrives when its last gate is lifted
        pod = self.pods.setdefault(task.uid, Pod(task, now))
        if task.started is not None:
            pod.node, pod.started = task.node, task.started
        if task.ended:
            pod.ended = min(pod.ended, now if task.finished is None else task.finished)
