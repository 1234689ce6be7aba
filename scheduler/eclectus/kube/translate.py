"""Pods and nodes of the API as tasks and nodes of the model.

A pod's `Spec` is made without its node, and its labels count in it only as far as rules about other pods
need them (constraints.py), so that pods of one template share a class. `Spec.node_name` therefore stays
empty (a pod with a nodeName is bound already); it is for tasks that the engine itself restricts to a node.

Annotations have hints of users: estimates, and what a probe stands for. Nothing depends on their truth. A
hint that cannot be read is left out. It never keeps a pod from being counted or placed: anybody who may
create a pod may write one, also on pods that other schedulers place.

Of a node or pod of which a part cannot be read the rest still counts. A cordon, a taint, the room that a pod
takes and its end must be seen whatever else the object says. An amount that cannot be read counts as none. A
pending pod with such a part is not placed, and its report says why.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, cast

from msgspec import Raw
from msgspec.json import Decoder, encode
from msgspec.structs import replace

from eclectus.api import names
from eclectus.api.common import bounded
from eclectus.kube import constraints, objects
from eclectus.kube.cluster_objects import COSCHEDULING, COSCHEDULING_LABEL, KUBERNETES
from eclectus.kube.constraints import unsupported
from eclectus.kube.data import input_problems, inputs
from eclectus.kube.objects import ApiObject, OwnerReference, Pod, PodStatus, decode, full_name
from eclectus.kube.progress import progress, progress_problems
from eclectus.kube.requests import MOST, FieldError, amounts, annotated_room, held, parsed, requested
from eclectus.model import objects as model
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Amounts, GangKey, Images, Spec, Task, UsedClaim, workload_name

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
CONTROLLERS = (("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))
_PHASES = ("Pending", "Running", "Succeeded", "Failed")


def task_from(pod: Pod, spec: Spec | None = None, shared: AbstractSet[str] = frozenset()) -> Task:
    """The pod as a task. Raises MalformedError naming the pod and the field.

    `spec` is the Spec made from the same generation of the pod before; it saves half of the work. `shared`
    are the classes of work that belong to no namespace.
    """
    try:
        return _task(pod, spec_from(pod) if spec is None else spec, shared)
    except FieldError as error:
        name = full_name(pod.metadata.namespace, pod.metadata.name)
        raise MalformedError("Pod", name, error.field, error.problem) from error


def node_from(node: objects.Node) -> model.Node:
    """The node in the model. Raises MalformedError naming the node and the field.

    The condition Ready is not read: the node controller taints nodes that are not ready, and as in
    kube-scheduler the taints count.
    """
    field = "status.allocatable"
    if not node.metadata.name:
        raise MalformedError("Node", "?", "metadata.name", "missing")
    try:
        allocatable = amounts(parsed(node.status.allocatable, field), MOST)
    except FieldError as error:
        raise MalformedError("Node", node.metadata.name, error.field, error.problem) from error
    return model.Node(
        name=node.metadata.name,
        allocatable=allocatable,
        labels=constraints.pairs(node.metadata.labels),
        taints=constraints.taints(node),
        unschedulable=node.spec.unschedulable,
    )


def spec_from(pod: Pod) -> Spec:
    """What rules and policies may read of the pod, from its spec alone. Raises FieldError."""
    spec = pod.spec
    requests = requested(pod)
    affinity = None if spec.affinity is None else spec.affinity.node_affinity
    return Spec(
        requests=requests.amounts,
        score_requests=requests.scored,
        node_selector=constraints.pairs(spec.node_selector),
        affinity=None if affinity is None else constraints.required_terms(affinity),
        preferences=() if affinity is None else constraints.preferences(affinity),
        tolerations=constraints.tolerations(spec),
        host_ports=constraints.host_ports(spec),
        long_running=spec.restart_policy == "Always" and spec.active_deadline_seconds is None,
        probe=names.RUN_ID_LABEL in pod.metadata.labels,
        unsupported=unsupported(spec),
    )


def workload_of(pod: Pod, shared: AbstractSet[str]) -> str:
    """The class label, or else the images without versions; of the pod's namespace, unless it is shared."""
    namespace, label = pod.metadata.namespace, pod.metadata.labels.get(names.CLASS_LABEL)
    if label and _LABEL_VALUE.fullmatch(label):  # the API server allows no other
        return workload_name(namespace, label, shared)
    images = sorted({_repository(container.image) for container in pod.spec.containers})
    return bounded(workload_name(namespace, ",".join(images)))


