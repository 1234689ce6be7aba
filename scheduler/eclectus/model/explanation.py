"""Why a pod waits or where it has gone, and what keeps pods off a node: answers as values, encoded as JSON.

Times are ages and waits in seconds, counted from the moment of the answer. Amounts are in the smallest unit
of their resource, as everywhere (objects.py).

Pods other than the one that was asked about are named by `OtherPod` alone and never within a text: whoever
may not read a pod must not learn its name, so whoever passes an answer on can leave the names out. So it is
with pools that come before the pod's own, and `PoolAhead`. Texts are made of the pod's own words, of
kube-scheduler's, and of names of nodes and policies.
"""

from typing import Generic, Literal, NamedTuple, TypeVar

from msgspec import Struct

from eclectus.model.learned import ConstraintDemand, LearnedNode, NodePrice, NodeState

WaitingState = Literal[
    "active",
    "deferred",
    "withheld",
    "unschedulable",
    "nodeQueue",
    "gang",
    "heldBack",
    "backOff",
    "arriving",
    "gated",
    "deleting",
]
PodState = WaitingState | Literal["binding", "bound", "otherScheduler", "unknown"]
"""What the values mean that do not say it themselves:

- active: its class is asked about in the next scheduling cycle;
- deferred: a policy lets it wait for a busy node;
- withheld: the Order, or the wait for its data, keeps it from being offered to any node now;
- unschedulable: no node has room for it, or a policy has refused it;
- nodeQueue: it waits in the queue of one node or of several;
- gang: it is to be placed together with the other pods of its PodGroup;
- heldBack: a limit of its pool keeps it from starting, whether nodes have room or not;
- backOff: an attempt has failed, and the next one is due later;
- binding: its bind was sent and is not answered yet;
- otherScheduler: it waits for a schedulerName that this scheduler does not serve;
- unknown: this scheduler knows no such pod.
"""

PreemptionState = Literal[
    "hasRoom",
    "nominated",
    "gangIncomplete",
    "profileEvictsNobody",
    "policyNever",
    "noLowerPriority",
    "notHelpful",
    "possible",
]
"""hasRoom: a node has room, so nobody is evicted for the pod; nominated: room is held for it, or its victims
are on their way out; gangIncomplete: nobody is evicted for a part of a gang; policyNever: its
preemptionPolicy is Never; notHelpful: on none of the nodes examined does it fit without all pods of lower
priority; possible: on `candidates` it does."""


class OtherPod(Struct, frozen=True, rename="camel"):
    """A pod that is not the one that was asked about; without names where the reader may not see them."""

    namespace: str
    name: str
    priority: int = 0
    leaving: bool = False  # it is terminating, or its eviction was sent
    nominated: bool = False  # it is not there yet: room is held for it


class Refusal(Struct, frozen=True, rename="camel"):
    """A reason, in kube-scheduler's words, and on how many nodes it holds (of a node: for how many pods)."""

    reason: str
    count: int


class FilterStep(Struct, frozen=True, rename="camel"):
    """One rule, asked about the nodes that all rules before it have left.

    A node that is short of several resources counts under several reasons, as in kube-scheduler's message.
    """

    rule: str  # name of kube-scheduler's plugin, or of a rule of Eclectus' own
    left: int  # nodes that pass
    refusals: tuple[Refusal, ...] = ()


class Funnel(Struct, frozen=True, rename="camel"):
    """Each rule in kube-scheduler's order, and the nodes it leaves: after the last, those with room now."""

    nodes: int  # of the cluster
    steps: tuple[FilterStep, ...]
    feasible: int  # nodes that could run the pod when empty
    with_room: int  # nodes that can run it now
    message: str  # as kube-scheduler's, with the outcome of preemption; empty where nodes have room


class Lack(Struct, frozen=True, rename="camel"):
    """One thing that a node lacks for a pod."""

    rule: str  # as in FilterStep
    what: str  # a resource, or the condition that does not hold, in the pod's own words
    amount: int = 0  # of a resource: how much is missing; 0 for conditions
    permanent: bool = False  # also on the empty node: no pod that leaves would change it


class NearMiss(Struct, frozen=True, rename="camel"):
    """A node on which the pod does not fit, and all that would have to change there."""

    node: str
    lacks: tuple[Lack, ...]
    fits_without: tuple[OtherPod, ...] = ()  # it would fit if all of these left; empty: that would not help
    not_listed: int = 0  # how many more pods would have to leave
    planned: bool = False  # nothing but room that is planned for pods that wait is in its way


