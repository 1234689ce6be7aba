"""What the engine asks its caller to do. The outcome comes back as events, never as an exception."""

from typing import Literal

from msgspec import Struct

from eclectus.model.job import JobPlan
from eclectus.model.objects import NO_GRANT, Grant
from eclectus.model.pool import PoolRecord


class Renominate(Struct, frozen=True, gc=False, tag=True):
    """A step before a bind: the pod's status names this node as nominated; undone by naming `from_node`."""

    node: str
    from_node: str


class EndProbe(Struct, frozen=True, gc=False, tag=True):
    """A step before a bind: this probe, whose room the pod has taken, is deleted.

    It is not undone, and its failure does not prevent the bind: the operator ends such a probe too, later.
    """

    uid: str
    namespace: str
    name: str


class ReserveVolume(Struct, frozen=True, gc=False, tag=True):
    """A step before a bind: this PersistentVolume is reserved for the claim (spec.claimRef).

    It is not undone: the claim is about to be bound to the volume, whatever becomes of the pod.
    """

    volume: str
    namespace: str
    claim: str
    claim_uid: str


class SelectNode(Struct, frozen=True, gc=False, tag=True):
    """A step before a bind: the volume of this claim is to be provisioned for this node.

    It is not undone: a provisioner that fails takes the node back itself.
    """

    namespace: str
    claim: str
    claim_uid: str
    node: str


class AwaitVolume(Struct, frozen=True, gc=False, tag=True):
    """A step before a bind: wait until the claim is bound."""

    namespace: str
    claim: str
    claim_uid: str
    volume: str = ""  # the one that is reserved for it; empty: one that is provisioned
    node: str = ""  # for which it is provisioned


VolumeStep = ReserveVolume | SelectNode | AwaitVolume
BindStep = Renominate | EndProbe | VolumeStep


class Bind(Struct, frozen=True, gc=False, tag=True):
    """Bind this pod to this node; answered by one BindConfirmed or one BindRefused.

    The steps in `before` are done first, in order. If one fails or the bind is refused, those that were done
    are undone, the last one first, and then the answer is given.
    """

    uid: str
    namespace: str
    name: str
    node: str
    profile: str
    grant: Grant = NO_GRANT
    before: tuple[BindStep, ...] = ()


class Report(Struct, frozen=True, gc=False, tag=True):
    """Report on the pod why it is not placed: condition PodScheduled=False, and an event."""

    uid: str
    namespace: str
    name: str
    profile: str
    reason: Literal["Unschedulable", "SchedulerError", "WaitingForNode", "WaitingForGang", "WaitingForQuota"]
    message: str


class Warn(Struct, frozen=True, gc=False, tag=True):
    """Write an event about what is wrong with the pod, or its data; it is placed all the same."""

    uid: str
    namespace: str
    name: str
    profile: str
    reason: Literal["PoolRefused", "DataHot"]
    message: str


StragglingReason = Literal["ExpectedToEndLate", "WorthRestarting", "NoLongerLate", "CopyGone"]


class MarkStraggling(Struct, frozen=True, gc=False, tag=True):
    """Write on a running pod whether it is late, so that a copy of it is made: condition Straggling.

    With the reason WorthRestarting it is rather ended, so that its Job makes another pod.

    Not answered; the watch shows it.
    """

    uid: str
    namespace: str
    name: str
    profile: str
    is_straggling: bool
    reason: StragglingReason
    message: str


class Nominate(Struct, frozen=True, gc=False, tag=True):
    """Write the node whose room is held for this pod into its status.nominatedNodeName.

    Answered by NominateRefused if it cannot be written; otherwise the watch shows it.
    """

    uid: str
    namespace: str
    name: str
    profile: str
    node: str  # empty: none any more


class Evict(Struct, frozen=True, gc=False, tag=True):
    """Delete this pod, gracefully, to make room for another; not before that one is nominated.

    Answered by EvictRefused if it cannot be deleted; otherwise the watch shows it.
    """

    uid: str
    namespace: str
    name: str
    node: str
    profile: str  # of the pod that needs the room
    preemptor: str  # uid of the pod that needs the room
    preemptor_namespace: str
    preemptor_name: str
    pool: str = ""  # that takes back room for that pod; empty: none does
    # `minimum` or `share`: what that pool lacks. `costs`: pods lose less in sum, and the work of this one may
    # begin anew. Empty: that pod has a higher priority.
    claim: str = ""


class ReportReclaim(Struct, frozen=True, gc=False, tag=True):
    """Say by an event on this pod whom its pool would evict for it, which only tries that out."""

    uid: str
    namespace: str
    name: str
    profile: str
    pool: str  # that would take room back
    claim: str  # `minimum` or `share`: what it lacks
    node: str
    victims: int  # how many pods would go; none where those on their way out suffice
    pools: tuple[str, ...]  # theirs


class RecordPlan(Struct, frozen=True, gc=False, tag=True):
    """Write what is planned for this DAG job into its status. Not answered; the watch shows it."""

    uid: str
    namespace: str
    name: str
    plan: JobPlan


class RecordPool(Struct, frozen=True, gc=False, tag=True):
    """Write what is measured of this Pool into its status. Not answered; the watch shows it."""

    name: str
    record: PoolRecord


class Solve(Struct, frozen=True, gc=False, tag=True):
    """Solve a minimum-cost flow problem of this policy; answered by Solved with the same serial number.

    The arrays are fetched from the engine by that number (`Engine.problem`): they are megabytes, and a tape
    needs their digest alone. A later one of the same profile voids it.
    """

    serial: int
    profile: str
    arcs: int
    digest: str
    within: float  # seconds, after which nobody waits for the answer any more


class Fault(Struct, frozen=True, gc=False, tag=True):
    """A policy asked for an action that is not allowed, or raised: a defect to log and count."""

    policy: str
    message: str


_OfPods = Bind | Report | Warn | MarkStraggling | Nominate | Evict | ReportReclaim
Command = _OfPods | RecordPlan | RecordPool | Solve | Fault
