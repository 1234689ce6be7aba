"""The table of the kinds of objects that are watched: where each is listed, and which events it becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from eclectus.api.dag_job import DagJob, PlanStatus
from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS
from eclectus.framework import Need
from eclectus.kube import pod_sets, storage
from eclectus.kube.constraints import pairs
from eclectus.kube.dag_jobs import Shape, decode_dag_job, job_from, shape_from
from eclectus.kube.objects import decode_head, decode_node, full_name
from eclectus.kube.translate import images_of_node, node_from, readable_node
from eclectus.live.watch.reflector import ObservedObject, WatchedKind
from eclectus.live.watch.watched_pods import WatchedPods
from eclectus.model import events
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event
from eclectus.model.objects import Gang, GangKey, PodSelector

_STORAGE = "/apis/storage.k8s.io/v1"
_NOT_PLACED = "pods whose volumes need them are not placed"
_NOT_COMPARED = "free storage is not compared"
_NO_GROUPS = "pods that name such a PodGroup wait"
_NO_JOBS = "jobs are not planned; install the chart's definition of DagJob (crds.install=true)"


def watched_kinds(
    needs: Collection[Need], pods: WatchedPods, jobs: WatchedDagJobs, claims: ClaimStates
) -> list[WatchedKind]:
    """All kinds but those that policies do not need: the account need not be allowed to read these."""
    kinds = [
        nodes_kind(with_images="images" in needs),
        _named("Namespace", "/api/v1/namespaces", _namespace, events.NamespaceGone),
        *POD_SELECTOR_KINDS,
        *storage_kinds(claims),
        *POD_GROUP_KINDS,
        pods_kind(pods),
        _named(
            "PodDisruptionBudget",
            "/apis/policy/v1/poddisruptionbudgets",
            lambda raw: events.BudgetSeen(pod_sets.budget_from(raw)),
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
    return WatchedKind("pods", path, key, pods.observe, pods.gone, listing=listing, list_query=running)


def jobs_kind(jobs: WatchedDagJobs) -> WatchedKind:
    """DagJobs, where an Order plans them."""
    path, key = f"/apis/{API_VERSION}/{DAG_JOBS}", partial(key_by_uid, DAG_JOB)
    return WatchedKind(DAG_JOBS, path, key, jobs.observe, jobs.gone, need="jobs", undefined=_NO_JOBS)


def nodes_kind(*, with_images: bool = False) -> WatchedKind:
    """Nodes. `with_images`: whether a profile weighs which images nodes have."""
    observe = partial(_observed_node, with_images=with_images)
    return WatchedKind("nodes", "/api/v1/nodes", partial(_key, "Node"), observe, events.NodeGone)


def _observed_node(raw: Raw, _now: float, *, with_images: bool) -> ObservedObject:
    """The node without amounts that cannot be read."""
    node = decode_node(raw)
    problem: MalformedError | None = None
    try:
        seen = node_from(node)
    except MalformedError as error:
        seen, problem = node_from(readable_node(node)), error
    try:
        seen = replace(seen, images=images_of_node(raw)) if with_images else seen
    except MalformedError as error:
        problem = problem or error
    return ObservedObject(seen.name, node.metadata.resource_version, events.NodeSeen(seen), problem=problem)


# -- kinds known by namespace and name -------------------------------------------------------------


def _named(
    kind: str,
    path: str,
    read: Callable[[Raw], Event | None],
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
        event = read(raw)
        if event is None:
            return ObservedObject(key, version, gone(key), is_listed=False)
        return ObservedObject(key, version, event)

    return WatchedKind(name or path.rpartition("/")[2], path, partial(_key, kind), observe, gone, **others)


def _seen(
    event: Callable[[Any], Event], translate: Callable[[Raw], object | None]
) -> Callable[[Raw], Event | None]:
    """What makes an event of the object that `translate` returns, and nothing of None."""

    def read(raw: Raw) -> Event | None:
        found = translate(raw)
        return None if found is None else event(found)

    return read


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


def _namespace(raw: Raw) -> Event:
    """A namespace that is being deleted counts while it exists."""
    metadata = decode_head(raw).metadata
    return events.NamespaceSeen(metadata.name, pairs(metadata.labels))


# -- which pods others select ----------------------------------------------------------------------


def _pod_selectors(kind: str, path: str, selected: Callable[[str, Raw], PodSelector]) -> WatchedKind:
    """Of each object the selector alone is kept."""

    def read(raw: Raw) -> Event | None:
        found = selected(kind, raw)
        return events.PodSelectorSeen(found) if found.selector else None

    return _named(
        kind, path, read, lambda key: events.PodSelectorGone(kind, *_parts(key)), need="spread objects"
    )


POD_SELECTOR_KINDS = (
    _pod_selectors("Service", "/api/v1/services", pod_sets.selected_by_labels),
    _pod_selectors("ReplicationController", "/api/v1/replicationcontrollers", pod_sets.selected_by_labels),
    _pod_selectors("ReplicaSet", "/apis/apps/v1/replicasets", pod_sets.selected_by_selector),
    _pod_selectors("StatefulSet", "/apis/apps/v1/statefulsets", pod_sets.selected_by_selector),
)


# -- storage ---------------------------------------------------------------------------------------


def storage_kinds(claims: ClaimStates) -> list[WatchedKind]:
    """What pods' volumes need. The states of `claims` are kept for binds that wait for them."""

    def claim(raw: Raw) -> Event:
        found = storage.claim_from(raw)
        volume = found.volume if found.is_bound else ""
        claims.set(found.key, ClaimState(found.uid, volume, found.selected_node))
        return events.VolumeClaimSeen(found)

    def claim_gone(key: str) -> Event:
        claims.drop(key)
        return events.VolumeClaimGone(key)

    path = "/api/v1/persistentvolumeclaims"
    return [
        _named("PersistentVolumeClaim", path, claim, claim_gone, undefined=_NOT_PLACED),
        *OTHER_STORAGE_KINDS,
    ]


