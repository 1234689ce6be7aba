"""The table of the kinds of objects that are watched: where each is listed, and which events it becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from eclectus.api import names
from eclectus.api.dag_job import DagJob, PlanStatus
from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS, POOL, POOLS, POOLS_PATH
from eclectus.api.pool import PoolStatus
from eclectus.framework import Need
from eclectus.kube import cluster_objects as kube
from eclectus.kube import translate
from eclectus.kube.constraints import ignored, pairs
from eclectus.kube.dag_jobs import Shape, decode_dag_job, job_from, shape_from
from eclectus.kube.objects import Head, Pod, decode_head, decode_node, decode_pod, full_name
from eclectus.kube.pools import decode_pool, minimum_problem, pool_from
from eclectus.kube.progress import phase_weights
from eclectus.live.watch.reflector import ObservedObject, WatchedKind
from eclectus.model import events
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event
from eclectus.model.objects import Gang, GangKey, PodSelector, Spec, Task
from eclectus.model.volumes import VolumeClaim

_STORAGE = "/apis/storage.k8s.io/v1"
_NOT_PLACED = "pods whose volumes need them are not placed"
_NOT_COMPARED = "free storage is not compared"
_NO_GROUPS = "pods that name such a PodGroup wait"
_NO_JOBS = "there are none to plan or to count; install the chart's definition of DagJob (crds.install=true)"
_NO_POOLS = "there are none"


def watched_kinds(
    needs: Collection[Need],
    pods: WatchedPods,
    jobs: WatchedDagJobs,
    pools: WatchedPools,
    claims: ClaimStates,
) -> list[WatchedKind]:
    """All kinds but those that policies do not need: the account need not be allowed to read these."""
    kinds = [
        nodes_kind(with_images="images" in needs),
        _named("Namespace", "/api/v1/namespaces", decode_head, _namespace, events.NamespaceGone),
        pools_kind(pools),
        *POD_SELECTOR_KINDS,
        *storage_kinds(claims),
        *POD_GROUP_KINDS,
        pods_kind(pods),
        _named(
            "PodDisruptionBudget",
            "/apis/policy/v1/poddisruptionbudgets",
            kube.budget_from,
            events.BudgetSeen,
            lambda key: events.BudgetGone(*_parts(key)),
            need="budgets",
        ),
        jobs_kind(jobs),
    ]
    return [each for each in kinds if each.need is None or each.need in needs]


def pods_kind(pods: WatchedPods) -> WatchedKind:
    """Pods. The list leaves ended pods out: there may be thousands, and they hold no resources.

    The watch must not use that selector: the API server would send a pod that no longer matches it as
    DELETED, **with the object as it was before**, and neither its end nor its times would be seen.
    """
    running = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
    path, listing = "/api/v1/pods", events.PodsListed()
    key = partial(key_by_uid, "Pod")
    return WatchedKind(
        "pods", path, key, pods.observe, pods.gone, listing=listing, list_query=running, must_be_current=True
    )


def jobs_kind(jobs: WatchedDagJobs) -> WatchedKind:
    """DagJobs, where a policy reads them."""
    path, key = f"/apis/{API_VERSION}/{DAG_JOBS}", partial(key_by_uid, DAG_JOB)
    return WatchedKind(DAG_JOBS, path, key, jobs.observe, jobs.gone, need="jobs", undefined=_NO_JOBS)


def pools_kind(pools: WatchedPools) -> WatchedKind:
    """Pools. A cluster that does not define them has none, which is nothing to warn about."""
    key = partial(_key, POOL)
    return WatchedKind(
        POOLS, POOLS_PATH, key, pools.observe, pools.gone, undefined=_NO_POOLS, is_expected=False
    )


def nodes_kind(*, with_images: bool = False) -> WatchedKind:
    """Nodes. `with_images`: whether a profile weighs which images nodes have."""
    observe = partial(_observed_node, with_images=with_images)
    key = partial(_key, "Node")
    return WatchedKind("nodes", "/api/v1/nodes", key, observe, events.NodeGone, must_be_current=True)


def _observed_node(raw: Raw, _now: float, *, with_images: bool) -> ObservedObject:
    """The node without amounts that cannot be read."""
    node = decode_node(raw)
    problem: MalformedError | None = None
    try:
        seen = translate.node_from(node)
    except MalformedError as error:
        seen, problem = translate.node_from(translate.readable_node(node)), error
    try:
        seen = replace(seen, images=translate.images_of_node(raw)) if with_images else seen
    except MalformedError as error:
        problem = problem or error
    return ObservedObject(seen.name, node.metadata.resource_version, events.NodeSeen(seen), problem=problem)


# -- kinds known by namespace and name -------------------------------------------------------------


def _named(
    kind: str,
    path: str,
    read: Callable[[Raw], Any],
    seen: Callable[[Any], Event],
    gone: Callable[[str], Event],
    *,
    name: str = "",
    **others: Any,
) -> WatchedKind:
    """A kind keyed by namespace/name, or by the name alone where objects have no namespace.

    An object that was deleted and created again counts as the same object. `read` returns None for one that
    says nothing, which counts as gone.
    """

    def observe(raw: Raw, _now: float) -> ObservedObject:
        key, version = _key(kind, raw)
        found = read(raw)
        event = gone(key) if found is None else seen(found)
        return ObservedObject(key, version, event, is_listed=found is not None)

    return WatchedKind(name or path.rpartition("/")[2], path, partial(_key, kind), observe, gone, **others)


def _key(kind: str, raw: Raw) -> tuple[str, str]:
    """The key and the resourceVersion. Raises MalformedError for an object without a name."""
    metadata = decode_head(raw).metadata
    if not metadata.name:
        raise MalformedError(kind, "?", "metadata.name", "missing")
    return full_name(metadata.namespace, metadata.name), metadata.resource_version


def key_by_uid(kind: str, raw: Raw) -> tuple[str, str]:
    """The uid, because another object of the same name is another one, and the resourceVersion."""
    metadata = decode_head(raw).metadata
    if not metadata.uid:
        raise MalformedError(kind, metadata.name or "?", "metadata.uid", "missing")
    return metadata.uid, metadata.resource_version


def _parts(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def _namespace(head: Head) -> Event:
    """A namespace that is being deleted counts while it exists."""
    labels = head.metadata.labels
    return events.NamespaceSeen(head.metadata.name, pairs(labels), labels.get(names.POOL_LABEL, ""))


# -- which pods others select ----------------------------------------------------------------------


def _pod_selectors(kind: str, path: str, selected: Callable[[str, Raw], PodSelector]) -> WatchedKind:
    """Of each object the selector alone is kept."""

    def read(raw: Raw) -> PodSelector | None:
        found = selected(kind, raw)
        return found if found.selector else None

    def gone(key: str) -> Event:
        return events.PodSelectorGone(kind, *_parts(key))

    return _named(kind, path, read, events.PodSelectorSeen, gone, need="spread objects")


POD_SELECTOR_KINDS = (
    _pod_selectors("Service", "/api/v1/services", kube.selected_by_labels),
    _pod_selectors("ReplicationController", "/api/v1/replicationcontrollers", kube.selected_by_labels),
    _pod_selectors("ReplicaSet", "/apis/apps/v1/replicasets", kube.selected_by_selector),
    _pod_selectors("StatefulSet", "/apis/apps/v1/statefulsets", kube.selected_by_selector),
)


# -- storage ---------------------------------------------------------------------------------------


def storage_kinds(claims: ClaimStates) -> list[WatchedKind]:
    """What pods' volumes need. The states of `claims` are kept for binds that wait for them."""

    def seen(claim: VolumeClaim) -> Event:
        volume = claim.volume if claim.is_bound else ""
        claims.set(claim.key, ClaimState(claim.uid, volume, claim.selected_node))
        return events.VolumeClaimSeen(claim)

    def gone(key: str) -> Event:
        claims.drop(key)
        return events.VolumeClaimGone(key)

    kind, path = "PersistentVolumeClaim", "/api/v1/persistentvolumeclaims"
    return [_named(kind, path, kube.claim_from, seen, gone, undefined=_NOT_PLACED), *OTHER_STORAGE_KINDS]


