"""The custom resources as frozen values, read from JSON objects and written back to them.

Field by field as in the chart's files/crds, in camel case there. What the API server has checked is not
checked again here; an object from before a change of its definition may still come in another shape, and
then `read` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

GROUP, VERSION = "eclectus.dev", "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
PROBES_PATH = f"/apis/{API_VERSION}/nodeprobes"
PROFILES_PATH = f"/apis/{API_VERSION}/nodeprofiles"

EndedBy = Literal["Pod", "Operator", "Other"]
T = TypeVar("T")


class ShapeError(ValueError):
    """An object has not the shape of its definition: where, and what was expected."""


class Meta(Struct, frozen=True, rename="camel"):
    """What is needed of an object's metadata."""

    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""


class Unit(Struct, frozen=True):
    """The built-in benchmark: of what, and how much of it."""

    kind: Literal["cpu", "memory", "disk"]
    units: int = 50


class OneContainer(Struct, frozen=True):
    """A pod of one container; an absent command or args is the image's own."""

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    shell: bool = False
    requests: dict[str, str | int] = {}


class Work(Struct, frozen=True):
    """A class of work and the pod that stands for it: exactly one of unit, run and template."""

    name: str
    unit: Unit | None = None
    run: OneContainer | None = None
    template: dict[str, Any] | None = None


class Limits(Struct, frozen=True, rename="camel"):
    """How often probes run."""

    per_hour: int = 60
    least_per_hour: int = 6
    spare_share: float = 0.1
    running: int = 2
    node_interval_seconds: float = 1800


class Deadlines(Struct, frozen=True, rename="camel"):
    """The longest each stage may take."""

    scheduling_seconds: float = 60
    pulling_seconds: float = 120
    starting_seconds: float = 60
    running_seconds: float = 600
    deleting_seconds: float = 120


class Toleration(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod's answer to taints, as in its spec."""

    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ProbeSpec(Struct, frozen=True, rename="camel"):
    """What to measure, where and how often."""

    node_selector: dict[str, str]
    classes: tuple[Work, ...]
    suspend: bool = False
    scheduler_name: str = "eclectus"
    reserve_room: bool = False
    tolerations: tuple[Toleration, ...] = ()
    limits: Limits = Limits()
    deadlines: Deadlines = Deadlines()


class Outcome(Struct, frozen=True, rename="camel"):
    """How a run ended. `ended_by`: the pod itself, the operator, or somebody else."""

    succeeded: bool
    stage: str
    reason: str
    message: str
    ended_by: EndedBy
    ended_time: str
    seconds: float | None = None
    rate: float | None = None


class Run(
    Struct, frozen=True, rename={"class_name": "class", "begun_time": "begunTime", "pod_uid": "podUID"}
):
    """One run, as written down: begun, then perhaps seen as a pod, then perhaps ended."""

    number: int
    node: str
    class_name: str
    begun_time: str
    pod_uid: str = ""
    outcome: Outcome | None = None


class Condition(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A standard condition."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    last_transition_time: str
    message: str = ""
    observed_generation: int = 0


class ClassShare(Struct, frozen=True):
    """The share of a class in the work that comes."""

    name: str
    share: float


class Load(Struct, frozen=True, rename="camel"):
    """What the scheduler says: tasks a second that come and that all live nodes can do, and of which work."""

    arrival_rate: float
    service_rate: float
    observed_time: str
    classes: tuple[ClassShare, ...] = ()


class ProbeStatus(Struct, frozen=True, rename="camel"):
    """What has become of a NodeProbe; `load` is the scheduler's, all else the operator's."""

    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    last_run_time: str | None = None
    next_number: int = 0
    runs: tuple[Run, ...] = ()
    load: Load | None = None


class NodeProbe(Struct, frozen=True):
    """A NodeProbe."""

    metadata: Meta
    spec: ProbeSpec
    status: ProbeStatus = ProbeStatus()

    def work(self, class_name: str) -> Work | None:
        """The class of that name; None if the spec has it no more."""
        return next((each for each in self.spec.classes if each.name == class_name), None)


class LastProbe(Struct, frozen=True, rename="camel"):
    """What is needed of the last run on a node."""

    probe: str
    number: int
    begun_time: str


def read(found: Mapping[str, Any], kind: type[T]) -> T:
    """A value from a JSON object. Raises ShapeError, which names the field."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from error


def written(value: Struct) -> dict[str, Any]:
    """The JSON object of a value, fields without a value left out."""
    content: dict[str, Any] = _without_none(msgspec.to_builtins(value))
    return content


def status_patch(probe: NodeProbe, status: ProbeStatus) -> dict[str, Any]:
    """A merge patch of everything in status that is the operator's.

    The version in it makes the API server refuse the write when the object has changed since it was read.
    """
    content = written(replace(status, load=None))
    return {"metadata": {"resourceVersion": probe.metadata.resource_version}, "status": content}


def conditions_patch(meta: Meta, status: ProbeStatus) -> dict[str, Any]:
    """The same of the conditions alone."""
    content = written(status)
    kept = {name: content[name] for name in ("conditions", "observedGeneration")}
    return {"metadata": {"resourceVersion": meta.resource_version}, "status": kept}


def _without_none(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_none(each) for name, each in content.items() if each is not None}
    if isinstance(content, list | tuple):
        return [_without_none(each) for each in content]
    return content