OTHER_STORAGE_KINDS = (
    _named(
        "PersistentVolume",
        "/api/v1/persistentvolumes",
        _seen(events.VolumeSeen, storage.volume_from),
        events.VolumeGone,
        undefined=_NOT_PLACED,
    ),
    _named(
        "StorageClass",
        f"{_STORAGE}/storageclasses",
        _seen(events.StorageClassSeen, storage.storage_class_from),
        events.StorageClassGone,
        undefined=_NOT_PLACED,
    ),
    _named(
        "CSINode",
        f"{_STORAGE}/csinodes",
        _seen(events.AttachLimitsSeen, storage.attach_limits_from),
        events.AttachLimitsGone,
        undefined="the number of volumes on a node is not limited",
    ),
    _named(
        "VolumeAttachment",
        f"{_STORAGE}/volumeattachments",
        _seen(events.AttachmentSeen, storage.attachment_from),
        events.AttachmentGone,
        undefined="volumes that no pod uses any more do not count against the limits of nodes",
    ),
    _named(
        "CSIDriver",
        f"{_STORAGE}/csidrivers",
        lambda raw: events.StorageDriverSeen(*storage.storage_driver_from(raw)),
        events.StorageDriverGone,
        undefined=_NOT_COMPARED,
    ),
    _named(
        "CSIStorageCapacity",
        f"{_STORAGE}/csistoragecapacities",
        _seen(events.FreeStorageSeen, storage.free_storage_from),
        events.FreeStorageGone,
        undefined=_NOT_COMPARED,
    ),
)


# -- pod groups, of both APIs; a cluster need not serve either, and most serve none ------------------


def _pod_groups(api: str, versions: Sequence[str], gang_from: Callable[[Raw], Gang]) -> WatchedKind:
    newest, *older = (f"/apis/{api}/{version}/{pod_sets.POD_GROUPS}" for version in versions)
    return _named(
        pod_sets.POD_GROUP,
        newest,
        lambda raw: events.GangSeen(gang_from(raw)),
        lambda key: events.GangGone(GangKey(api, *_parts(key))),
        name=f"{pod_sets.POD_GROUPS}.{api}",
        older_paths=tuple(older),
        undefined=_NO_GROUPS,
        is_expected=False,
    )


POD_GROUP_KINDS = (
    _pod_groups(pod_sets.KUBERNETES, pod_sets.KUBERNETES_VERSIONS, pod_sets.gang_from),
    _pod_groups(pod_sets.COSCHEDULING, pod_sets.COSCHEDULING_VERSIONS, pod_sets.coscheduling_gang_from),
)


# -- what writes need to know of jobs and claims ----------------------------------------------------


class PlanState(Struct, frozen=True, gc=False):
    """What a patch of `status.plan` needs to know of the job."""

    resource_version: str
    plan: PlanStatus | None  # as written before


class WatchedDagJobs:
    """DagJobs, keyed by uid.

    One that is deleted, has finished, cannot be read or asks for none of our schedulers counts as gone:
    nothing of it will be placed any more, or not by this process. What cannot be read is reported once for
    each generation.
    """

    def __init__(self, is_ours: Callable[[str], bool], shared: AbstractSet[str] = frozenset()) -> None:
        self._is_ours = is_ours  # whether a schedulerName is one of ours
        self._shared = shared  # classes of work that belong to no namespace
        self.plan_states: dict[str, PlanState] = {}  # uid -> of each job that counts
        self._shapes: dict[str, tuple[int, Shape | None]] = {}  # uid -> (generation, None: cannot be read)

    def observe(self, raw: Raw, _now: float) -> ObservedObject:
        """JobSeen, or JobGone for one that does not count."""
        job = decode_dag_job(raw)
        meta = job.metadata
        shape, problem = self._shape(job)
        is_over = job.status.has_finished or meta.deletion_timestamp is not None
        if shape is None or is_over or not any(map(self._is_ours, shape.profiles)):
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
            shape = shape_from(job, self._shared)
        except MalformedError as error:
            problem = error
        self._shapes[uid] = generation, shape
        return shape, problem


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