OTHER_STORAGE_KINDS = (
    _named(
        "PersistentVolume",
        "/api/v1/persistentvolumes",
        kube.volume_from,
        events.VolumeSeen,
        events.VolumeGone,
        undefined=_NOT_PLACED,
    ),
    _named(
        "StorageClass",
        f"{_STORAGE}/storageclasses",
        kube.storage_class_from,
        events.StorageClassSeen,
        events.StorageClassGone,
        undefined=_NOT_PLACED,
    ),
    _named(
        "CSINode",
        f"{_STORAGE}/csinodes",
        kube.attach_limits_from,
        events.AttachLimitsSeen,
        events.AttachLimitsGone,
        undefined="the number of volumes on a node is not limited, and no CSI driver counts as installed",
    ),
    _named(
        "VolumeAttachment",
        f"{_STORAGE}/volumeattachments",
        kube.attachment_from,
        events.AttachmentSeen,
        events.AttachmentGone,
        undefined="volumes that no pod uses any more do not count against the limits of nodes",
    ),
    _named(
        "CSIDriver",
        f"{_STORAGE}/csidrivers",
        kube.storage_driver_from,
        lambda found: events.StorageDriverSeen(*found),
        events.StorageDriverGone,
        undefined=_NOT_COMPARED,
    ),
    _named(
        "CSIStorageCapacity",
        f"{_STORAGE}/csistoragecapacities",
        kube.free_storage_from,
        events.FreeStorageSeen,
        events.FreeStorageGone,
        undefined=_NOT_COMPARED,
    ),
)