def _task(pod: Pod, translated: Spec, shared: AbstractSet[str]) -> Task:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    if not meta.name:
        raise FieldError("metadata.name", "missing")
    if not meta.uid:
        raise FieldError("metadata.uid", "missing; it distinguishes pods of the same name")
    ended = status.phase in ("Succeeded", "Failed")
    started, finished = _times(status, ended)
    speculative = meta.labels.get(names.SPECULATIVE_LABEL) == "true"
    translated = constraints.with_pod_rules(translated, pod)
    owner = next((owner for owner in meta.owner_references if owner.controller), None)
    return Task(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        profile=spec.scheduler_name,
        spec=translated,
        priority=spec.priority,
        preempts=spec.preemption_policy != "Never" and names.COPY_OF_LABEL not in meta.labels,
        created=objects.seconds(meta.creation_timestamp) or 0.0,
        workload=workload_of(pod, shared),
        job=meta.uid if owner is None else owner.uid,
        controller="" if owner is None or spec.node_name else _controller(owner),
        stage=meta.labels.get(names.STAGE_LABEL, ""),
        gates=tuple(gate.name for gate in spec.scheduling_gates),
        labels=constraints.pairs(meta.labels),
        asked_pool=meta.labels.get(names.POOL_LABEL, ""),
        anti_affinity_terms=translated.own_anti_affinity,
        claims=_claims(pod) if spec.volumes else (),
        gang=_gang_key(pod),
        node=spec.node_name,
        nominated=status.nominated_node_name,
        phase=cast(Any, status.phase if status.phase in _PHASES else "Unknown"),
        deleting=meta.deletion_timestamp is not None,
        held=_held(pod, translated) if spec.node_name and not ended else None,
        started=started,
        finished=finished,
        accepted=objects.seconds(status.start_time),
        copy_of=meta.labels.get(names.COPY_OF_LABEL, ""),
        speculative=speculative,
        restartable=names.RESTARTABLE in meta.annotations and _is_restartable(owner, meta.annotations),
        straggling=any(each.type == names.STRAGGLING and each.status == "True" for each in status.conditions),
        progress=progress(meta.annotations) if names.PROGRESS in meta.annotations else None,
        unread_progress="; ".join(_progress_problems(meta.annotations)) if speculative else "",
        reported=_reported(status),
        estimate=seconds(meta.annotations, names.ESTIMATED_SECONDS),
        path=seconds(meta.annotations, names.PATH_SECONDS),
        job_work=seconds(meta.annotations, names.JOB_WORK_SECONDS),
        inputs=(
            inputs(meta.annotations[names.INPUTS], meta.namespace) if names.INPUTS in meta.annotations else ()
        ),
        notional_requests=notional_requests(meta.annotations) if translated.probe else (),
    )


def _claims(pod: Pod) -> tuple[UsedClaim, ...]:
    """The claims that its volumes name; that of a generic ephemeral volume is named after pod and volume."""
    found = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found.append(UsedClaim(volume.persistent_volume_claim.claim_name))
        elif volume.ephemeral is not None:
            found.append(UsedClaim(f"{pod.metadata.name}-{volume.name}", is_own=True))
    return tuple(found)


def _gang_key(pod: Pod) -> GangKey | None:
    """The PodGroup that the pod names; None for most pods. Its field counts more than the label."""
    meta, group = pod.metadata, pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return GangKey(KUBERNETES, meta.namespace, group.pod_group_name)
    label = meta.labels.get(COSCHEDULING_LABEL)
    return GangKey(COSCHEDULING, meta.namespace, label) if label else None


def _held(pod: Pod, spec: Spec) -> model.Amounts | None:
    """What the pod holds; None if that equals its requests."""
    amounts_held = held(pod)
    return None if amounts_held == spec.requests else amounts_held


