"""The stages of a pod that the operator has made, each with a deadline: probes, tasks and copies.

    Scheduling -> Pulling -> Starting -> Running -> Succeeded or Failed -> Deleting

Binding ends Scheduling. Between binding and the start of the containers, the kubelet's events distinguish
pulling an image from the rest; without events, the reason for which a container waits does. While an init
container runs, the pod does; from its end on the next container may take as long again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from eclectus.api.common import time_seconds
from eclectus.api.node_probe import Deadlines
from eclectus_operator.observed import PULL_REASONS, ContainerStatus, Pod, PodEvent

FORCED, LEAVING = "PodsForced", "PodsLeaving"  # reasons of events: a pod is not gone in time
_FOR_INIT = ("", "PodInitializing")  # reasons of a container that waits for init containers


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
    inits = pod.status.init_container_statuses or ()
    if waiting is None or waiting.state.waiting is None or waiting.state.waiting.reason in _FOR_INIT:
        working = next((each for each in inits if each.state.running), None)
        if working is not None:
            return StageSince(Stage.RUNNING, _started(working) or bound)
        waiting = next((each for each in inits if each.state.waiting), waiting)
    ends = (each.state.terminated.finished_at for each in inits if each.state.terminated is not None)
    bound = max(bound, *(time_seconds(each) for each in ends if each), bound)
    cause = waiting.state.waiting if waiting else None
    reason, message = (cause.reason, cause.message) if cause else ("", "")
    pulls = [each for each in events if each.reason in ("Pulling", "Pulled")]
    last = max(pulls, key=lambda each: each.moment, default=None)
    if reason in PULL_REASONS or (last is not None and last.reason == "Pulling"):
        return StageSince(
            Stage.PULLING, bound, reason, message or (last.message if last else ""), _image(pod, waiting)
        )
    pulled = max(bound, time_seconds(last.moment)) if last and last.moment else bound
    return StageSince(Stage.STARTING, pulled, reason, message)


def _image(pod: Pod, waiting: ContainerStatus | None) -> str:
    """The image of the waiting container, as the spec names it."""
    named = [each.image for each in pod.spec.containers if waiting is None or each.name == waiting.name]
    return named[0] if named else waiting.image if waiting else ""


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


def overdue_message(pod: Pod, stage: StageSince, deadlines: Deadlines) -> str:
    """What is said of a pod that is ended because its stage is overdue."""
    allowed = deadline(stage.stage, deadlines) or 0.0
    activity = {
        Stage.SCHEDULING: "still not on a node",
        Stage.PULLING: f"still pulling image {stage.image}",
        Stage.STARTING: "still not started",
        Stage.RUNNING: "still running",
        Stage.DELETING: "still being deleted",
    }[stage.stage]
    where = f" (node {pod.spec.node_name})" if pod.spec.node_name else ""
    cause = f": {stage.message}" if stage.message else ""
    return f"pod {pod.metadata.name}: {activity} after {allowed:g} s{where}{cause}"


def forced_note(late: str) -> str:
    """What is said of a pod that is deleted without its node; `late`: for how long it should be gone."""
    return f"deleted without an answer of its node: {late}"


def life(pod: Pod, deadlines: Deadlines) -> tuple[float | None, str]:
    """Until when a pod may be in its stage, seconds since the epoch, and what is said of it after that.

    None: as long as it takes.
    """
    stage = current_stage(pod)
    allowed = deadline(stage.stage, deadlines)
    if allowed is None or allowed == inf:
        return None, ""
    return stage.since + allowed, overdue_message(pod, stage, deadlines)
