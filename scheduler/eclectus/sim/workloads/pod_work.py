"""A pod of a manifest as the API server would keep it, and the work that is written on it."""

from __future__ import annotations

from math import isfinite, nan
from typing import Any, TypeVar

import msgspec
from msgspec import field

from eclectus.api.names import WORK_SECONDS
from eclectus.kube.decoding import decode_pod
from eclectus.kube.placement import ApiObject
from eclectus.kube.requests import FieldError
from eclectus.kube.translate import task_from
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


def read_pod(pod: Json, name: str, namespace: str) -> tuple[Task, float]:
    """The pod by that name as the scheduler would see it, and its true size in seconds at speed 1.

    Raises FieldError where it cannot be understood, would never run or would never end.
    """
    checked = convert(pod, _Pod)
    metadata = {"uid": name, **checked.metadata, "name": name, "namespace": namespace}
    spec = pod["spec"]
    _default(spec, checked.spec)
    try:
        task = task_from(decode_pod(msgspec.json.encode({"metadata": metadata, "spec": spec})))
    except MalformedError as error:
        raise FieldError(error.field, error.problem) from error
    _refuse_never(spec, task)
    return task, seconds(checked.metadata.get("annotations", {}), WORK_SECONDS, least=1e-9)


def seconds(annotations: dict[str, str], name: str, *, least: float, default: str | None = None) -> float:
    """What an annotation says. Raises FieldError where it is no number, or missing and without default."""
    where = f"metadata.annotations[{name}]"
    text = annotations.get(name, default)
    if text is None:
        raise FieldError(where, "missing: nothing else tells how long the pod runs")
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value) or value < least:
        raise FieldError(where, f"{text!r} is no number of seconds, {least:g} or more")
    return value


def convert(value: object, kind: type[T]) -> T:
    """Plain values as a typed object. Raises FieldError naming the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise FieldError(path.rstrip("`").lstrip(".") or "object", problem) from error


def _default(spec: Json, checked: _Spec) -> None:
    """Fill in, in place, what the API server fills in and a scheduler looks at.

    Requests that only limits name; ports of the host where the pod is on the host's network.
    """
    _ask(spec, checked.resources)
    for name, containers in (("containers", checked.containers), ("initContainers", checked.init_containers)):
        for container, own in zip(spec.get(name, ()), containers, strict=True):
            _ask(container, own.resources)
            for port in container.get("ports", ()) if spec.get("hostNetwork") else ():
                port.setdefault("hostPort", port.get("containerPort", 0))


def _ask(part: Json, resources: _Resources) -> None:
    asked = resources.limits | resources.requests
    if asked:
        part["resources"] = {"requests": asked}


def _refuse_never(spec: Json, task: Task) -> None:
    """What the world here cannot play: pods that never run, that run already, or that never end."""
    if spec.get("restartPolicy", "Always") == "Always":
        problem = "Always, which is the default, begins the work again for ever; write Never or OnFailure"
        raise FieldError("spec.restartPolicy", problem)
    if task.node:
        raise FieldError("spec.nodeName", f"is bound to {task.node} already; leave it out")
    if task.gates:
        raise FieldError("spec.schedulingGates", f"waits for {task.gates[0]}, which nobody lifts here")
    if task.spec.unsupported:
        raise FieldError("spec", f"asks for {task.spec.unsupported[0]}, for which there is no rule yet")
    if "priorityClassName" in spec and "priority" not in spec:
        raise FieldError(
            "spec.priorityClassName", "what it is worth stands in a cluster; write spec.priority"
        )