# -- pod groups, of both APIs; a cluster need not serve either, and most serve none ------------------


def _pod_groups(api: str, versions: Sequence[str], gang_from: Callable[[Raw], Gang]) -> WatchedKind:
    newest, *older = (f"/apis/{api}/{version}/{kube.POD_GROUPS}" for version in versions)
    return _named(
        kube.POD_GROUP,
        newest,
        gang_from,
        events.GangSeen,
        lambda key: events.GangGone(GangKey(api, *_parts(key))),
        name=f"{kube.POD_GROUPS}.{api}",
        older_paths=tuple(older),
        undefined=_NO_GROUPS,
        is_expected=False,
    )


POD_GROUP_KINDS = (
    _pod_groups(kube.KUBERNETES, kube.KUBERNETES_VERSIONS, kube.gang_from),
    _pod_groups(kube.COSCHEDULING, kube.COSCHEDULING_VERSIONS, kube.coscheduling_gang_from),
)


# -- pods, and what writes need to know of them ------------------------------------------------------

RESOLUTION_SECONDS = 1.0  # of metav1.Time
FRESH_SECONDS = 5.0
"""A container that had started longer ago than this when we first saw it run had been running before."""


class ConditionState(Struct, frozen=True, gc=False):
    """What writes need to know of a pod of ours that is not bound, such as patches of its condition."""

    resource_version: str
    generation: int
    is_false: bool  # PodScheduled=False is set already
    prefers_nodes: bool = False  # it has preferred node affinity, which its node may not meet


class StragglerState(Struct, frozen=True, gc=False):
    """What is needed of a pod of ours on a node that may have a copy, for writes and for its progress."""

    resource_version: str
    is_straggling: bool  # its condition says so already
    phase_weights: str | None = None  # its annotation


class Ignored(Struct, frozen=True, gc=False):
    """The preferences of a pod that no rule reads, invalid hints on it, and its class of work."""

    features: tuple[str, ...]
    workload: str
    invalid_hints: tuple[str, ...] = ()


