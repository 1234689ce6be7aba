"""The next step of a run: a table of what its NodeProbe's status records and what is in the cluster.

    recorded          its pod                  next step
    begun             none                     create it under the same name; after schedulingSeconds: lost
    begun             exists                   record its uid
    begun             another's of that name   end: the name is taken
    seen              none                     end: it has yielded if real pods use its room; else it is lost
    seen              in progress              wait; when its stage is overdue, end
    seen              is being deleted         wait until it is gone; when that is overdue, end
    seen              blocks a real pod        end: it yields
    seen              has ended                end
    ended             exists                   delete it
    ended             none                     write the node's profile, and remove the run

Each stage of a pod (pod_stages.py) has its own deadline.

Whatever a crash after a step needs is recorded: a pod is created only for a run that is recorded, and deleted
only when the outcome is. A run whose pod was ever seen is not created again, so no probe runs twice.

Which pod is whose is found out after a restart as in every sync:

    in cluster   recorded
    yes          yes       adopted
    yes          no        orphan: delete it after a grace period, and only if it is this instance's own;
                           at once if its node has not confirmed that in time
    no           yes       lost: create it again under the same name (409: adopt it), or give the run up
    foreign      yes       taken: a pod that is not ours has the name, so a create would always meet 409
    foreign      no        left alone

A pod is created in this order: record the run, create the pod, record the pod. Wherever a crash falls, one
line of the table applies. Pods must be listed before the records are read: otherwise a pod created in between
would look like an orphan; this way it looks lost, and its creation meets 409.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eclectus.api.common import time_seconds, time_text
from eclectus.api.node_probe import Deadlines, EndedBy, Outcome, ProbeId, Run, recognised
from eclectus_operator.metrics import YIELDED
from eclectus_operator.observed import Ended, Pod, run_seconds
from eclectus_operator.pod_stages import (
    Stage,
    StageSince,
    current_stage,
    deadline,
    is_overdue,
    overdue_message,
)

ORPHAN_DEADLINES = Deadlines()  # of pods whose NodeProbe may be gone
_MESSAGE_CHARACTERS = 1500  # kept of a container's termination message


def ended_by_itself(pod: Pod, now: float, *, is_unit: bool) -> Outcome:
    """The outcome of a pod that has succeeded or failed; `is_unit`: it is the built-in benchmark."""
    ends = [each.state.terminated for each in pod.status.container_statuses or () if each.state.terminated]
    if pod.status.phase == "Succeeded":
        rate = _rate(ends) if is_unit else None
        return Outcome(
            True, Stage.RUNNING, "Completed", "", "Pod", time_text(now), seconds=run_seconds(ends), rate=rate
        )
    bad = next((each for each in ends if each.exit_code), None)
    # A kubelet may refuse a pod before any container starts.
    stage = Stage.RUNNING if ends else Stage.STARTING
    reason = pod.status.reason or (bad.reason if bad else "") or "Failed"
    parts = [pod.status.message]
    if bad is not None:
        parts += [f"exit code {bad.exit_code}", bad.message[-_MESSAGE_CHARACTERS:]]
    message = f"pod {pod.metadata.name} on node {pod.spec.node_name}: " + "; ".join(filter(None, parts))
    return Outcome(False, stage, reason, message, "Pod", time_text(now), seconds=run_seconds(ends))


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


@dataclass(frozen=True)
class Create:
    """Create the pod under its name."""


@dataclass(frozen=True)
class RecordPod:
    """Record that the pod exists."""

    uid: str


@dataclass(frozen=True)
class End:
    """Record the outcome."""

    outcome: Outcome


@dataclass(frozen=True)
class Delete:
    """Delete the pod; `at_once`: without waiting for its node to confirm.

    `late`: what is said of one whose node has not confirmed it in time.
    """

    uid: str
    at_once: bool
    late: str = ""


@dataclass(frozen=True)
class Finish:
    """Write the outcome into the node's profile, and remove the run from the status."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do before `until`, seconds since the epoch, unless an event arrives."""

    until: float


Step = Create | RecordPod | End | Delete | Finish | Wait


def without_pod(
    run: Run, deadlines: Deadlines, now: float, *, is_wanted: bool, has_yielded: bool = False
) -> Step:
    """The step of a run without a pod.

    `is_wanted`: the NodeProbe still asks for its class; `has_yielded`: real pods use the room of its pod.
    """
    if run.outcome is not None:
        return Finish()
    age = now - time_seconds(run.begun_time)
    if run.pod_uid and has_yielded:  # the scheduler has deleted it
        message = f"its pod was deleted, because real pods need its room on {run.node}"
        return _failed(Stage.RUNNING, YIELDED, message, now)
    if run.pod_uid:
        return _failed(Stage.RUNNING, "PodDeleted", "its pod is gone: somebody deleted it", now)
    if not is_wanted:
        return _failed(Stage.CREATING, "Withdrawn", "it is not asked for any more", now)
    if age >= deadlines.scheduling_seconds:
        return _failed(Stage.CREATING, "Lost", f"no pod was created for {age:.0f} s", now)
    return Create()