class EvictionCandidate(Struct, frozen=True, rename="camel"):
    """A node on which the pod would fit without these pods, all of lower priority."""

    node: str
    victims: tuple[OtherPod, ...]  # the most important first
    not_listed: int = 0  # how many more would have to leave
    violated_budgets: int = 0  # victims whose eviction their PodDisruptionBudget does not allow now


class Preemption(Struct, frozen=True, rename="camel"):
    """What eviction could do for a pod."""

    state: PreemptionState
    reason: str  # a sentence
    examined: int = 0  # nodes that were looked at for victims: at most some dozens
    candidates: tuple[EvictionCandidate, ...] = ()  # some of those found, least harm first
    next_check: float | None = None  # when the Relieve policy is asked again; None: not before a change


class Waiting(Struct, frozen=True, rename="camel"):
    """Where a pod waits and for what."""

    reason: str  # a sentence
    since: float | None = None  # seconds in this state, where that is known
    next_check: float | None = None  # seconds until it is examined even if nothing changes
    policy: str = ""  # whose decision it is; empty: the engine's
    nodes: tuple[str, ...] = ()  # whose queue it is in, or for which it is deferred; some of them
    ahead: int = 0  # pods before it in that queue: of the node, or of its class and group
    group: str = ""  # of the Order: a job, a namespace or a pool; empty: the Order has no groups
    class_pods: int = 0  # pods that wait and that no rule can tell from this one, itself included
    gates: tuple[str, ...] = ()


class PoolResource(Struct, frozen=True, rename="camel"):
    """One resource of a pool, in the units of the model."""

    resource: str
    held: int
    demand: int = 0  # held, and requested by pods that wait and may start; no more than it may hold
    share: int = 0  # what it is entitled to now
    least: int = 0  # its minimum
    most: int | None = None  # that it may hold; None: no maximum of its own
    nodes: str = ""  # a label with its value: of what it holds on these nodes alone; no demand, and no share


class PoolStanding(Struct, frozen=True, rename="camel"):
    """How a pool stands. `path`: from the root, such as research/vision."""

    path: str
    resources: tuple[PoolResource, ...]
    waiting_pods: int = 0
    running_jobs: int = 0
    below_minimum: float | None = None  # for so long, seconds, although it needs more; None: it is not
    below_share: float | None = None  # likewise below the part of its share at which it may take room back


class PoolAhead(Struct, frozen=True, rename="camel"):
    """A pool of which pods are offered to nodes earlier; without names where the reader may not see them."""

    path: str
    namespace: str = ""  # of one without an object, that of its pods: who may read these may see its path
    waiting_pods: int = 0
    below_minimum: bool = False  # it lacks some of its minimum, of what its next pod requests


class PoolsAhead(Struct, frozen=True, rename="camel"):
    """The children of one pool that come before the child that the pod is in."""

    parent: str  # its path; empty: the root
    pools: tuple[PoolAhead, ...]  # the first ones
    not_listed: int = 0


ReclaimState = Literal[
    "hasRoom",
    "nominated",
    "gangIncomplete",
    "policyNever",
    "limited",
    "profileReclaimsNothing",
    "lacksNothing",
    "noTime",
    "tooSoon",
    "noneAbove",
    "notHelpful",
    "dryRun",
    "possible",
]
"""The first ones as of preemption. limited: a limit of its pools keeps it from starting; lacksNothing: its
pools have what is theirs; noTime: no Pool states after how long it claims what it lacks; tooSoon: that is
later; noneAbove: no pool from which may be taken has more than its share; notHelpful: on none of the nodes
examined may so many pods be evicted that it fits; possible: on `node` they may; dryRun: the Pool only tries
that out."""


class Reclaim(Struct, frozen=True, rename="camel"):
    """What its pools may take back from others for a pod. Of other pods only numbers are said."""

    state: ReclaimState
    reason: str  # a sentence
    pool: str = ""  # that claims room; empty: none does now
    claim: str = ""  # `minimum` or `share`: what that pool lacks
    examined: int = 0  # nodes that were looked at for victims: at most some dozens
    node: str = ""  # where the victims are; empty: there are none
    victims: int = 0  # pods that would have to go
    next_check: float | None = None  # as of preemption


class Nomination(Struct, frozen=True, rename="camel"):
    """Room that is held for a pod which is not bound yet."""

    node: str
    since: float  # seconds
    leaving: tuple[OtherPod, ...] = ()  # pods on that node that are on their way out
    reserved: bool = False  # no pod is evicted: the Order keeps the node free until pods there have ended


