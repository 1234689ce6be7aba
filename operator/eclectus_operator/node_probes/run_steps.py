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

Whatever a crash after a step needs is recorded: a pod is created only for a run that is recorded, and deleted
only when the outcome is. A run whose pod was ever seen is not created again, so no probe runs twice.

Which pod is whose is found out after a restart as in every sync:

    in cluster   recorded
    yes          yes       adopted
    yes          no        orphan: delete it after a grace period, and only if it is this instance's own
    no           yes       lost: create it again under the same name (409: adopt it), or give the run up
    foreign      yes       taken: a pod that is not ours has the name, so a create would always meet 409
    foreign      no        left alone

A pod is created in this order: record the run, create the pod, record the pod. Wherever a crash falls, one
line of the table applies. Pods must be listed before the records are read: otherwise a pod created in between
would look like an orphan; this way it looks lost, and its creation meets 409.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from eclectus.api.common import time_seconds, time_text
from eclectus.api.node_probe import Deadlines, Outcome, Run
from eclectus.api.probe_names import NotOurs, ProbeId, recognised
from eclectus_operator.node_probes import pod_stages as stages
from eclectus_operator.node_probes.pod_stages import Stage, StageSince
from eclectus_operator.observed import Pod


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
    """Delete the pod; `at_once`: without waiting for its node to confirm."""

    uid: str
    at_once: bool


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
    if run.pod_uid and has_yielded:
        return End(stages.displaced(run, now))
    if run.pod_uid:
        return End(_lost("its pod is gone: somebody deleted it", "PodDeleted", Stage.RUNNING, now))
    if not is_wanted:
        return End(_lost("it is not asked for any more", "Withdrawn", Stage.CREATING, now))
    if age >= deadlines.scheduling_seconds:
        return End(_lost(f"no pod was created for {age:.0f} s", "Lost", Stage.CREATING, now))
    return Create()


def name_taken(run: Run, reason: str, now: float) -> Step:
    """The step of a run whose pod's name a foreign pod has; that pod is left alone."""
    if run.outcome is not None:
        return Finish()
    return End(_lost(f"the name of its pod is taken: {reason}", "NameTaken", Stage.CREATING, now))


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
    is_late = stages.is_overdue(stage, deadlines, now)
    if run.outcome is not None:
        if stage.stage is Stage.DELETING and not is_late:
            return Wait(stage.since + deadlines.deleting_seconds)
        # Nothing of an ended pod runs any more; of one that should be gone, its node does not answer.
        at_once = stage.stage in (Stage.DELETING, Stage.SUCCEEDED, Stage.FAILED)
        return Delete(pod.metadata.uid, at_once)
    if not run.pod_uid:
        return RecordPod(pod.metadata.uid)
    if must_yield and stage.stage in (Stage.RUNNING, Stage.DELETING):
        return End(stages.yielded(pod, now))
    return _in_progress(pod, stage, deadlines, now, is_unit=is_unit)


def _in_progress(pod: Pod, stage: StageSince, deadlines: Deadlines, now: float, *, is_unit: bool) -> Step:
    if pod.status.phase == "Succeeded" or stage.stage is Stage.FAILED:
        return End(stages.ended_by_itself(pod, now, is_unit=is_unit))
    is_late = stages.is_overdue(stage, deadlines, now)
    if stage.stage is Stage.DELETING and is_late:
        return End(_lost("somebody deleted its pod", "PodDeleted", Stage.DELETING, now))
    if is_late:
        return End(stages.ended_by_operator(pod, stage, deadlines, now))
    return Wait(stage.since + (stages.deadline(stage.stage, deadlines) or 0.0))


def refused(message: str, now: float) -> End:
    """The step of a run whose pod the API server does not accept."""
    return End(_lost(message, "Refused", Stage.CREATING, now))


def _lost(message: str, reason: str, stage: Stage, now: float) -> Outcome:
    return Outcome(False, stage, reason, message, "Other", time_text(now))


@dataclass(frozen=True)
class Join:
    """Recorded runs and pods that belong together, each part in the order of the input.

    `adopted`: a run's pod that exists; `taken`: why the pod of that name is not the run's. `orphans` are to
    be deleted now, with their uid as precondition. `young` are orphans still within the grace period: check
    them again later.
    """

    adopted: tuple[tuple[ProbeId, Pod], ...]
    orphans: tuple[Pod, ...]
    young: tuple[Pod, ...]
    lost: tuple[ProbeId, ...]
    taken: tuple[tuple[ProbeId, str], ...]


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
            reason = found.reason if isinstance(found, NotOurs) else f"it is attempt {found.attempt}"
            taken.append((probe, reason))
    ours = [pod for pod in by_name.values() if isinstance(_recognised(pod, instance), ProbeId)]
    # A terminating pod needs no second delete.
    orphans = [pod for pod in ours if pod.metadata.deletion_timestamp is None]
    old = [pod for pod in orphans if now - pod.created >= grace]
    young = [pod for pod in orphans if now - pod.created < grace]
    return Join(tuple(adopted), tuple(old), tuple(young), tuple(lost), tuple(taken))


def _recognised(pod: Pod, instance: str) -> ProbeId | NotOurs:
    return recognised(pod.metadata.name, pod.metadata.labels or {}, instance)