@dataclass(eq=False)
class WatchedPods:
    """Makes events of pods, which it keys by uid."""

    is_ours: Callable[[str], bool]  # whether a schedulerName is one of ours
    shared: AbstractSet[str] = frozenset()  # classes of work that belong to no namespace
    with_images: AbstractSet[str] = frozenset()  # schedulerNames whose profile weighs which images nodes have

    def __post_init__(self) -> None:
        self.condition_states: dict[str, ConditionState] = {}  # uid -> of each pod of ours that is not bound
        self.straggler_states: dict[str, StragglerState] = {}  # uid -> of each on a node that may have a copy
        self.ignored: dict[str, Ignored] = {}  # uid -> of each such pod of ours
        self._specs: dict[str, tuple[int, Spec]] = {}  # uid -> (generation, the Spec made from it)
        self._service_times = ServiceTimes()

    def observe(self, raw: Raw, now: float) -> ObservedObject:
        """TaskSeen, with refined start and end, and without what cannot be read."""
        pod = decode_pod(raw)
        task, problem = self._translated(pod)
        if len(raw) > translate.BYTES_MOST and (small := translate.small_task(task)) is not None:
            task, problem = small, MalformedError("Pod", str(task), "", small.spec.unsupported[0])
            self._specs.pop(task.uid, None)
        self._track(pod, task)
        seen = events.TaskSeen(self._service_times.refined(task, now))
        version, is_listed = pod.metadata.resource_version, not task.ended
        return ObservedObject(task.uid, version, seen, is_listed=is_listed, problem=problem)

    def gone(self, key: str) -> Event:
        """The pod is deleted."""
        self.condition_states.pop(key, None)
        self.straggler_states.pop(key, None)
        self.ignored.pop(key, None)
        self._service_times.forget(key)
        self._specs.pop(key, None)
        return events.TaskGone(key)

    def take_ignored(self, uid: str) -> Ignored | None:
        """What is ignored of a pod that is being placed, once."""
        return self.ignored.pop(uid, None)

    def phase_weights(self, uid: str) -> str | None:
        """What a pod that may have a copy has in its annotation of this name; None if it has none."""
        state = self.straggler_states.get(uid)
        return None if state is None else state.phase_weights

    def _translated(self, pod: Pod) -> tuple[Task, MalformedError | None]:
        """The task, and what cannot be read; the Spec, half of the work, is reused where it is the same."""
        uid, generation = pod.metadata.uid, pod.metadata.generation
        known, spec = self._specs.get(uid, (0, None))
        # Before Kubernetes 1.33 pods have no generation, so a change of the spec cannot be detected.
        problem: MalformedError | None = None
        try:
            task = translate.task_from(pod, spec if known == generation > 0 else None, self.shared)
        except MalformedError as error:
            task, problem = translate.readable_task(pod, error, self.shared), error
        if not task.node and task.profile in self.with_images and not task.spec.images:
            task = replace(task, spec=replace(task.spec, images=translate.images_of_pod(pod)))
        if task.ended:
            self._specs.pop(uid, None)
        else:
            self._specs[uid] = (generation, task.spec)
        return task, problem

    def _track(self, pod: Pod, task: Task) -> None:
        """Keep what writes need to know of a pod of ours that is not bound."""
        self.ignored.pop(task.uid, None)
        if task.speculative:
            self._track_straggler(pod, task)
        if task.node or task.ended or not self.is_ours(task.profile):
            self.condition_states.pop(task.uid, None)
            return
        features, meta = ignored(pod.spec), pod.metadata
        invalid = translate.annotation_problems(meta.annotations, meta.namespace)
        if features or invalid:
            self.ignored[task.uid] = Ignored(features, task.workload, invalid)
        is_false = any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions)
        meta = pod.metadata
        self.condition_states[task.uid] = ConditionState(
            meta.resource_version, meta.generation, is_false, bool(task.spec.preferences)
        )

    def _track_straggler(self, pod: Pod, task: Task) -> None:
        if task.node and not task.ended and self.is_ours(task.profile):
            meta = pod.metadata
            state = StragglerState(meta.resource_version, task.straggling, phase_weights(meta.annotations))
            self.straggler_states[task.uid] = state
        else:
            self.straggler_states.pop(task.uid, None)


class ServiceTimes:
    """Replaces start and end of each pod by the moments at which the watch showed them.

    The API gives the times at which a container ran in whole seconds, truncated: a run of 0.4 s reads as 0 or
    1 s. The watch shows both moments late, but about equally late, so their distance is accurate unless one
    of the two was delayed. Therefore the observed distance is used, limited to what the API's values allow.
    """

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


# -- what writes need to know of jobs, pools and claims ---------------------------------------------


class PlanState(Struct, frozen=True, gc=False):
    """What a patch of `status.plan` needs to know of the job."""

    resource_version: str
    plan: PlanStatus | None  # as written before


