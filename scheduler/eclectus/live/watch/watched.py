"""The kinds of objects that are watched: where they are listed, and which events they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from msgspec import Raw, Struct
from msgspec.structs import replace

from eclectus.kube import hints
from eclectus.kube.decoding import decode_head, decode_node, decode_pod
from eclectus.kube.objects import Pod
from eclectus.kube.readable import readable_node, readable_task
from eclectus.kube.translate import node_from, task_from
from eclectus.kube.unsupported import ignored
from eclectus.live.watch.images import images_of_node, images_of_pod
from eclectus.live.watch.service_time import ServiceTimes
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, NodeGone, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Spec, Task


class ObservedObject(Struct, frozen=True, gc=False):
    """One observation of an object, from a list or a watch."""

    key: str
    resource_version: str  # opaque: it may be compared for equality alone
    event: Event
    # False for an ended pod: lists leave it out, so its absence is no deletion. And for what says nothing.
    is_listed: bool = True
    problem: MalformedError | None = None  # what cannot be read of it, and does not count


class WatchedKind(Protocol):
    """One kind of object."""

    name: str
    path: str
    older_paths: tuple[str, ...]  # of earlier versions of its API, newest first, where `path` is not served
    list_query: Mapping[str, str]  # restricts the list; must not be used for the watch
    undefined: str  # what to do in a cluster that does not define the kind; empty: every cluster does
    is_expected: bool  # whether a cluster that does not define it is worth a warning

    def key(self, raw: Raw) -> tuple[str, str]:
        """(key, resourceVersion) of an object, even if the rest of it is malformed. Raises MalformedError."""

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """The object as observed at `now` (seconds). Raises MalformedError."""

    def gone(self, key: str) -> Event:
        """The event of its deletion."""


class WatchedNodes:
    """Nodes, keyed by name."""

    name = "nodes"
    path = "/api/v1/nodes"
    older_paths: tuple[str, ...] = ()
    list_query: Mapping[str, str] = {}
    undefined = ""
    is_expected = True

    def __init__(self, *, with_images: bool = False) -> None:
        """`with_images`: whether a profile weighs which images nodes have."""
        self._with_images = with_images

    def key(self, raw: Raw) -> tuple[str, str]:
        """The name: a node that was deleted and created again counts as the same node."""
        metadata = decode_head(raw).metadata
        if not metadata.name:
            raise MalformedError("Node", "?", "metadata.name", "missing")
        return metadata.name, metadata.resource_version

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """NodeSeen, without amounts that cannot be read."""
        del now
        node = decode_node(raw)
        problem: MalformedError | None = None
        try:
            seen = node_from(node)
        except MalformedError as error:
            seen, problem = node_from(readable_node(node)), error
        try:
            seen = replace(seen, images=images_of_node(raw)) if self._with_images else seen
        except MalformedError as error:
            problem = problem or error
        return ObservedObject(seen.name, node.metadata.resource_version, NodeSeen(seen), problem=problem)

    def gone(self, key: str) -> Event:
        """NodeGone."""
        return NodeGone(key)


class ConditionState(Struct, frozen=True, gc=False):
    """What a patch of the condition PodScheduled needs to know of the pod."""

    resource_version: str
    generation: int
    is_false: bool  # PodScheduled=False is set already


class Ignored(Struct, frozen=True, gc=False):
    """The preferences of a pod that no rule reads, invalid hints on it, and its class of work."""

    features: tuple[str, ...]
    workload: str
    invalid_hints: tuple[str, ...] = ()


class WatchedPods:
    """Pods, keyed by uid.

    The list leaves ended pods out: there may be thousands, and they hold no resources. The watch must not
    use that selector: the API server would send a pod that no longer matches it as DELETED, **with the
    object as it was before**, and neither its end nor its times would be seen.
    """

    name = "pods"
    path = "/api/v1/pods"
    older_paths: tuple[str, ...] = ()
    list_query: Mapping[str, str] = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    undefined = ""
    is_expected = True

    def __init__(
        self,
        is_ours: Callable[[str], bool],
        shared: AbstractSet[str] = frozenset(),
        with_images: AbstractSet[str] = frozenset(),
    ) -> None:
        self._is_ours = is_ours  # whether a schedulerName is one of ours
        self._shared = shared  # classes of work that belong to no namespace
        self._with_images = with_images  # schedulerNames whose profile weighs which images nodes have
        self.condition_states: dict[str, ConditionState] = {}  # uid -> of each pod of ours that is not bound
        self.ignored: dict[str, Ignored] = {}  # uid -> of each such pod of ours; taken out when it is placed
        self._specs: dict[str, tuple[int, Spec]] = {}  # uid -> (generation, the Spec made from it)
        self._service_times = ServiceTimes()

    def key(self, raw: Raw) -> tuple[str, str]:
        """The uid: another pod of the same name is another pod."""
        metadata = decode_head(raw).metadata
        if not metadata.uid:
            raise MalformedError("Pod", metadata.name, "metadata.uid", "missing")
        return metadata.uid, metadata.resource_version

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """TaskSeen, with refined start and end, and without what cannot be read."""
        pod = decode_pod(raw)
        task, problem = self._translated(pod)
        self._track_ignored(pod, task)
        self._track_condition(pod, task)
        seen = TaskSeen(self._service_times.refined(task, now))
        version, is_listed = pod.metadata.resource_version, not task.ended
        return ObservedObject(task.uid, version, seen, is_listed=is_listed, problem=problem)

    def gone(self, key: str) -> Event:
        """TaskGone."""
        self.condition_states.pop(key, None)
        self.ignored.pop(key, None)
        self._service_times.forget(key)
        self._specs.pop(key, None)
        return TaskGone(key)

    def _translated(self, pod: Pod) -> tuple[Task, MalformedError | None]:
        """The task, and what cannot be read of the pod.

        Most updates change the status alone; the Spec, half of the work, is then reused.
        """
        uid, generation = pod.metadata.uid, pod.metadata.generation
        known, spec = self._specs.get(uid, (0, None))
        # Before Kubernetes 1.33 pods have no generation, so a change of the spec cannot be detected.
        problem: MalformedError | None = None
        try:
            task = task_from(pod, spec if known == generation > 0 else None, self._shared)
        except MalformedError as error:
            task, problem = readable_task(pod, error, self._shared), error
        if not task.node and task.profile in self._with_images and not task.spec.images:
            task = replace(task, spec=replace(task.spec, images=images_of_pod(pod)))
        if task.ended:
            self._specs.pop(uid, None)
        else:
            self._specs[uid] = (generation, task.spec)
        return task, problem

    def _track_ignored(self, pod: Pod, task: Task) -> None:
        self.ignored.pop(task.uid, None)
        if task.node or task.ended or not self._is_ours(task.profile):
            return
        features, invalid = ignored(pod.spec), hints.problems(pod.metadata.annotations)
        if features or invalid:
            self.ignored[task.uid] = Ignored(features, task.workload, invalid)

    def _track_condition(self, pod: Pod, task: Task) -> None:
        if task.node or task.ended or not self._is_ours(task.profile):
            self.condition_states.pop(task.uid, None)
            return
        is_false = any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions)
        meta = pod.metadata
        self.condition_states[task.uid] = ConditionState(meta.resource_version, meta.generation, is_false)
