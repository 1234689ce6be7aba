"""What is learned of nodes, and their prices, as values that can outlive the process.

A NodeProfile holds one LearnedNode.
"""

from typing import Literal

from msgspec import Struct

NodeState = Literal["unknown", "live", "suspect", "dead"]
"""unknown: no sample yet; live: measured; suspect: tasks overdue, rate lowered; dead: the last choice."""


class LearnedWork(Struct, frozen=True, gc=False):
    """What is learned of a node for one workload."""

    workload: str
    rate: float  # tasks a second in one slot
    samples: int  # that it is based on, older ones weighted less
    confidence: float  # probability that the rate is within a third of the true one, 0..1
    price: float | None = None  # a task counts as running so many times as long here; None: no price anywhere


class LearnedNode(Struct, frozen=True, gc=False):
    """All that is learned of a node. Of two values, the one with the greater epoch holds."""

    node: str
    epoch: int  # grows with every sample and every change of state
    at: float  # when this was exported, seconds on the caller's clock
    state: NodeState
    speed: float  # over all workloads; 1 is a typical node
    confidence: float  # of the speed, as in LearnedWork
    work: tuple[LearnedWork, ...]
    price: float | None = None  # of the node, by scarcity; None where prices are not kept


class LearnedLoad(Struct, frozen=True, gc=False):
    """The load of all nodes together and its mix; the operator computes from it how often to probe."""

    arrivals: float  # tasks a second that arrive, as an upper estimate
    capacity: float  # tasks a second of all live nodes, as a lower estimate; 0 while unknown
    shares: tuple[tuple[str, float], ...]  # (workload, share of recent arrivals), adding up to 1


class LearnedGroup(Struct, frozen=True, gc=False):
    """What is learned of a group of nodes for one workload; means over its nodes with samples."""

    group: int  # its index among the groups asked for
    workload: str
    nodes: int  # with samples
    samples: float  # of all these nodes
    speed: float  # 1 is the mean of all nodes with samples of this work
    confidence: float  # as in LearnedWork


class LearnedSummary(Struct, frozen=True, gc=False):
    """All that is learned, in few numbers however many nodes there are; for metrics."""

    arrivals: float  # tasks a second that arrive at all schedulers
    capacity: float  # tasks a second of all live nodes, as a lower estimate; 0 while unknown
    arrived: int  # tasks that have arrived since the learner started
    samples: int  # tasks it has learned from since then
    alarms: int  # changes of speed it has detected since then
    states: tuple[tuple[int, NodeState, int], ...]  # (group, state, nodes)
    work: tuple[LearnedGroup, ...]
    extremes: tuple[tuple[str, float], ...] = ()  # slowest and fastest nodes and their speeds


class ConstraintDemand(Struct, frozen=True, gc=False, rename="camel"):
    """What is demanded of the nodes that satisfy a set of constraints, averaged over minutes.

    Of its scarcest resource, as shares of what all nodes have of that.
    """

    constraints: str  # in one line
    demand: float  # what pods with these constraints hold and wait for, 0 and more
    supply: float  # what the nodes that satisfy them have beside services, 0..1


class NodePrice(Struct, frozen=True, gc=False, rename="camel"):
    """What a node costs a pod, to policies that weigh what others need it for."""

    scarcity: float  # demand over supply of all constraints that the node satisfies
    least: float  # of the nodes that could run the pod, the least such price
    work: float = 1.0  # so many times as long the pod counts as running: other work is better done there
