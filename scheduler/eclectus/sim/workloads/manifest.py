"""Kubernetes manifests as work: Pods, Jobs and Lists of them that say how long they really run.

Each is read as the API server would keep it and translated by the rules of the live scheduler: requests,
selectors, affinity, tolerations, priorities and classes mean what they mean in a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import field

from eclectus.api.names import ARRIVAL_SECONDS
from eclectus.config.document import read_documents
from eclectus.config.reading import show
from eclectus.kube.objects import full_name
from eclectus.kube.placement import ApiObject
from eclectus.kube.requests import FieldError
from eclectus.model.errors import SettingsError
from eclectus.model.objects import Task
from eclectus.sim.base.work import Arrival, Kind
from eclectus.sim.workloads.pod_work import Json, convert, read_pod, seconds


class _Metadata(ApiObject, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = "default"
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def called(self) -> str:
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


def arrivals(text: str) -> list[Arrival]:
    """What the manifest brings, in the order of time, then of the file.

    Raises SettingsError, its path the number of the document and the name of the object.
    """
    found = [_arrival(each, where) for where, each in _objects(text)]
    return sorted(found, key=lambda job: job.at)


def _objects(text: str) -> Iterator[tuple[str, Json]]:
    for number, document in enumerate(read_documents(text), start=1):
        if document is not None:
            yield from _flat(document, f"document {number}", "")


def _flat(value: object, where: str, kind: str) -> Iterator[tuple[str, Json]]:
    """The object, or the items of a list; those of a PodList need not say that they are Pods."""
    if not isinstance(value, dict):
        raise SettingsError(where, f"must be an object of Kubernetes, not {show(value)}")
    said = str(value.get("kind", kind))
    if not said.endswith("List"):
        yield where, {**_without_nulls(value), "kind": said}
        return
    items = value.get("items")
    if not isinstance(items, list):
        raise SettingsError(where, f"a {said} has items")
    for at, item in enumerate(items):
        yield from _flat(item, f"{where}, items[{at}]", said.removesuffix("List"))


def _without_nulls(value: dict[str, object]) -> Json:
    """A field that is null counts as left out, as for the API server."""
    found: Json = {}
    for key, each in value.items():
        if isinstance(each, dict):
            found[key] = _without_nulls(each)
        elif isinstance(each, list):
            found[key] = [_without_nulls(item) if isinstance(item, dict) else item for item in each]
        elif each is not None:
            found[key] = each
    return found


def _arrival(thing: Json, where: str) -> Arrival:
    kind = thing["kind"]
    try:
        if kind not in ("Pod", "Job"):
            raise FieldError("kind", f"{kind!r} is none that comes to an end: Pods and Jobs do")
        meta = convert(thing, _Any).metadata
        where = f"{where} ({kind} {full_name(meta.namespace, meta.called)})"
        at = seconds(meta.annotations, ARRIVAL_SECONDS, least=0.0, default="0")
        return _of_pod(thing, meta, at) if kind == "Pod" else _of_job(convert(thing, _Job).spec, meta, at)
    except FieldError as error:
        raise SettingsError(where, str(error)) from error


def _of_pod(pod: Json, meta: _Metadata, at: float) -> Arrival:
    task, size = read_pod(pod, meta.called, meta.namespace)
    return Arrival(at, _kind(task), (size,), estimate=task.estimate)


def _of_job(spec: _JobSpec, meta: _Metadata, at: float) -> Arrival:
    """`completions` pods, at most `parallelism` of them at a time; without completions, one for each."""
    for name, value in (("parallelism", spec.parallelism), ("completions", spec.completions)):
        if value is not None and value < 1:
            raise FieldError(f"spec.{name}", f"with {value} it runs nothing; at least 1")
    if spec.suspend:
        raise FieldError("spec.suspend", "while suspended it runs nothing; leave it out")
    at_once = spec.parallelism or 1
    try:
        task, size = read_pod(spec.template, meta.called, meta.namespace)
    except FieldError as error:
        raise FieldError(f"spec.template.{error.field}", error.problem) from error
    sizes = (size,) * (spec.completions or at_once)
    return Arrival(at, _kind(task), sizes, estimate=task.estimate, at_once=at_once)


def _kind(task: Task) -> Kind:
    return Kind(task.workload, task.spec, task.priority)