def name_taken(run: Run, reason: str, now: float) -> Step:
    """The step of a run whose pod's name a foreign pod has; that pod is left alone."""
    if run.outcome is not None:
        return Finish()
    return _failed(Stage.CREATING, "NameTaken", f"the name of its pod is taken: {reason}", now)


def with_pod(
    run: Run,
    pod: Pod,
    stage: StageSince,
    deadlines: Deadlines,
    now: float,
    *,
    is_unit: bool,
    must_yield: bool,
) -> Step:
    """The step of a run with a pod.

    `is_unit`: it is the built-in benchmark; `must_yield`: real pods need its room.
    """
    is_late = is_overdue(stage, deadlines, now)
    if run.outcome is not None:
        if stage.stage is Stage.DELETING and not is_late:
            return Wait(stage.since + deadlines.deleting_seconds)
        # Nothing of an ended pod runs any more; of one that should be gone, its node does not answer.
        at_once = stage.stage in (Stage.DELETING, Stage.SUCCEEDED, Stage.FAILED)
        late = overdue_message(pod, stage, deadlines) if stage.stage is Stage.DELETING else ""
        return Delete(pod.metadata.uid, at_once, late)
    if not run.pod_uid:
        return RecordPod(pod.metadata.uid)
    if must_yield and stage.stage in (Stage.RUNNING, Stage.DELETING):
        message = f"pod {pod.metadata.name}: ended, because real pods need its room on {pod.spec.node_name}"
        return _failed(Stage.RUNNING, YIELDED, message, now, "Operator")
    return _in_progress(pod, stage, deadlines, now, is_unit=is_unit)


def _in_progress(pod: Pod, stage: StageSince, deadlines: Deadlines, now: float, *, is_unit: bool) -> Step:
    if pod.status.phase == "Succeeded" or stage.stage is Stage.FAILED:
        return End(ended_by_itself(pod, now, is_unit=is_unit))
    is_late = is_overdue(stage, deadlines, now)
    if stage.stage is Stage.DELETING and is_late:
        return _failed(Stage.DELETING, "PodDeleted", "somebody deleted its pod", now)
    if is_late:
        return overdue(pod, stage, deadlines, now)
    return Wait(stage.since + (deadline(stage.stage, deadlines) or 0.0))


def overdue(pod: Pod, stage: StageSince, deadlines: Deadlines, now: float) -> End:
    """The step of a pod that the operator ends because its stage is overdue."""
    message = overdue_message(pod, stage, deadlines)
    return _failed(stage.stage, stage.reason or "DeadlineExceeded", message, now, "Operator")


def refused(message: str, now: float) -> End:
    """The step of a run whose pod the API server does not accept."""
    return _failed(Stage.CREATING, "Refused", message, now)


def _failed(stage: Stage, reason: str, message: str, now: float, by: EndedBy = "Other") -> End:
    return End(Outcome(False, stage, reason, message, by, time_text(now)))


@dataclass(frozen=True)
class Join:
    """Recorded runs and pods that belong together, each part in the order of the input."""

    adopted: tuple[tuple[ProbeId, Pod], ...]  # a run's pod that exists
    orphans: tuple[Pod, ...]  # to be deleted now, with their uid as precondition
    silent: tuple[Pod, ...]  # deleted orphans that their nodes have not ended in time
    young: tuple[Pod, ...]  # orphans still within the grace period: check them again later
    lost: tuple[ProbeId, ...]
    taken: tuple[tuple[ProbeId, str], ...]  # why the pod of that name is not the run's


def join(recorded: Iterable[ProbeId], listed: Iterable[Pod], instance: str, now: float, grace: float) -> Join:
    """Join the recorded runs with the pods of one instance, all of its namespace."""
    by_name = {pod.metadata.name: pod for pod in listed}
    adopted, lost, taken = [], [], []
    for probe in recorded:
        pod = by_name.pop(probe.name, None)
        if pod is None:
            lost.append(probe)
        elif (found := _recognised(pod, instance)) == probe:
            adopted.append((probe, pod))
        else:
            reason = found if isinstance(found, str) else f"it is attempt {found.attempt}"
            taken.append((probe, reason))
    ours = [pod for pod in by_name.values() if isinstance(_recognised(pod, instance), ProbeId)]
    # A terminating pod needs no second delete, unless its node is silent.
    orphans = [pod for pod in ours if pod.metadata.deletion_timestamp is None]
    silent = [
        pod
        for pod in ours
        if pod.metadata.deletion_timestamp and is_overdue(current_stage(pod), ORPHAN_DEADLINES, now)
    ]
    old = [pod for pod in orphans if now - pod.created >= grace]
    young = [pod for pod in orphans if now - pod.created < grace]
    return Join(tuple(adopted), tuple(old), tuple(silent), tuple(young), tuple(lost), tuple(taken))


def _recognised(pod: Pod, instance: str) -> ProbeId | str:
    return recognised(pod.metadata.name, pod.metadata.labels, instance)
