"""NodeProbe: which nodes to benchmark, with what and how often; and what has come of it.

The types follow the definition in the chart's files/crds field by field, in camel case there. The operator
reads the whole object and writes its status, but for `load`, which the scheduler writes.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Literal

from msgspec import Struct, json

from eclectus.api.common import NOTABLE, Condition, ObjectMeta, Page, has_changed, page_of, rounded, time_text
from eclectus.api.names import NODE_PROBE
from eclectus.model.learned import LearnedLoad

MAX_CLASSES = 64  # classes of work in `status.load`: those with the largest shares
FRESH_SECONDS = 300.0  # `status.load` is written again after this; the operator ignores it after ten minutes

EndedBy = Literal["Pod", "Operator", "Other"]


class Unit(Struct, frozen=True):
    """The built-in benchmark: of what, and how much of it."""

    kind: Literal["cpu", "memory", "disk"]
    units: int = 50


class SingleContainer(Struct, frozen=True):
    """A pod of one container. Without `command` or `args` the image's own are used."""

    image: str
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None
    shell: bool = False
    requests: dict[str, str | int] = {}


class ProbeClass(Struct, frozen=True):
    """A class of work and the pod that measures it: exactly one of `unit`, `run` and `template`."""

    name: str
    unit: Unit | None = None
    run: SingleContainer | None = None
    template: dict[str, Any] | None = None


class Limits(Struct, frozen=True, rename="camel"):
    """How often benchmarks run."""

    per_hour: int = 60
    least_per_hour: int = 6
    spare_share: float = 0.1
    running: int = 2
    node_interval_seconds: float = 1800


class Deadlines(Struct, frozen=True, rename="camel"):
    """The longest time that each stage of a pod may take."""

    scheduling_seconds: float = 60
    pulling_seconds: float = 120
    starting_seconds: float = 60
    running_seconds: float = 600
    deleting_seconds: float = 120


class Toleration(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A toleration, as in a pod's spec."""

    key: str = ""
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeProbeSpec(Struct, frozen=True, rename="camel"):
    """What to measure, where and how often."""

    node_selector: dict[str, str]
    classes: tuple[ProbeClass, ...]
    suspend: bool = False
    scheduler_name: str = "eclectus"
    reserve_room: bool = False
    tolerations: tuple[Toleration, ...] = ()
    limits: Limits = Limits()
    deadlines: Deadlines = Deadlines()


class Outcome(Struct, frozen=True, rename="camel"):
    """How a benchmark run ended. `ended_by`: the pod itself, the operator, or something else."""

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
    """A benchmark run as recorded: begun, then (with `pod_uid`) its pod observed, then ended."""

    number: int
    node: str
    class_name: str
    begun_time: str
    pod_uid: str = ""
    outcome: Outcome | None = None


class ClassShare(Struct, frozen=True):
    """The share of a class in the arriving work, 0 to 1."""

    name: str
    share: float


class Load(Struct, frozen=True, rename="camel"):
    """How busy the cluster is: tasks per second that arrive and that all live nodes can serve."""

    arrival_rate: float
    service_rate: float
    observed_time: datetime
    classes: tuple[ClassShare, ...] = ()


class NodeProbeStatus(Struct, frozen=True, rename="camel"):
    """The operator's record of its runs, and the scheduler's `load`."""

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

    metadata: ObjectMeta
    spec: NodeProbeSpec
    status: NodeProbeStatus = NodeProbeStatus()

    def find_class(self, name: str) -> ProbeClass | None:
        """The class of that name; None if the spec has none."""
        return next((each for each in self.spec.classes if each.name == name), None)


class _LoadStatus(Struct, frozen=True):
    load: Load | None = None


class NodeProbeLoad(Struct, frozen=True):
    """A NodeProbe with nothing but its name and load: a spec that cannot be read must not hide the others."""

    metadata: ObjectMeta = ObjectMeta()
    status: _LoadStatus = _LoadStatus()


decode_page = partial(page_of, json.Decoder(Page[NodeProbeLoad]), NODE_PROBE)


def load_of(known: LearnedLoad, at: float) -> dict[str, Any]:
    """The JSON of `status.load`; `at` in seconds since the epoch."""
    shares = sorted(known.shares, key=lambda each: (-each[1], each[0]))[:MAX_CLASSES]
    return {
        "arrivalRate": rounded(known.arrivals),
        "serviceRate": rounded(known.capacity),
        "observedTime": time_text(at),
        "classes": [{"name": name, "share": rounded(share)} for name, share in shares],
    }


def differs(probe: NodeProbeLoad, known: LearnedLoad, at: float) -> bool:
    """Whether `status.load` should be written again: it is absent, old, or has changed by a tenth."""
    written = probe.status.load
    if written is None or at - written.observed_time.timestamp() >= FRESH_SECONDS:
        return True
    if written.service_rate and not known.capacity:
        return False  # this scheduler has only just started: another one's measured rate is better
    if has_changed(written.arrival_rate, known.arrivals) or has_changed(written.service_rate, known.capacity):
        return True
    before, now = {each.name: each.share for each in written.classes}, dict(known.shares)
    return any(
        abs(before.get(name, 0.0) - now.get(name, 0.0)) > NOTABLE for name in before.keys() | now.keys()
    )
