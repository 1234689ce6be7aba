"""Pods of a manifest, with the API server's defaults, and the true work in their annotations."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from math import isfinite, nan
from typing import Any, TypeVar

import msgspec
from msgspec import field

from eclectus.api.names import WORK_SECONDS
from eclectus.kube.decoding import decode_pod
from eclectus.kube.placement import ApiObject
from eclectus.kube.requests import FieldError
from eclectus.kube.translate import annotation_problems, task_from
from eclectus.model.errors import MalformedError
from eclectus.model.objects import Task

Json = dict[str, Any]
T = TypeVar("T")


class _Resources(ApiObject, frozen=True):
    requests: Json = field(default_factory=dict)
    limits: Json = field(default_factory=dict)


class _Container(ApiObject, frozen=True):
    resources: _Resources = _Resources()
    ports: tuple[Json, ...] = ()


class _Spec(ApiObject, frozen=True):
    containers: tuple[_Container, ...]
    init_containers: tuple[_Container, ...] = ()
    resources: _Resources = _Resources()


class _Pod(ApiObject, frozen=True):
    spec: _Spec
    metadata: Json = field(default_factory=dict)


def read_pod(pod: Json, name: str, namespace: str, shared: AbstractSet[str]) -> tuple[Task, float]:
    """The pod as the scheduler would see it, and its true size in seconds at speed 1.

    `shared`: classes of work that belong to no namespace. Raises FieldError if the pod is malformed, would
    never run or would never end.
    """
    checked = convert(pod, _Pod)
    metadata = {"uid": name, **checked.metadata, "name": name, "namespace": namespace}
    spec = pod["spec"]
    _default(spec, checked.spec)
    try:
        decoded = decode_pod(msgspec.json.encode({"metadata": metadata, "spec": spec}))
        task = task_from(decoded, shared=shared)
    except MalformedError as error:
        raise FieldError(error.field, error.problem) from error
    for problem in annotation_problems(decoded.metadata.annotations):
        raise FieldError("metadata.annotations", problem)
    _refuse_unsupported(spec, task)
    return task, seconds(checked.metadata.get("annotations", {}), WORK_SECONDS, least=1e-9)


def seconds(annotations: dict[str, str], name: str, *, least: float, default: str | None = None) -> float:
    """The value of an annotation. Raises FieldError if it is invalid, or missing without a default."""
    where = f"metadata.annotations[{name}]"
    text = annotations.get(name, default)
    if text is None:
        raise FieldError(where, "missing: it says how long the pod runs")
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value) or value < least:
        raise FieldError(where, f"{text!r} is not a number of seconds, {least:g} or more")
    return value


def convert(value: object, target: type[T]) -> T:
    """Convert plain values to a typed object. Raises FieldError naming the field."""
    try:
        return msgspec.convert(value, target)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise FieldError(path.rstrip("`").lstrip(".") or "object", problem) from error


def _default(spec: Json, checked: _Spec) -> None:
    """Set in place the API server's defaults that matter to a scheduler.

    Requests default to limits; host ports to container ports if the pod uses the host's network.
    """
    _default_requests(spec, checked.resources)
    for name, containers in (("containers", checked.containers), ("initContainers", checked.init_containers)):
        for container, own in zip(spec.get(name, ()), containers, strict=True):
            _default_requests(container, own.resources)
            for port in container.get("ports", ()) if spec.get("hostNetwork") else ():
                port.setdefault("hostPort", port.get("containerPort", 0))


def _default_requests(part: Json, resources: _Resources) -> None:
    requests = resources.limits | resources.requests
    if requests:
        part["resources"] = {"requests": requests}


def _refuse_unsupported(spec: Json, task: Task) -> None:
    """Refuse what cannot be simulated: pods that never run, run already or never end."""
    if spec.get("restartPolicy", "Always") == "Always":
        problem = "Always, the default, restarts the work for ever; write Never or OnFailure"
        raise FieldError("spec.restartPolicy", problem)
    if task.node:
        raise FieldError("spec.nodeName", f"the pod is already bound to {task.node}; leave it out")
    if task.gates:
        raise FieldError(
            "spec.schedulingGates", f"nothing removes the gate {task.gates[0]} in a simulation; leave it out"
        )
    if task.spec.unsupported:
        raise FieldError("spec", f"uses {task.spec.unsupported[0]}, which is not supported yet")
    if task.claims:
        raise FieldError(
            "spec.volumes", f"nothing binds the claim {task.claims[0].name} in a simulation; leave it out"
        )
    if "priorityClassName" in spec and "priority" not in spec:
        raise FieldError("spec.priorityClassName", "priority classes are not known here; write spec.priority")