class Attempts(Struct, frozen=True, rename="camel"):
    """What is kept of earlier attempts: their number where they failed, and the last report."""

    failures: int = 0  # errors, each of which doubled its back-off
    reports: int = 0  # that were made; those with an unchanged message were not written
    message: str = ""  # of the last report
    reported: float | None = None  # seconds ago


class Placement(Struct, frozen=True, rename="camel"):
    """A pod's node, and what is still known of the decision for it."""

    node: str
    since: float  # seconds on this node: since its start where that is known
    policy: str = ""  # that decides for its profile; empty for pods of other schedulers
    evicted: bool = False  # its eviction was sent
    feasible: int | None = None  # nodes that could run such a pod when empty, now
    with_room: int | None = None  # nodes that have room for one more such pod, now
    speed: float | None = None  # learned, over all work, now; 1 is a typical node
    node_state: NodeState | None = None  # what the learner believes of the node, now
    price: NodePrice | None = None  # now; None where no policy asks for prices
    unmet_preferences: tuple[str, ...] = ()  # by the node's labels of now
    not_kept: str = ""  # what is not known any more: a sentence


class FlowArc(Struct, frozen=True, rename="camel"):
    """A node to which pods of a group may be sent."""

    node: str
    cost: int  # of the next pod there
    slots: int  # pods of its class that fit there
    flow: int = 0  # pods of its group that the answer sends there
    in_rack: int | None = None  # bytes of the pod's data that other nodes of its rack have; None: not priced
    across: int | None = None  # bytes that only nodes of other racks have


class FlowPart(Struct, frozen=True, rename="camel"):
    """The part of the last flow problem that is about a pod, which is one of a group of equal ones."""

    asked: float  # seconds ago
    answer: Literal["awaited", "optimal", "infeasible", "failed"]
    groups: int  # in the problem
    arcs: int
    pods: int  # in its group
    staying: int  # what it costs that a pod of the group stays without a node
    stay: int  # how many of them the answer lets stay
    nodes: tuple[FlowArc, ...] = ()  # those with flow, then the cheapest others
    not_listed: int = 0
    data: int | None = None  # bytes of each pod's data that known nodes have; None: none, or not priced
    why: str = ""  # pods of the group were sent where they were; empty where nothing was answered
    is_beyond: bool = False  # too many groups had data of their own, so it costs the same on all nodes
    # It runs and may be ended: `staying` is what that costs, `stay` how many are, `nodes` its own node alone.
    is_running: bool = False

    @property
    def without_node(self) -> str:
        """What becomes of its pods that get no node, or keep none, for people."""
        return "(end)" if self.is_running else "(stay)"