def _repository(image: str) -> str:
    image = image.partition("@")[0]
    path, colon, tag = image.rpartition(":")
    return path if colon and "/" not in tag else image  # with a slash behind it, the colon is of a port


def _controller(owner: OwnerReference) -> str:
    """`kind/name` of an owner with a selector by which a scheduler spreads its pods; empty for others."""
    return f"{owner.kind}/{owner.name}" if (owner.api_version, owner.kind) in CONTROLLERS else ""


def _is_restartable(owner: OwnerReference | None, annotations: Mapping[str, str]) -> bool:
    """Whether the pod is of a Job and says that its work may begin anew, and not that all others need it."""
    is_of_job = owner is not None and (owner.api_version, owner.kind) == ("batch/v1", "Job")
    is_root = annotations.get(names.ROOT_TASK) == "true"
    return is_of_job and not is_root and annotations.get(names.RESTARTABLE) == "true"


def _times(status: PodStatus, ended: bool) -> tuple[float | None, float | None]:
    """When the first app container started and, once the pod has ended, when the last one finished."""
    starts, ends = [], []
    for container in status.container_statuses:
        running, terminated = container.state.running, container.state.terminated
        if running is not None:
            starts.append(objects.seconds(running.started_at))
        elif terminated is not None:
            starts.append(objects.seconds(terminated.started_at))
            ends.append(objects.seconds(terminated.finished_at))
    started = min((at for at in starts if at is not None), default=None)
    finished = max((at for at in ends if at is not None), default=None) if ended else None
    return started, finished


def _reported(status: PodStatus) -> str:
    refused = (each for each in status.conditions if each.type == "PodScheduled" and each.status == "False")
    return next((each.message for each in refused), "")


MAX_SECONDS: Mapping[str, float] = {
    names.ESTIMATED_SECONDS: 1e9,  # thirty years: a longer estimate is a mistake
    names.PATH_SECONDS: 1e9,
    names.JOB_WORK_SECONDS: 1e13,  # ten thousand pods for thirty years
}
MAX_TEXT = 80  # characters of a value that a message shows


def seconds(annotations: Mapping[str, str], annotation: str) -> float | None:
    """The seconds that an annotation of `MAX_SECONDS` gives; None without it or if it is invalid."""
    if annotation not in annotations:
        return None
    try:
        found = float(annotations[annotation])
    except ValueError:
        return None
    return found if 0 < found <= MAX_SECONDS[annotation] else None


def notional_requests(annotations: Mapping[str, str]) -> Amounts:
    """What a probe stands for; empty without the annotation or if it is invalid."""
    try:
        return annotated_room(annotations)
    except FieldError:
        return ()


def annotation_problems(annotations: Mapping[str, str], namespace: str) -> tuple[str, ...]:
    """What is wrong with the estimates, the progress and the inputs on a pod; empty for most pods.

    `namespace`: of the pod.
    """
    wrong = tuple(
        f"{annotation}: {annotations[annotation][:MAX_TEXT]!r} is not a number of seconds above 0 "
        f"and at most {most:g}"
        for annotation, most in MAX_SECONDS.items()
        if annotation in annotations and seconds(annotations, annotation) is None
    )
    text = annotations.get(names.INPUTS)
    return wrong + _progress_problems(annotations) + (() if text is None else input_problems(text, namespace))


def _progress_problems(annotations: Mapping[str, str]) -> tuple[str, ...]:
    says_any = names.PROGRESS in annotations or names.PHASE_WEIGHTS in annotations
    return progress_problems(annotations) if says_any else ()


# -- what can be read of malformed objects -----------------------------------------------------------


_AMOUNTS = ("allocatable", "allocated_resources", "overhead", "requests")  # fields that are resource lists


def readable_node(node: objects.Node) -> objects.Node:
    """The node without the amounts that cannot be read."""
    return cast(objects.Node, _readable(node))


