"""In which stage of its life a pod is, since when, and whether that is longer than it may be.

Scheduling -> Pulling -> Starting -> Running -> Succeeded or Failed -> Deleting. Binding ends Scheduling;
between it and the start of the containers, the kubelet's events tell pulling an image from all else, and
where there are none, the reason for which a container waits. A deadline that is over names its stage.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from eclectus.api.common import time_seconds, time_text
from eclectus.api.node_probe import Deadlines, Outcome
from eclectus_operator.objects.observed import ContainerStatus, Ended, Pod, PodEvent

PULL_REASONS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
)
MADE_WAY = "MadeWay"
_LAST_WORDS = 1500  # characters kept of what a container said at its end


class Stage(StrEnum):
    """The stages, in order. Creating is before there is a pod."""

    CREATING = "Creating"
    SCHEDULING = "Scheduling"
    PULLING = "Pulling"
    STARTING = "Starting"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    DELETING = "Deleting"


@dataclass(frozen=True)
class Sight:
    """A stage, when it began (seconds since the epoch), and what is known of its cause."""

    stage: Stage
    since: float
    reason: str = ""
    message: str = ""
    about: str = ""  # the image, where one is waited for


def sight(pod: Pod, events: Sequence[PodEvent] = ()) -> Sight:
    """The stage of a pod. Without `events`, pulling is known only by its failures."""
    meta, status = pod.metadata, pod.status
    if meta.deletion_timestamp:  # the end of the grace period, not its beginning
        return Sight(Stage.DELETING, time_seconds(meta.deletion_timestamp))
    created = time_seconds(meta.creation_timestamp) if meta.creation_timestamp else 0.0
    if status.phase in ("Succeeded", "Failed"):
        stage = Stage.SUCCEEDED if status.phase == "Succeeded" else Stage.FAILED
        return Sight(stage, created, status.reason, status.message)
    scheduled = pod.condition("PodScheduled")
    if not pod.spec.node_name:
        reason, message = (scheduled.reason, scheduled.message) if scheduled else ("", "")
        return Sight(Stage.SCHEDULING, created, reason, message)
    bound = created
    if scheduled and scheduled.status == "True" and scheduled.last_transition_time:
        bound = time_seconds(scheduled.last_transition_time)
    return _on_node(pod, events, bound)


def _on_node(pod: Pod, events: Sequence[PodEvent], bound: float) -> Sight:
    statuses = pod.status.container_statuses or ()
    waiting = next((each for each in statuses if not (each.state.running or each.state.terminated)), None)
    if statuses and waiting is None:
        return Sight(Stage.RUNNING, max(_started(each) or bound for each in statuses))
    cause = waiting.state.waiting if waiting else None
    reason, message = (cause.reason, cause.message) if cause else ("", "")
    pulls = [each for each in events if each.reason in ("Pulling", "Pulled")]
    last = max(pulls, key=lambda each: each.moment, default=None)
    if reason in PULL_REASONS or (last is not None and last.reason == "Pulling"):
        return Sight(
            Stage.PULLING, bound, reason, message or (last.message if last else ""), _image(pod, waiting)
        )
    pulled = time_seconds(last.moment) if last and last.moment else bound
    return Sight(Stage.STARTING, pulled, reason, message)


def _image(pod: Pod, waiting: ContainerStatus | None) -> str:
    """The image that a waiting container is of, as its spec names it."""
    named = [each.image for each in pod.spec.containers if waiting is None or each.name == waiting.name]
    return named[0] if named else ""


def _started(status: ContainerStatus) -> float | None:
    state = status.state.running or status.state.terminated
    return time_seconds(state.started_at) if state and state.started_at else None


def deadline(stage: Stage, deadlines: Deadlines) -> float | None:
    """Seconds that a stage may take; None for one that is the end."""
    return {
        Stage.SCHEDULING: deadlines.scheduling_seconds,
        Stage.PULLING: deadlines.pulling_seconds,
        Stage.STARTING: deadlines.starting_seconds,
        Stage.RUNNING: deadlines.running_seconds,
        Stage.DELETING: deadlines.deleting_seconds,
    }.get(stage)


def overdue(seen: Sight, deadlines: Deadlines, now: float) -> bool:
    """Whether a stage has taken longer than it may."""
    allowed = deadline(seen.stage, deadlines)
    return allowed is not None and now - seen.since >= allowed


def ended_by_us(pod: Pod, seen: Sight, deadlines: Deadlines, now: float) -> Outcome:
    """The outcome of a pod that the operator ends because its stage is overdue."""
    allowed = deadline(seen.stage, deadlines) or 0.0
    doing = {
        Stage.SCHEDULING: "still not on a node",
        Stage.PULLING: f"still pulling image {seen.about}",
        Stage.STARTING: "still not started",
        Stage.RUNNING: "still running",
    }[seen.stage]
    where = f" (node {pod.spec.node_name})" if pod.spec.node_name else ""
    said = f": {seen.message}" if seen.message else ""
    message = f"pod {pod.metadata.name}: {doing} after {allowed:g} s{where}{said}"
    reason = seen.reason or "DeadlineExceeded"
    return Outcome(False, seen.stage, reason, message, "Operator", time_text(now))


def made_way(pod: Pod, now: float) -> Outcome:
    """The outcome of a pod that the operator ends because real ones need its room."""
    message = f"pod {pod.metadata.name}: ended, because real pods need its room on {pod.spec.node_name}"
    return Outcome(False, Stage.RUNNING, MADE_WAY, message, "Operator", time_text(now))


def ended_by_itself(pod: Pod, now: float, *, measured: bool) -> Outcome:
    """The outcome of a pod that has succeeded or failed; `measured`: it is the built-in benchmark."""
    ends = [each.state.terminated for each in pod.status.container_statuses or () if each.state.terminated]
    if pod.status.phase == "Succeeded":
        rate = _rate(ends) if measured else None
        return Outcome(
            True, Stage.RUNNING, "Completed", "", "Pod", time_text(now), seconds=_seconds(ends), rate=rate
        )
    bad = next((each for each in ends if each.exit_code), None)
    stage = (
        Stage.RUNNING if ends else Stage.STARTING
    )  # a kubelet may refuse a pod before any container starts
    reason = pod.status.reason or (bad.reason if bad else "") or "Failed"
    said = [
        pod.status.message,
        f"exit code {bad.exit_code}" if bad else "",
        bad.message[-_LAST_WORDS:] if bad else "",
    ]
    message = f"pod {pod.metadata.name} on node {pod.spec.node_name}: " + "; ".join(filter(None, said))
    return Outcome(False, stage, reason, message, "Pod", time_text(now), seconds=_seconds(ends))


def _seconds(ends: Sequence[Ended]) -> float | None:
    """From the first start of a container to the last end."""
    starts = [time_seconds(each.started_at) for each in ends if each.started_at]
    finishes = [time_seconds(each.finished_at) for each in ends if each.finished_at]
    return max(finishes) - min(starts) if starts and finishes else None


def _rate(ends: Sequence[Ended]) -> float | None:
    """The rate in the last line that a benchmark said; None when it said none."""
    for end in ends:
        line = end.message.strip().rpartition("\n")[2]
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and isinstance(said.get("rate"), int | float):
            return float(said["rate"])
    return None