@dataclass(eq=False)
class WatchedDagJobs:
    """DagJobs, keyed by uid.

    One that is deleted, has finished, cannot be read or asks for none of our schedulers counts as gone:
    nothing of it will be placed any more, or not by this process. What cannot be read is reported once for
    each generation.
    """

    is_ours: Callable[[str], bool]  # whether a schedulerName is one of ours
    shared: AbstractSet[str] = frozenset()  # classes of work that belong to no namespace

    def __post_init__(self) -> None:
        self.plan_states: dict[str, PlanState] = {}  # uid -> of each job that counts
        self._shapes: dict[str, tuple[int, Shape | None]] = {}  # uid -> (generation, None: cannot be read)

    def observe(self, raw: Raw, _now: float) -> ObservedObject:
        """JobSeen, or JobGone for one that does not count."""
        job = decode_dag_job(raw)
        meta = job.metadata
        shape, problem = self._shape(job)
        is_over = job.status.has_finished or meta.deletion_timestamp is not None
        if shape is None or is_over or not any(map(self.is_ours, shape.profiles)):
            self.plan_states.pop(meta.uid, None)
            return ObservedObject(meta.uid, meta.resource_version, events.JobGone(meta.uid), problem=problem)
        self.plan_states[meta.uid] = PlanState(meta.resource_version, job.status.plan)
        return ObservedObject(meta.uid, meta.resource_version, events.JobSeen(job_from(job, shape)))

    def gone(self, key: str) -> Event:
        """The job is deleted."""
        self.plan_states.pop(key, None)
        self._shapes.pop(key, None)
        return events.JobGone(key)

    def _shape(self, job: DagJob) -> tuple[Shape | None, MalformedError | None]:
        """Its shape, and what is wrong with it if that is new; most updates change the status alone."""
        uid, generation = job.metadata.uid, job.metadata.generation
        known = self._shapes.get(uid)
        if known is not None and known[0] == generation:
            return known[1], None
        shape: Shape | None = None
        problem: MalformedError | None = None
        try:
            shape = shape_from(job, self.shared)
        except MalformedError as error:
            problem = error
        self._shapes[uid] = generation, shape
        return shape, problem


class PoolState(Struct, frozen=True, gc=False):
    """What a patch of the measured part of a Pool's status needs to know of it."""

    resource_version: str
    status: PoolStatus


class WatchedPools:
    """Pools, keyed by name. One that cannot be read is reported, and counts as gone."""

    def __init__(self) -> None:
        self.pool_states: dict[str, PoolState] = {}  # name -> of each Pool that counts

    def observe(self, raw: Raw, _now: float) -> ObservedObject:
        """PoolSeen, or PoolGone for one that does not count."""
        name, version = _key(POOL, raw)
        try:
            decoded = decode_pool(raw)
            pool = pool_from(decoded)
            if wrong := minimum_problem(pool):
                raise MalformedError(POOL, name, "spec.minShare", wrong)
        except MalformedError as error:
            return ObservedObject(name, version, self.gone(name), problem=error)
        self.pool_states[name] = PoolState(version, decoded.status)
        return ObservedObject(name, version, events.PoolSeen(pool))

    def gone(self, key: str) -> Event:
        """The Pool is deleted, or does not count any more."""
        self.pool_states.pop(key, None)
        return events.PoolGone(key)


class ClaimState(Struct, frozen=True, gc=False):
    """What a bind that waits needs to know of a claim."""

    uid: str
    volume: str  # to which it is bound; empty while it is not
    selected_node: str


class ClaimStates:
    """Claims by namespace/name as the watch last showed them, for binds that wait until claims are bound."""

    def __init__(self) -> None:
        self._states: dict[str, ClaimState] = {}
        self._changed: dict[str, asyncio.Event] = {}  # of claims that a bind waits for

    def get(self, key: str) -> ClaimState | None:
        """The state; None if there is no such claim."""
        return self._states.get(key)

    def set(self, key: str, state: ClaimState) -> None:
        """The watch has shown the claim."""
        self._states[key] = state
        self._report(key)

    def drop(self, key: str) -> None:
        """The claim is gone."""
        self._states.pop(key, None)
        self._report(key)

    async def changed(self, key: str, seconds: float) -> None:
        """Return when the watch has shown the claim again, or after so many seconds."""
        event = self._changed.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return

    def _report(self, key: str) -> None:
        event = self._changed.pop(key, None)
        if event is not None:
            event.set()
