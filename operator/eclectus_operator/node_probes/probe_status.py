"""The status of a NodeProbe, and the patches of it and of a NodeProfile, after each step. Pure."""

from collections.abc import Iterable
from typing import Any, Literal

from msgspec.structs import replace

from eclectus.api import common
from eclectus.api.common import MESSAGE_CHARACTERS, Condition, ObjectMeta, time_text
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Run
from eclectus.kube.requests import room_annotation
from eclectus.model.objects import Amounts
from eclectus_operator import convert
from eclectus_operator.node_probes.dispatch import Blocked, Target

READY, PROBING = "Ready", "Probing"


def begun(status: NodeProbeStatus, target: Target, room: Amounts, now: float) -> tuple[NodeProbeStatus, Run]:
    """A new run has begun, under the next number; `room`: its notional requests, recorded of a copy."""
    run = Run(status.next_number, target.node, target.work.name, time_text(now))
    if target.original is not None:
        run = replace(run, original=target.original.name, room=room_annotation(room))
    after = replace(
        status,
        next_number=run.number + 1,
        runs=(*status.runs, run),
        running=len(status.runs) + 1,
        last_run_time=run.begun_time,
    )
    return after, run


def changed(status: NodeProbeStatus, run: Run, **fields: Any) -> NodeProbeStatus:
    """What is recorded of a run has changed in these fields."""
    new = replace(run, **fields)
    return replace(status, runs=tuple(new if each.number == run.number else each for each in status.runs))


def finished(status: NodeProbeStatus, run: Run) -> NodeProbeStatus:
    """A run has ended and its pod is gone: it is counted and removed."""
    left = tuple(each for each in status.runs if each.number != run.number)
    succeeded = run.outcome is not None and run.outcome.succeeded
    return replace(
        status,
        runs=left,
        running=len(left),
        succeeded=status.succeeded + succeeded,
        failed=status.failed + (not succeeded),
    )


def accepted(probe: NodeProbe, now: float) -> NodeProbeStatus:
    """The spec is valid."""
    message = "no more probes are started" if probe.spec.suspend else "probes are started as the limits allow"
    reason = "Suspended" if probe.spec.suspend else "Accepted"
    ready = Condition(READY, "True", reason, time_text(now), message, probe.metadata.generation)
    return replace(with_condition(probe.status, ready), observed_generation=probe.metadata.generation)


def rejected(
    status: NodeProbeStatus, generation: int, problems: Iterable[str], now: float
) -> NodeProbeStatus:
    """The spec is invalid."""
    message = "; ".join(problems)[:MESSAGE_CHARACTERS]
    ready = Condition(READY, "False", "InvalidSpec", time_text(now), message, generation)
    return replace(with_condition(status, ready), observed_generation=generation)


def probing(probe: NodeProbe, blocked: Blocked | None, now: float) -> NodeProbeStatus:
    """The run that was due was started, or blocked."""
    started = ("Started", "the last run that was due was started")
    reason, message = started if blocked is None else (blocked.reason, blocked.message)
    state: Literal["True", "False"] = "True" if blocked is None else "False"
    condition = Condition(PROBING, state, reason, time_text(now), message, probe.metadata.generation)
    return with_condition(probe.status, condition)


def with_condition(status: NodeProbeStatus, new: Condition) -> NodeProbeStatus:
    """The status with this condition; an equal one if that is not worth a write."""
    return replace(status, conditions=common.with_condition(status.conditions, new))


def status_patch(probe: NodeProbe, status: NodeProbeStatus) -> dict[str, Any]:
    """A merge patch of the operator's part of the status.

    It carries the resourceVersion, so the API server answers 409 if the object has changed since it was read.
    """
    content = convert.written(replace(status, load=None))
    return {"metadata": {"resourceVersion": probe.metadata.resource_version}, "status": content}


def conditions_patch(meta: ObjectMeta, status: NodeProbeStatus) -> dict[str, Any]:
    """The same for the conditions alone: of an object whose runs cannot be read."""
    content = convert.written(status)
    kept = {name: content[name] for name in ("conditions", "observedGeneration")}
    return {"metadata": {"resourceVersion": meta.resource_version}, "status": kept}


def profile_patch(version: str, probe: str, run: Run) -> dict[str, Any]:
    """A merge patch of a NodeProfile's status: how the last run on its node ended.

    `version`: its resourceVersion, so that a request sent long ago puts no older run in its place.
    """
    outcome = convert.written(run.outcome) if run.outcome else {}
    head = {"probe": probe, "number": run.number, "class": run.class_name, "begunTime": run.begun_time}
    empty = {"seconds": None, "rate": None}  # a merge patch would keep those of the run before
    last = {**empty, **head, **outcome}
    return {"metadata": {"resourceVersion": version}, "status": {"lastProbe": last}}
