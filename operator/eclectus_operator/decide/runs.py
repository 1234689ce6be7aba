"""What is to be done for one run: a table of what is written down and what is in the cluster.

    written down      its pod                what to do
    begun             none                   create it, under the same name; too late for that: lost
    begun             there                  write down that it was seen
    begun             another's by the name  end it: the name is taken
    seen              none                   end it: somebody deleted it
    seen              under way              wait; when its stage is overdue, end it
    seen              in a real pod's way    end it
    seen              has ended              end it
    ended             there                  delete it
    ended             none                   tell the node's profile, and forget the run

Every line leaves what a crash after it needs: a pod is created only for a run that is written down, and
deleted only when its outcome is. A run whose pod was ever seen is never created again, so that no probe
runs twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from eclectus.api.common import time_seconds, time_text
from eclectus.api.node_probe import Deadlines, Outcome, Run
from eclectus_operator.decide import stages
from eclectus_operator.decide.stages import Sight, Stage
from eclectus_operator.objects.observed import Pod


@dataclass(frozen=True)
class Create:
    """Create the pod under its name."""


@dataclass(frozen=True)
class Note:
    """Write down that the pod is there."""

    uid: str


@dataclass(frozen=True)
class End:
    """Write down how it ended."""

    outcome: Outcome


@dataclass(frozen=True)
class Delete:
    """Delete the pod; `at_once`: without waiting for its node to say that it is gone."""

    uid: str
    at_once: bool


@dataclass(frozen=True)
class Forget:
    """Tell the node's profile the outcome, and take the run out of status."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do before `until`, seconds since the epoch, unless something happens."""

    until: float


Step = Create | Note | End | Delete | Forget | Wait


def without_pod(run: Run, deadlines: Deadlines, now: float, *, wanted: bool) -> Step:
    """The step for a run that has no pod; `wanted`: its class is still asked for."""
    if run.outcome is not None:
        return Forget()
    age = now - time_seconds(run.begun_time)
    if run.pod_uid:
        return End(_lost("its pod is gone: somebody deleted it", "PodDeleted", Stage.RUNNING, now))
    if not wanted:
        return End(_lost("it is not asked for any more", "Withdrawn", Stage.CREATING, now))
    if age >= deadlines.scheduling_seconds:
        return End(_lost(f"no pod was created for {age:.0f} s", "Lost", Stage.CREATING, now))
    return Create()


def taken(run: Run, reason: str, now: float) -> Step:
    """The step for a run whose name a pod bears that is not ours: it is left alone."""
    if run.outcome is not None:
        return Forget()
    return End(_lost(f"the name of its pod is taken: {reason}", "NameTaken", Stage.CREATING, now))


def with_pod(
    run: Run, pod: Pod, seen: Sight, deadlines: Deadlines, now: float, *, measured: bool, hinders: bool
) -> Step:
    """The step for a run and its pod.

    `measured`: it is the built-in benchmark; `hinders`: real pods need its room.
    """
    late = stages.overdue(seen, deadlines, now)
    if run.outcome is not None:
        if seen.stage is Stage.DELETING and not late:
            return Wait(seen.since + deadlines.deleting_seconds)
        # Nothing runs of a pod that has ended; of one that should be gone its node does not speak.
        at_once = seen.stage in (Stage.DELETING, Stage.SUCCEEDED, Stage.FAILED)
        return Delete(pod.metadata.uid, at_once)
    if not run.pod_uid:
        return Note(pod.metadata.uid)
    if hinders and seen.stage is Stage.RUNNING:
        return End(stages.made_way(pod, now))
    return _under_way(pod, seen, deadlines, now, measured=measured)


def _under_way(pod: Pod, seen: Sight, deadlines: Deadlines, now: float, *, measured: bool) -> Step:
    if pod.status.phase == "Succeeded" or seen.stage is Stage.FAILED:
        return End(stages.ended_by_itself(pod, now, measured=measured))
    if seen.stage is Stage.DELETING:  # and so it failed, or will
        return End(_lost("somebody deleted its pod", "PodDeleted", Stage.DELETING, now))
    if stages.overdue(seen, deadlines, now):
        return End(stages.ended_by_us(pod, seen, deadlines, now))
    return Wait(seen.since + (stages.deadline(seen.stage, deadlines) or 0.0))


def refused(message: str, now: float) -> End:
    """The step for a run whose pod the API server does not accept."""
    return End(_lost(message, "Refused", Stage.CREATING, now))


def _lost(message: str, reason: str, stage: Stage, now: float) -> Outcome:
    return Outcome(False, stage, reason, message, "Other", time_text(now))
