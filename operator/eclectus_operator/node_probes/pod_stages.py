"""The stage of a pod, since when, whether it is overdue, and the outcome of a run that ends in it.

Scheduling -> Pulling -> Starting -> Running -> Succeeded or Failed -> Deleting. Binding ends Scheduling.
Between binding and the start of the containers, the kubelet's events distinguish pulling an image from the
rest; without events, the reason for which a container waits does. Each stage has its own deadline.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from eclectus.api.common import time_seconds, time_text
from eclectus.api.node_probe import Deadlines, Outcome, Run
from eclectus_operator.metrics import YIELDED
from eclectus_operator.observed import PULL_REASONS, ContainerStatus, Ended, Pod, PodEvent

_MESSAGE_CHARACTERS = 1500  # kept of a container's termination message


class Stage(StrEnum):
    """The stages, in order. Creating is before the pod exists."""

    CREATING = "Creating"
    SCHEDULING = "Scheduling"
    PULLING = "Pulling"
    STARTING = "Starting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DELETING = "Deleting"


@dataclass(frozen=True)
class StageSince:
    """A stage, when it began (seconds since the epoch), and why the pod is in it, if known."""

    stage: Stage
    since: float
    reason: str = ""
    message: str = ""
    image: str = ""  # that is being pulled


def current_stage(pod: Pod, events: Sequence[PodEvent] = ()) -> StageSince:
    """The stage of a pod. Without `events`, pulling is recognised only by its failures."""
    meta, status = pod.metadata, pod.status
    if meta.deletion_timestamp:  # this is when the grace period ends
        return StageSince(Stage.DELETING, time_seconds(meta.deletion_timestamp))
    if status.phase in ("Succeeded", "Failed"):
        stage = Stage.SUCCEEDED if status.phase == "Succeeded" else Stage.FAILED
        return StageSince(stage, pod.created, status.reason, status.message)
    scheduled = pod.condition("PodScheduled")
    if not pod.spec.node_name:
        reason, message = (scheduled.reason, scheduled.message) if scheduled else ("", "")
        return StageSince(Stage.SCHEDULING, pod.created, reason, message)
    bound = pod.created
    if scheduled and scheduled.status == "True" and scheduled.last_transition_time:
        bound = time_seconds(scheduled.last_transition_time)
    return _on_node(pod, events, bound)


def _on_node(pod: Pod, events: Sequence[PodEvent], bound: float) -> StageSince:
    statuses = pod.status.container_statuses or ()
    waiting = next((each for each in statuses if not (each.state.running or each.state.terminated)), None)
    if statuses and waiting is None:
        return StageSince(Stage.RUNNING, max(_started(each) or bound for each in statuses))
    cause = waiting.state.waiting if waiting else None
    reason, message = (cause.reason, cause.message) if cause else ("", "")
    pulls = [each for each in events if each.reason in ("Pulling", "Pulled")]
    last = max(pulls, key=lambda each: each.moment, default=None)
    if reason in PULL_REASONS or (last is not None and last.reason == "Pulling"):
        return StageSince(
            Stage.PULLING, bound, reason, message or (last.message if last else ""), _image(pod, waiting)
        )
    pulled = time_seconds(last.moment) if last and last.moment else bound
    return StageSince(Stage.STARTING, pulled, reason, message)


def _image(pod: Pod, waiting: ContainerStatus | None) -> str:
    """The image of the waiting container, as the spec names it."""
    named = [each.image for each in pod.spec.containers if waiting is None or each.name == waiting.name]
    return named[0] if named else ""


def _started(status: ContainerStatus) -> float | None:
    state = status.state.running or status.state.terminated
    return time_seconds(state.started_at) if state and state.started_at else None


def deadline(stage: Stage, deadlines: Deadlines) -> float | None:
    """Seconds that a stage may take; None for a final one."""
    return {
        Stage.SCHEDULING: deadlines.scheduling_seconds,
        Stage.PULLING: deadlines.pulling_seconds,
        Stage.STARTING: deadlines.starting_seconds,
        Stage.RUNNING: deadlines.running_seconds,
        Stage.DELETING: deadlines.deleting_seconds,
    }.get(stage)


def is_overdue(stage: StageSince, deadlines: Deadlines, now: float) -> bool:
    """Whether a stage has taken longer than it may."""
    allowed = deadline(stage.stage, deadlines)
    return allowed is not None and now - stage.since >= allowed


def needs_events(stage: StageSince, deadlines: Deadlines, now: float) -> bool:
    """Whether the pod's events are needed to tell its stage: pulling or starting takes long."""
    soonest = min(deadlines.pulling_seconds, deadlines.starting_seconds)
    return stage.stage in (Stage.PULLING, Stage.STARTING) and now - stage.since >= soonest


