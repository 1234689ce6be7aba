"""What the reflector must know of a kind of object: where it is listed, and what seeing one means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Raw, Struct
from msgspec.structs import replace

from eclectus.kube.decoding import decode_head, decode_node, decode_pod
from eclectus.kube.objects import Pod
from eclectus.kube.translate import node_from, task_from
from eclectus.live.watch.service_time import refine
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, NodeGone, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Spec, Task


class Sight(Struct, frozen=True, gc=False):
    """An object as seen once. `kept`: it is still worth knowing that it is there."""

    key: str
    version: str  # metadata.resourceVersion: opaque, good for equality alone
    event: Event
    kept: bool = True


class Kind(Protocol):
    """One kind of object."""

    name: str
    path: str
    listing: Mapping[str, str]  # what narrows a list, but must not narrow a watch

    def key(self, raw: Raw) -> tuple[str, str]:
        """(key, resourceVersion) of an object, however malformed the rest of it is. Raises MalformedError."""

    def seen(self, raw: Raw, now: float) -> Sight:
        """What seeing the object at `now` (seconds) means. Raises MalformedError."""

    def gone(self, key: str) -> Event:
        """What its disappearance means."""


class Nodes:
    """Nodes, known by name."""

    name = "nodes"
    path = "/api/v1/nodes"
    listing: Mapping[str, str] = {}

    def key(self, raw: Raw) -> tuple[str, str]:
        """The name: a node that was deleted and made again is the same place to us."""
        metadata = decode_head(raw).metadata
        if not metadata.name:
            raise MalformedError("Node", "?", "metadata.name", "missing")
        return metadata.name, metadata.resource_version

    def seen(self, raw: Raw, now: float) -> Sight:
        """NodeSeen."""
        del now
        node = decode_node(raw)
        return Sight(node.metadata.name, node.metadata.resource_version, NodeSeen(node_from(node)))

    def gone(self, key: str) -> Event:
        """NodeGone."""
        return NodeGone(key)


class Standing(Struct, frozen=True, gc=False):
    """How a pending pod of ours stands in the API: what a patch of its condition must know."""

    version: str
    generation: int
    refused: bool  # PodScheduled=False is on it already


class Pods:
    """Pods, known by uid.

    The list leaves ended pods out: there may be thousands, and they hold nothing. The watch must not:
    the server would send a pod that leaves the selector as DELETED **with the object as it was before**,
    so neither its end nor its times would ever be seen.
    """

    name = "pods"
    path = "/api/v1/pods"
    listing: Mapping[str, str] = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}

    def __init__(self, ours: Callable[[str], bool]) -> None:
        self._ours = ours  # whether a schedulerName is ours
        self.standing: dict[str, Standing] = {}  # uid -> our pods that are not bound
        self._specs: dict[str, tuple[int, Spec]] = {}  # uid -> generation, and the Spec made from it
        self._running_since: dict[str, float | None] = {}  # uid -> when we saw it start; None: it ran before

    def key(self, raw: Raw) -> tuple[str, str]:
        """The uid: a namesake is another pod."""
        metadata = decode_head(raw).metadata
        if not metadata.uid:
            raise MalformedError("Pod", metadata.name, "metadata.uid", "missing")
        return metadata.uid, metadata.resource_version

    def seen(self, raw: Raw, now: float) -> Sight:
        """TaskSeen, with its times as fine as can be."""
        pod = decode_pod(raw)
        task = self._timed(self._translated(pod), now)
        self._note_standing(pod, task)
        return Sight(task.uid, pod.metadata.resource_version, TaskSeen(task), kept=not task.ended)

    def gone(self, key: str) -> Event:
        """TaskGone."""
        self.standing.pop(key, None)
        self._running_since.pop(key, None)
        self._specs.pop(key, None)
        return TaskGone(key)

    def _translated(self, pod: Pod) -> Task:
        """The task. Most sights of a pod are news of its status; its Spec, half the work, stays as it was."""
        uid, generation = pod.metadata.uid, pod.metadata.generation
        known, spec = self._specs.get(uid, (0, None))
        # Before Kubernetes 1.33 pods had no generation, and nothing tells whether the spec has changed.
        task = task_from(pod, spec if known == generation > 0 else None)
        if task.ended:
            self._specs.pop(uid, None)
        else:
            self._specs[uid] = (generation, task.spec)
        return task

    def _note_standing(self, pod: Pod, task: Task) -> None:
        if task.node or task.ended or not self._ours(task.profile):
            self.standing.pop(task.uid, None)
            return
        refused = any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions)
        meta = pod.metadata
        self.standing[task.uid] = Standing(meta.resource_version, meta.generation, refused)

    def _timed(self, task: Task, now: float) -> Task:
        if task.started is None or not task.node:
            return task
        since = self._running_since
        if task.ended:
            seen_running = since.pop(task.uid, None)
            if task.finished is None:
                return task
            started, finished = refine(task.started, task.finished, seen_running, now)
            return replace(task, started=started, finished=finished)
        if task.uid not in since:
            since[task.uid] = now if now - task.started < FRESH_SECONDS else None
        seen = since[task.uid]
        return task if seen is None else replace(task, started=seen)


FRESH_SECONDS = 5.0
"""A container that started longer ago than this, when we first see it run, was running before we looked."""
