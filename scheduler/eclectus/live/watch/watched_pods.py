"""Pods as a watched kind, and what writes need to know of them.

The times at which a container ran are refined. The API gives its start and its end in whole seconds,
truncated: a run of 0.4 s reads as 0 or 1 s. The watch shows both moments late, but about equally late, so
their distance is accurate unless one of the two was delayed. Therefore the observed distance is used, limited
to what the API's values allow.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from msgspec import Raw, Struct
from msgspec.structs import replace

from eclectus.kube.constraints import ignored
from eclectus.kube.objects import Pod, decode_pod
from eclectus.kube.translate import annotation_problems, images_of_pod, readable_task, task_from
from eclectus.live.watch.reflector import ObservedObject
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, TaskGone, TaskSeen
from eclectus.model.objects import Spec, Task

RESOLUTION_SECONDS = 1.0  # of metav1.Time
FRESH_SECONDS = 5.0
"""A container that had started longer ago than this when we first saw it run had been running before."""


class ConditionState(Struct, frozen=True, gc=False):
    """What writes need to know of a pod of ours that is not bound, such as patches of its condition."""

    resource_version: str
    generation: int
    is_false: bool  # PodScheduled=False is set already
    prefers_nodes: bool = False  # it has preferred node affinity, which its node may not meet


class Ignored(Struct, frozen=True, gc=False):
    """The preferences of a pod that no rule reads, invalid hints on it, and its class of work."""

    features: tuple[str, ...]
    workload: str
    invalid_hints: tuple[str, ...] = ()


class WatchedPods:
    """Makes events of pods, which it keys by uid."""

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
        self.ignored: dict[str, Ignored] = {}  # uid -> of each such pod of ours
        self._specs: dict[str, tuple[int, Spec]] = {}  # uid -> (generation, the Spec made from it)
        self._service_times = ServiceTimes()

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """TaskSeen, with refined start and end, and without what cannot be read."""
        pod = decode_pod(raw)
        task, problem = self._translated(pod)
        self._track(pod, task)
        seen = TaskSeen(self._service_times.refined(task, now))
        version, is_listed = pod.metadata.resource_version, not task.ended
        return ObservedObject(task.uid, version, seen, is_listed=is_listed, problem=problem)

    def gone(self, key: str) -> Event:
        """The pod is deleted."""
        self.condition_states.pop(key, None)
        self.ignored.pop(key, None)
        self._service_times.forget(key)
        self._specs.pop(key, None)
        return TaskGone(key)

    def take_ignored(self, uid: str) -> Ignored | None:
        """What is ignored of a pod that is being placed, once."""
        return self.ignored.pop(uid, None)

    def _translated(self, pod: Pod) -> tuple[Task, MalformedError | None]:
        """The task, and what cannot be read; the Spec, half of the work, is reused where it is the same."""
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

    def _track(self, pod: Pod, task: Task) -> None:
        """Keep what writes need to know of a pod of ours that is not bound."""
        self.ignored.pop(task.uid, None)
        if task.node or task.ended or not self._is_ours(task.profile):
            self.condition_states.pop(task.uid, None)
            return
        features, invalid = ignored(pod.spec), annotation_problems(pod.metadata.annotations)
        if features or invalid:
            self.ignored[task.uid] = Ignored(features, task.workload, invalid)
        is_false = any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions)
        meta = pod.metadata
        self.condition_states[task.uid] = ConditionState(
            meta.resource_version, meta.generation, is_false, bool(task.spec.preferences)
        )


class ServiceTimes:
    """Replaces start and end of each pod by the moments at which the watch showed them."""

    def __init__(self) -> None:
        self._running_since: dict[str, float | None] = {}  # uid -> when seen to start; None: it ran before

    def refined(self, task: Task, now: float) -> Task:
        """The task with refined times, as observed at `now` (seconds)."""
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

    def forget(self, uid: str) -> None:
        """The pod has been deleted."""
        self._running_since.pop(uid, None)


def refine(
    api_started: float, api_finished: float, seen_running: float | None, seen_finished: float
) -> tuple[float, float]:
    """(start, end) in seconds: on our own clock if the start was observed, else as the API says.

    The true duration lies within one second of the API's difference, because both ends are truncated by
    less than a second. `seen_running` is None for a container that ran already when its pod was first seen.
    """
    coarse = api_finished - api_started
    if seen_running is None:
        return api_started, api_finished
    least, most = max(coarse - RESOLUTION_SECONDS, 0.0), coarse + RESOLUTION_SECONDS
    run = min(max(seen_finished - seen_running, least), most)
    return seen_running, seen_running + run