def ended_by_operator(pod: Pod, stage: StageSince, deadlines: Deadlines, now: float) -> Outcome:
    """The outcome of a pod that the operator ends because its stage is overdue."""
    allowed = deadline(stage.stage, deadlines) or 0.0
    activity = {
        Stage.SCHEDULING: "still not on a node",
        Stage.PULLING: f"still pulling image {stage.image}",
        Stage.STARTING: "still not started",
        Stage.RUNNING: "still running",
    }[stage.stage]
    where = f" (node {pod.spec.node_name})" if pod.spec.node_name else ""
    cause = f": {stage.message}" if stage.message else ""
    message = f"pod {pod.metadata.name}: {activity} after {allowed:g} s{where}{cause}"
    reason = stage.reason or "DeadlineExceeded"
    return Outcome(False, stage.stage, reason, message, "Operator", time_text(now))


def yielded(pod: Pod, now: float) -> Outcome:
    """The outcome of a pod that the operator ends because real ones need its room."""
    message = f"pod {pod.metadata.name}: ended, because real pods need its room on {pod.spec.node_name}"
    return Outcome(False, Stage.RUNNING, YIELDED, message, "Operator", time_text(now))


def displaced(run: Run, now: float) -> Outcome:
    """The outcome of a run whose pod the scheduler has deleted because a real one needs its room."""
    message = f"its pod was deleted, because real pods need its room on {run.node}"
    return Outcome(False, Stage.RUNNING, YIELDED, message, "Other", time_text(now))


def ended_by_itself(pod: Pod, now: float, *, is_unit: bool) -> Outcome:
    """The outcome of a pod that has succeeded or failed; `is_unit`: it is the built-in benchmark."""
    ends = [each.state.terminated for each in pod.status.container_statuses or () if each.state.terminated]
    if pod.status.phase == "Succeeded":
        rate = _rate(ends) if is_unit else None
        return Outcome(
            True, Stage.RUNNING, "Completed", "", "Pod", time_text(now), seconds=_seconds(ends), rate=rate
        )
    bad = next((each for each in ends if each.exit_code), None)
    # A kubelet may refuse a pod before any container starts.
    stage = Stage.RUNNING if ends else Stage.STARTING
    reason = pod.status.reason or (bad.reason if bad else "") or "Failed"
    parts = [
        pod.status.message,
        f"exit code {bad.exit_code}" if bad else "",
        bad.message[-_MESSAGE_CHARACTERS:] if bad else "",
    ]
    message = f"pod {pod.metadata.name} on node {pod.spec.node_name}: " + "; ".join(filter(None, parts))
    return Outcome(False, stage, reason, message, "Pod", time_text(now), seconds=_seconds(ends))


def _seconds(ends: Sequence[Ended]) -> float | None:
    """From the first start of a container to the last end; None where a time is missing."""
    starts = [time_seconds(each.started_at) for each in ends if each.started_at]
    finishes = [time_seconds(each.finished_at) for each in ends if each.finished_at]
    return max(finishes) - min(starts) if starts and finishes else None


def _rate(ends: Sequence[Ended]) -> float | None:
    """The rate in the last line of the benchmark's termination message; None if there is none."""
    for end in ends:
        line = end.message.strip().rpartition("\n")[2]
        try:
            report = json.loads(line)
        except ValueError:
            continue
        if isinstance(report, dict) and isinstance(report.get("rate"), int | float):
            return float(report["rate"])
    return None
