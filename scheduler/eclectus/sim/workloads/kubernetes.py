"""`workload: {kubernetes: …}` reads a manifest of Pods and Jobs, each with its true work in an annotation.

Objects are read as the API server would store them, with its defaults, and translated by the rules of the
live scheduler: requests, selectors, affinity, tolerations, priorities and classes mean what they mean on a
cluster.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import field

from eclectus.api.common import without_nulls
from eclectus.api.names import ARRIVAL_SECONDS, WORK_SECONDS
from eclectus.config.settings_reading import read_documents, show
from eclectus.kube.objects import ApiObject, decode_pod, full_name
from eclectus.kube.requests import FieldError
from eclectus.kube.translate import annotation_problems, task_from
from eclectus.model.errors import MalformedError, SettingsError
from eclectus.model.objects import Task
from eclectus.model.settings import REQUIRED, setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.workloads.constraints import Constraints, constrained
from eclectus.sim.workloads.workload import Workload, recorded_plan

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
    for problem in annotation_problems(decoded.metadata.annotations, decoded.metadata.namespace):
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
        problem = f"nothing removes the gate {task.gates[0]} in a simulation; leave it out"
        raise FieldError("spec.schedulingGates", problem)
    if task.spec.unsupported:
        raise FieldError("spec", f"uses {task.spec.unsupported[0]}, which is not supported yet")
    if task.claims:
        problem = f"nothing binds the claim {task.claims[0].name} in a simulation; leave it out"
        raise FieldError("spec.volumes", problem)
    if "priorityClassName" in spec and "priority" not in spec:
        raise FieldError("spec.priorityClassName", "priority classes are not known here; write spec.priority")


@dataclass(frozen=True)
class Kubernetes(Workload):
    """Settings of the workload."""

    file: str = setting(REQUIRED, "path of the manifest, relative to the scenario's folder: YAML or JSON")
    shared_workloads: tuple[str, ...] = setting(
        (),
        "classes of work that are the same in all namespaces, and go by their bare names",
        "the default of tenancy.sharedWorkloads in the scheduler's configuration",
    )
    constraints: Constraints | None = setting(
        None, "constraint sets that jobs draw, if those of the manifest have none"
    )

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """Read the manifest. Raises SettingsError naming the document, the object and the field."""
        try:
            text = (folder / self.file).read_text(encoding="utf-8")
            jobs = read_manifest(text, frozenset(self.shared_workloads))
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError("file", f"{self.file} cannot be read: {error}") from error
        except SettingsError as error:
            raise SettingsError("file", f"{self.file}{',' if error.path else ''} {error}") from None
        if not jobs:
            raise SettingsError("file", f"{self.file} contains no Pod and no Job")
        plan = recorded_plan(jobs, lambda seed: iter(jobs))
        return constrained(plan, self.constraints, machines)


class _Metadata(ApiObject, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = "default"
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def display_name(self) -> str:
        return self.name or self.generate_name


class _Any(ApiObject, frozen=True):
    metadata: _Metadata


class _JobSpec(ApiObject, frozen=True):
    template: Json
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False


class _Job(ApiObject, frozen=True):
    spec: _JobSpec


def read_manifest(text: str, shared: AbstractSet[str] = frozenset()) -> list[Arrival]:
    """The jobs of a manifest, ordered by time, then by position in the file.

    `shared`: classes of work that belong to no namespace. Raises SettingsError, its path the number of the
    document and the name of the object.
    """
    found = []
    for number, document in enumerate(read_documents(text), start=1):
        if document is not None:
            things = _flat(document, f"document {number}", "")
            found += [_arrival(each, where, shared) for where, each in things]
    return sorted(found, key=lambda job: job.at)


def _flat(value: object, where: str, kind: str) -> Iterator[tuple[str, Json]]:
    """The object, or the items of a List; items of a PodList need no kind."""
    if not isinstance(value, dict):
        raise SettingsError(where, f"must be a Kubernetes object, not {show(value)}")
    found = str(value.get("kind", kind))
    if not found.endswith("List"):
        yield where, {**without_nulls(value), "kind": found}
        return
    items = value.get("items")
    if not isinstance(items, list):
        raise SettingsError(where, f"a {found} needs items")
    for at, item in enumerate(items):
        yield from _flat(item, f"{where}, items[{at}]", found.removesuffix("List"))


def _arrival(thing: Json, where: str, shared: AbstractSet[str]) -> Arrival:
    kind = thing["kind"]
    try:
        if kind not in ("Pod", "Job"):
            raise FieldError("kind", f"{kind!r} is not supported; only Pods and Jobs are")
        meta = convert(thing, _Any).metadata
        where = f"{where} ({kind} {full_name(meta.namespace, meta.display_name)})"
        at = seconds(meta.annotations, ARRIVAL_SECONDS, least=0.0, default="0")
        if kind == "Pod":
            task, size = read_pod(thing, meta.display_name, meta.namespace, shared)
            return Arrival(at, _work_class(task), (size,), estimate=task.estimate)
        return _of_job(convert(thing, _Job).spec, meta, at, shared)
    except FieldError as error:
        raise SettingsError(where, str(error)) from error


def _of_job(spec: _JobSpec, meta: _Metadata, at: float, shared: AbstractSet[str]) -> Arrival:
    """`completions` pods, at most `parallelism` at a time; without completions, `parallelism` pods."""
    for name, value in (("parallelism", spec.parallelism), ("completions", spec.completions)):
        if value is not None and value < 1:
            raise FieldError(f"spec.{name}", f"{value} is too small; at least 1")
    if spec.suspend:
        raise FieldError("spec.suspend", "a suspended Job runs nothing; leave it out")
    at_once = spec.parallelism or 1
    try:
        task, size = read_pod(spec.template, meta.display_name, meta.namespace, shared)
    except FieldError as error:
        raise FieldError(f"spec.template.{error.field}", error.problem) from error
    sizes = (size,) * (spec.completions or at_once)
    return Arrival(at, _work_class(task), sizes, estimate=task.estimate, parallelism=at_once)


def _work_class(task: Task) -> WorkClass:
    return WorkClass(task.workload, task.spec, task.priority, task.namespace, task.asked_pool)
