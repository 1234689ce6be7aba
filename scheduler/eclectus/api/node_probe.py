"""NodeProbe: which nodes to benchmark, with what and how often; and what has come of it.

The types follow the definition in the chart's files/crds field by field, in camel case there. The operator
reads the whole object and writes its status, but for `load`, which the scheduler writes.

The pods of a benchmark are named

    eclectus-probe-<instance>-<run id>-<seq>

Names are deterministic: an operator that restarts after a crash computes the same name, and the API
server's 409 AlreadyExists says that the pod exists. Labels repeat everything that is in the name, so that
the state can be rebuilt from the API alone. A pod belongs to an operator only if name and labels agree: a
pod that merely has the prefix is never deleted. The instance is part of the name because two installations
may share a namespace. A repeated attempt takes a new `seq`: the old pod of that name may still terminate.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal

from msgspec import Struct, json

from eclectus.api.common import NOTABLE, Condition, ObjectMeta, Page, has_changed, page_of, rounded, time_text
from eclectus.api.names import ATTEMPT_LABEL, INSTANCE_LABEL, NODE_PROBE, RUN_ID_LABEL, SEQ_LABEL
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


class Recent(Struct, frozen=True, rename="camel"):
    """A copy of a pod of the class that has succeeded in the namespace of the probes, not too long ago."""

    within_seconds: float = 86_400


class ProbeClass(Struct, frozen=True):
    """A class of work and the pod that measures it: exactly one of the four."""

    name: str
    unit: Unit | None = None
    run: SingleContainer | None = None
    template: dict[str, Any] | None = None
    recent: Recent | None = None


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
    """A benchmark run as recorded: begun, then (with `pod_uid`) its pod observed, then ended.

    `original`: of a copy, the pod's name; `room`: its notional requests, as in the annotation, since neither
    the copy nor its original need exist when it is asked whether real pods use that room.
    """

    number: int
    node: str
    class_name: str
    begun_time: str
    pod_uid: str = ""
    outcome: Outcome | None = None
    original: str | None = None
    room: str | None = None


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


# -- how its pods are named and recognised -----------------------------------------------------------

PREFIX = "eclectus-probe"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "eclectus"

ID_CHARACTERS = 16  # prefix, two ids, ten digits and dashes: 59 of a DNS label's 63
MAX_SEQ = 2**31 - 1
_ID = re.compile(rf"[a-z0-9]{{1,{ID_CHARACTERS}}}")  # no dash: the name must split in one way only
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_NAME = re.compile(rf"{PREFIX}-({_ID.pattern})-({_ID.pattern})-({_NUMBER.pattern})")


class NamingError(ValueError):
    """An id that cannot be part of a name: correct the field that the message names."""


@dataclass(frozen=True, order=True)
class ProbeId:
    """Run number `seq` of a NodeProbe (`run`) of an instance, and which attempt. Raises NamingError."""

    instance: str
    run: str
    seq: int
    attempt: int = 1

    def __post_init__(self) -> None:
        for field, value in (("instance", self.instance), ("run", self.run)):
            if not _ID.fullmatch(value):
                raise NamingError(
                    f"{field} {value!r}: use 1 to {ID_CHARACTERS} lower-case letters and digits, nothing else"
                )
        for field, number, least in (("seq", self.seq, 0), ("attempt", self.attempt, 1)):
            if not least <= number <= MAX_SEQ:
                raise NamingError(f"{field} {number}: must be {least}..{MAX_SEQ}")

    @property
    def name(self) -> str:
        """The pod's name, a DNS-1123 label."""
        return f"{PREFIX}-{self.instance}-{self.run}-{self.seq}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels that identify the pod."""
        return {
            MANAGED_BY: MANAGER,
            INSTANCE_LABEL: self.instance,
            RUN_ID_LABEL: self.run,
            SEQ_LABEL: str(self.seq),
            ATTEMPT_LABEL: str(self.attempt),
        }


def selector(instance: str) -> str:
    """The label selector of an instance's pods."""
    return f"{MANAGED_BY}={MANAGER},{INSTANCE_LABEL}={instance}"


def recognised(name: str, labels: Mapping[str, str], instance: str) -> ProbeId | str:
    """Which of the instance's pods this is, if name and labels agree; else why it is none of them."""
    match = _NAME.fullmatch(name)
    if not match:
        return f"the name is not {PREFIX}-<instance>-<run>-<seq>"
    foreign = _foreign_reason(labels, instance)
    if foreign:
        return foreign
    try:
        probe = ProbeId(match[1], match[2], int(match[3]), int(labels[ATTEMPT_LABEL]))
    except NamingError as error:
        return str(error)
    for label, expected in probe.labels.items():
        if labels.get(label) != expected:
            return f"label {label} is {labels.get(label, '')!r} and the name says {expected!r}"
    return probe


def _foreign_reason(labels: Mapping[str, str], instance: str) -> str:
    """Why the labels alone show that a pod is not this instance's; empty if they do not."""
    if labels.get(MANAGED_BY) != MANAGER:
        return f"no label {MANAGED_BY}={MANAGER}: a prefix alone proves nothing"
    if labels.get(INSTANCE_LABEL) != instance:
        return f"it belongs to instance {labels.get(INSTANCE_LABEL, '')!r}"
    if not _NUMBER.fullmatch(labels.get(ATTEMPT_LABEL, "")):
        return f"label {ATTEMPT_LABEL} is {labels.get(ATTEMPT_LABEL, '')!r} and no number"
    return ""