class PodExplanation(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer about one pod. Parts that do not apply are null."""

    namespace: str
    name: str
    uid: str = ""
    scheduler_name: str = ""
    state: PodState
    summary: str  # one sentence, for people
    deciding: bool = True  # whether this scheduler decides now; otherwise it only follows what happens
    priority: int | None = None
    age: float | None = None  # seconds since it was created
    waiting: Waiting | None = None
    expected_wait: float | None = None  # seconds from now, as estimated with its first report; 0: it is over
    turnaround: float | None = None  # seconds that its slot will be held beside its run; None: not learned
    pool: PoolStanding | None = None  # None: it is in none
    pools_ahead: tuple[PoolsAhead, ...] = ()  # from the root down; empty where its Order compares no pools
    pool_refused: str = ""  # why it is not in the pool that its label names; empty if it is, or names none
    copies: str = ""  # whether it is late, or a copy; empty where it may have none
    nomination: Nomination | None = None
    attempts: Attempts | None = None
    constraint_demand: ConstraintDemand | None = None  # None where no policy asks for prices
    funnel: Funnel | None = None
    nearest: tuple[NearMiss, ...] = ()  # the nodes that lack least, where none has room
    dead_with_room: tuple[str, ...] = ()  # nodes with room that the learner believes dead; some of them
    preemption: Preemption | None = None
    reclaim: Reclaim | None = None  # None: it is in no pool
    placement: Placement | None = None
    flow: FlowPart | None = None  # None: it was in no flow problem, or not in the last one


Answered = Literal["places", "defers", "refuses", "noRoom", "cannotSay"]
"""places: on `node`; defers: it lets the pod wait, for `node` if that is not empty; refuses: although nodes
have room; noRoom: no node has any, so it is not asked; cannotSay: `reason` says why."""


class Candidate(Struct, frozen=True, rename="camel"):
    """A node that a policy would take, or would take if those before it were not there."""

    node: str
    cost: float | None = None  # by the policy's own measure, the less the better; None: it has none
    draws: int = 0  # of `PolicyAnswer.draws`, how many chose this node


class PolicyAnswer(Struct, frozen=True, rename="camel"):
    """Where a Place policy would put a pod, were it the only one that waits."""

    policy: str
    answered: Answered
    node: str = ""
    reason: str = ""  # a sentence; empty where `answered` says all
    candidates: tuple[Candidate, ...] = ()  # the best one first; some of them
    draws: int = 0  # how often it was asked, each time with another seed


class RuleDifference(Struct, frozen=True, rename="camel"):
    """A rule that refuses more nodes than before, or fewer, of those that all rules before it leave."""

    rule: str  # as in FilterStep
    refused_before: int  # nodes
    refused: int


class WhatIfExplanation(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer: what differs, and the pod explained as it would be."""

    changes: tuple[str, ...]  # as they were asked for
    summary: str  # one sentence, for people
    with_room_before: int  # nodes that have room for the pod as it is
    with_room: int  # nodes that would have room
    rules: tuple[RuleDifference, ...]
    placement: PolicyAnswer
    pod: PodExplanation  # without what concerns its place in a queue, which nothing changes


NodeCondition = Literal["takesPods", "cordoned", "tainted", "dead", "full", "unknown"]
"""cordoned: it is unschedulable; tainted: a taint keeps off pods that do not tolerate it; dead: the learner
believes that nothing ends there; full: nothing is left of a resource. unknown: there is no such node."""


class ResourceUse(Struct, frozen=True, rename="camel"):
    """One resource of a node."""

    resource: str
    allocatable: int
    held: int  # by pods on the node and pods nominated to it
    services: int = 0  # the part of `held` that belongs to pods which do not end by themselves
    planned: int = 0  # for pods that wait for this node


class NodeExplanation(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer about one node."""

    name: str
    conditions: tuple[NodeCondition, ...]  # all that hold; `takesPods` stands alone
    summary: str  # one sentence, for people
    taints: tuple[str, ...] = ()  # that keep pods off, as `key=value:effect`
    resources: tuple[ResourceUse, ...] = ()
    background_load: float = 0.0  # share of the node used beyond the requests of its pods, 0..1
    pods: tuple[OtherPod, ...] = ()  # that hold room there, those of the lowest priority first; some of them
    pod_count: int = 0
    nominated: tuple[OtherPod, ...] = ()  # for which room is held; some of them
    queued: int = 0  # pods in its node queue
    price: float | None = None  # demand over supply of all constraints that it satisfies; None: not kept
    learned: LearnedNode | None = None  # its speed and state; None: the learner says nothing of it
    waiting_pods: int = 0  # of this scheduler's profiles, in classes that were compared with this node
    refused: tuple[Refusal, ...] = ()  # why it does not take them: pods by the first rule that refuses them


class AlikePods(Struct, frozen=True, rename="camel"):
    """Pods of a job that wait in the same state and that no rule can tell apart."""

    state: WaitingState
    pods: int
    reason: str  # of the example, a sentence
    message: str  # as in Funnel, of the example
    example: str  # name of one of them, which can be asked about by itself


class JobExplanation(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer about a job: its pods that wait, in groups, those with most pods first."""

    namespace: str
    name: str
    known: bool  # whether this scheduler knows any pod of it
    summary: str  # one sentence, for people
    waiting_pods: int = 0
    placed_pods: int = 0  # on nodes, or with a bind under way
    groups: tuple[AlikePods, ...] = ()
    not_listed: int = 0  # waiting pods in further groups


class PendingPod(Struct, frozen=True, rename="camel", kw_only=True):
    """A pod that waits, in one line of a list."""

    namespace: str
    name: str
    uid: str
    scheduler_name: str
    state: WaitingState
    reason: str  # a sentence: as of now, or of the last report
    priority: int
    created: float | None  # seconds since the epoch; None: not known
    age: float | None  # seconds since then
    since: float | None = None  # seconds in this state, where that is known
    ahead: int | None = None  # as in Waiting; None: it is in no queue
    group: str = ""  # as in Waiting
    nodes: tuple[str, ...] = ()  # as in Waiting


class Oldest(NamedTuple):
    """By what pods that wait are in order."""

    created: float  # seconds since the epoch; 0: not known
    namespace: str
    name: str


Item = TypeVar("Item")
Key = TypeVar("Key")


class Listed(Struct, Generic[Item, Key], frozen=True):
    """Some items of a list, in its order."""

    items: tuple[Item, ...]
    left: int = 0  # how many more come after these
    last: Key | None = None  # the place of the last of these in the order; None: there are none


WHAT_IF, AS_POLICY = "whatIf", "asPolicy"  # parameters of the path that answers what would be different
