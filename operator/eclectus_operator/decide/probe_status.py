"""The status of a NodeProbe, and the patch of a NodeProfile, after each step. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from eclectus.api.common import Condition, time_text
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus, Outcome, Run
from eclectus_operator.decide import conditions
from eclectus_operator.decide.dispatch import Blocked
from eclectus_operator.objects import convert

READY, PROBING = "Ready", "Probing"


def begun(status: NodeProbeStatus, node: str, class_name: str, now: float) -> tuple[NodeProbeStatus, Run]:
    """A new run has begun, under the next number."""
    run = Run(status.next_number, node, class_name, time_text(now))
    after = replace(
        status,
        next_number=run.number + 1,
        runs=(*status.runs, run),
        running=len(status.runs) + 1,
        last_run_time=run.begun_time,
    )
    return after, run


def pod_seen(status: NodeProbeStatus, run: Run, uid: str) -> NodeProbeStatus:
    """The pod of a run was seen."""
    return _with_run(status, replace(run, pod_uid=uid))


def ended(status: NodeProbeStatus, run: Run, outcome: Outcome) -> NodeProbeStatus:
    """A run has ended."""
    return _with_run(status, replace(run, outcome=outcome))


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
    message = "; ".join(problems)[: conditions.MESSAGE_CHARACTERS]
    ready = Condition(READY, "False", "InvalidSpec", time_text(now), message, generation)
    return replace(with_condition(status, ready), observed_generation=generation)


def probing(
    probe: NodeProbe, status: NodeProbeStatus, blocked: Blocked | None, now: float
) -> NodeProbeStatus:
    """The run that was due was started, or blocked."""
    generation, moment = probe.metadata.generation, time_text(now)
    if blocked is None:
        return with_condition(
            status,
            Condition(
                PROBING, "True", "Started", moment, "the last run that was due was started", generation
            ),
        )
    return with_condition(
        status, Condition(PROBING, "False", blocked.reason, moment, blocked.message, generation)
    )


def with_condition(status: NodeProbeStatus, new: Condition) -> NodeProbeStatus:
    """The status with this condition; the same one if that is not worth a write."""
    found = conditions.with_condition(status.conditions, new)
    return status if found == status.conditions else replace(status, conditions=found)


def profile_patch(probe: str, run: Run) -> dict[str, Any]:
    """A merge patch of a NodeProfile's status: how the last run on its node ended."""
    outcome = convert.written(run.outcome) if run.outcome else {}
    head = {"probe": probe, "number": run.number, "class": run.class_name, "begunTime": run.begun_time}
    empty = {"seconds": None, "rate": None}  # a merge patch would keep those of the run before
    return {"status": {"lastProbe": {**empty, **head, **outcome}}}


def _with_run(status: NodeProbeStatus, run: Run) -> NodeProbeStatus:
    return replace(status, runs=tuple(run if each.number == run.number else each for each in status.runs))
