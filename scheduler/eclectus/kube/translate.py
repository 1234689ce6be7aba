"""Pods and nodes of the API as the core's nouns.

A pod's `Spec` is made from its spec alone, so that pods of one template share a class: neither the
node it is bound to nor its labels are in it. `Spec.node_name` therefore stays empty (a pod that names
a node is bound already); it is there for tasks that the core itself pins to a node.
"""

from __future__ import annotations

import re
from datetime import datetime
from math import nan
from typing import Any, cast

from eclectus.kube import constraints, objects, probe_room
from eclectus.kube.objects import Metadata, Pod, PodStatus, full_name
from eclectus.kube.requests import FieldError, amounts, held, parsed, requested
from eclectus.kube.unsupported import unsupported
from eclectus.model import objects as model
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Spec, Task

CLASS_LABEL = "eclectus.dev/class"
PROBE_LABEL = "eclectus.dev/run-id"  # the operator's, on the pods of its probes
"""A pod's label that names its kind of work, where the images do not tell."""
ESTIMATE = "eclectus.dev/estimated-seconds"
"""A pod's annotation: how long it is believed to run on an average node."""
PATH = "eclectus.dev/path-seconds"
"""A pod's annotation: the longest chain of work from its start to the end of its job, itself included."""
JOB_WORK = "eclectus.dev/job-work-seconds"
"""A pod's annotation: its job's work not begun when the pod was submitted, the pod's own included."""
_MAX_SECONDS = 1e9  # thirty years: a longer estimate is a slip
_MAX_WORK = 1e13  # ten thousand pods at a time for as long

_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PHASES = ("Pending", "Running", "Succeeded", "Failed")


def task_from(pod: Pod, spec: Spec | None = None) -> Task:
    """The pod as a task; `spec` is what an earlier sight of this generation gave: half the work.

    Raises MalformedError naming the pod and the field.
    """
    try:
        return _task(pod, _spec(pod) if spec is None else spec)
    except FieldError as error:
        name = full_name(pod.metadata.namespace, pod.metadata.name)
        raise MalformedError("Pod", name, error.field, error.problem) from error


def node_from(node: objects.Node) -> model.Node:
    """The node as the core sees it. Raises MalformedError naming the node and the field.

    Whether it is Ready is not asked: the node controller says so by taints, as for kube-scheduler.
    """
    field = "status.allocatable"
    if not node.metadata.name:
        raise MalformedError("Node", "?", "metadata.name", "missing")
    try:
        allocatable = amounts(parsed(node.status.allocatable, field), field)
    except FieldError as error:
        raise MalformedError("Node", node.metadata.name, error.field, error.problem) from error
    return model.Node(
        name=node.metadata.name,
        allocatable=allocatable,
        labels=constraints.pairs(node.metadata.labels),
        taints=constraints.taints(node),
        unschedulable=node.spec.unschedulable,
    )


def _task(pod: Pod, asked: Spec) -> Task:
    meta, spec, status = pod.metadata, pod.spec, pod.status
    if not meta.name:
        raise FieldError("metadata.name", "missing")
    if not meta.uid:
        raise FieldError("metadata.uid", "missing; a pod is told from its namesakes by it")
    ended = status.phase in ("Succeeded", "Failed")
    started, finished = _times(status, ended)
    return Task(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        profile=spec.scheduler_name,
        spec=asked,
        priority=spec.priority,
        created=_seconds(meta.creation_timestamp) or 0.0,
        workload=_workload(pod),
        job=_job(meta),
        gates=tuple(gate.name for gate in spec.scheduling_gates),
        labels=constraints.pairs(meta.labels),
        anti_affinity_terms=constraints.anti_affinity_terms(pod) if spec.affinity is not None else (),
        node=spec.node_name,
        nominated=status.nominated_node_name,
        phase=cast(Any, status.phase if status.phase in _PHASES else "Unknown"),
        deleting=meta.deletion_timestamp is not None,
        held=_held(pod, asked) if spec.node_name and not ended else None,
        started=started,
        finished=finished,
        reported=_reported(status),
        estimate=_annotated_seconds(meta, ESTIMATE),
        path=_annotated_seconds(meta, PATH),
        job_work=_annotated_seconds(meta, JOB_WORK, _MAX_WORK),
        notional_requests=probe_room.from_annotations(meta.annotations) if asked.probe else (),
    )


def _spec(pod: Pod) -> Spec:
    spec = pod.spec
    asked = requested(pod)
    placed = spec.affinity is not None
    return Spec(
        requests=asked.amounts,
        score_requests=asked.scored,
        node_selector=constraints.pairs(spec.node_selector),
        affinity=constraints.required_terms(spec) if placed else None,
        preferences=constraints.preferences(spec) if placed else (),
        tolerations=constraints.tolerations(spec),
        host_ports=constraints.host_ports(spec),
        long_running=spec.restart_policy == "Always" and spec.active_deadline_seconds is None,
        probe=PROBE_LABEL in pod.metadata.labels,
        unsupported=unsupported(spec),
    )


def _held(pod: Pod, asked: Spec) -> model.Amounts | None:
    holding = held(pod)
    return None if holding == asked.requests else holding


def _workload(pod: Pod) -> str:
    """The kind of work: the class label, else the namespace and what images run there, versions aside."""
    label = pod.metadata.labels.get(CLASS_LABEL)
    if label:
        if not _LABEL_VALUE.fullmatch(label):
            problem = f"{label[:80]!r} is no label value (at most 63 letters, digits, '-', '_' or '.')"
            raise FieldError(f"metadata.labels[{CLASS_LABEL}]", problem)
        return label
    images = sorted({_repository(container.image) for container in pod.spec.containers})
    return f"{pod.metadata.namespace}/{','.join(images)}"


def _annotated_seconds(meta: Metadata, annotation: str, most: float = _MAX_SECONDS) -> float | None:
    text = meta.annotations.get(annotation)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = nan
    if not 0 < seconds <= most:
        problem = f"{text[:80]!r} is no number of seconds (above 0, at most {most:g})"
        raise FieldError(f"metadata.annotations[{annotation}]", problem)
    return seconds


def _repository(image: str) -> str:
    image = image.partition("@")[0]
    path, colon, tag = image.rpartition(":")
    return path if colon and "/" not in tag else image  # a slash after the colon: that was a registry's port


def _job(meta: Metadata) -> str:
    return next((owner.uid for owner in meta.owner_references if owner.controller), meta.uid)


def _times(status: PodStatus, ended: bool) -> tuple[float | None, float | None]:
    """When the first app container started and, once the pod has ended, when the last one finished."""
    starts, ends = [], []
    for container in status.container_statuses:
        running, terminated = container.state.running, container.state.terminated
        if running is not None:
            starts.append(_seconds(running.started_at))
        elif terminated is not None:
            starts.append(_seconds(terminated.started_at))
            ends.append(_seconds(terminated.finished_at))
    started = min((at for at in starts if at is not None), default=None)
    finished = max((at for at in ends if at is not None), default=None) if ended else None
    return started, finished


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()


def _reported(status: PodStatus) -> str:
    for condition in status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""