def readable_task(pod: Pod, error: MalformedError, shared: AbstractSet[str] = frozenset()) -> Task:
    """The pod as a task without what cannot be read; `error` is what task_from raised, `shared` as there.

    Its spec asks for a feature that is not supported, which names the field. Raises MalformedError if the pod
    has no name or no uid.
    """
    affinity = pod.spec.affinity
    if affinity is not None:  # it matters only for pods that may be placed
        pod = replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=None)))
    task = task_from(_readable(pod), shared=shared)
    feature = f"what cannot be read ({error.field}: {error.problem})"
    return replace(task, spec=replace(task.spec, unsupported=(*task.spec.unsupported, feature)))


def _readable(part: Any, field: str = "") -> Any:
    """A part of an object, which is in this field, without the amounts that cannot be read."""
    if field in _AMOUNTS:
        return {name: amount for name, amount in part.items() if _is_readable(name, amount)}
    if isinstance(part, tuple):
        return tuple(map(_readable, part))
    if isinstance(part, ApiObject):
        fields = {name: _readable(getattr(part, name), name) for name in part.__struct_fields__}
        return replace(part, **fields)
    return part


def _is_readable(name: str, amount: str | float) -> bool:
    try:
        parsed({name: amount}, "")
    except FieldError:
        return False
    return True


# -- what is kept of pods that are very large --------------------------------------------------------

BYTES_MOST = 65536  # of a pod as a task, in JSON
KEPT_MOST = 128  # labels, gates, claims and resources of a pod that has more bytes, so many of each


def small_task(task: Task) -> Task | None:
    """A pod of more than `BYTES_MOST` without constraints, so that it is not placed; None for others.

    On a node it still holds its room, but it counts no longer by its terms about other pods.
    """
    if len(encode(task)) <= BYTES_MOST:
        return None
    spec = Spec(
        requests=_small(task.spec.requests),
        score_requests=task.spec.score_requests,
        host_ports=task.spec.host_ports[:KEPT_MOST],
        long_running=task.spec.long_running,
        probe=task.spec.probe,
        unsupported=(f"constraints, labels and resources of more than {BYTES_MOST} bytes",),
    )
    held = None if task.held is None else _small(task.held)
    kept = {name: getattr(task, name)[:KEPT_MOST] for name in ("labels", "gates", "claims")}
    notional = _small(task.notional_requests)
    task = replace(task, anti_affinity_terms=(), inputs=(), **kept)
    return replace(task, spec=spec, held=held, notional_requests=notional)


def _small(requests: Amounts) -> Amounts:
    """The first amounts; those of Kubernetes' own resources, whose names have no slash, come first."""
    return tuple(sorted(sorted(requests, key=lambda each: "/" in each[0])[:KEPT_MOST]))


# -- container images; read only where a profile weighs them -----------------------------------------

MAX_IMAGES = 50  # of a pod or node: as many as a kubelet reports by default, the largest first
MAX_NAMES = 5  # of an image, as a kubelet reports at most
MAX_SHARED = 50_000  # names with sizes that nodes share in memory


class _Image(ApiObject, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class _Status(ApiObject, frozen=True):
    images: tuple[_Image, ...] = ()


class _Node(ApiObject, frozen=True):
    status: _Status = _Status()


_NODE = Decoder(_Node)
_shared: dict[tuple[str, int], tuple[str, int]] = {}


def images_of_pod(pod: Pod) -> tuple[str, ...]:
    """The image of each container and image volume, by the name that nodes report."""
    images = [each.image for each in (*pod.spec.init_containers, *pod.spec.containers)]
    images += [each.image.reference for each in pod.spec.volumes if each.image is not None]
    return tuple(map(_named, images[:MAX_IMAGES]))


def images_of_node(raw: Raw) -> Images:
    """The images that a node reports in its status. Raises MalformedError."""
    found = decode(_NODE, "Node", raw).status.images[:MAX_IMAGES]
    if len(_shared) > MAX_SHARED:
        _shared.clear()
    named = ((name, each.size_bytes) for each in found for name in (each.names or ())[:MAX_NAMES])
    return tuple(_shared.setdefault(image, image) for image in named)


def _named(image: str) -> str:
    """With the tag `latest` where it has neither a tag nor a digest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
