"""What is known of a node, as a value that can outlive the process: one NodeProfile's worth."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

NodeState = Literal["unknown", "live", "suspect", "dead"]
"""No sample yet; measured; its tasks are overdue, so it is believed slower; no real work is sent there."""


class LearnedWork(Struct, frozen=True, gc=False):
    """What a node has shown at one kind of work."""

    workload: str
    rate: float  # tasks a second in one slot
    samples: int  # behind it, older ones counted less
    confidence: float  # chance that the rate is within a third of the truth, 0..1


class LearnedNode(Struct, frozen=True, gc=False):
    """All that a learner knows of a node. Of two values the one with the greater epoch is true."""

    node: str
    epoch: int  # grows with every sample and every change of state
    at: float  # when this was so, seconds on the shell's clock
    state: NodeState
    speed: float  # at all work; 1 is a typical node
    confidence: float  # as of a cell, of the speed
    work: tuple[LearnedWork, ...]


class LearnedLoad(Struct, frozen=True, gc=False):
    """How busy all nodes together are, and with what: by this the operator reckons how often to probe."""

    arrivals: float  # tasks a second that come, quick to rise
    capacity: float  # tasks a second that all live nodes can surely do; 0 while nothing is known
    shares: tuple[tuple[str, float], ...]  # of kinds of work in what came lately, adding up to 1


class LearnedGroup(Struct, frozen=True, gc=False):
    """What the nodes of a group have shown at one kind of work; means over those with samples."""

    group: int  # its place among the groups asked for
    workload: str
    nodes: int  # with samples
    samples: float  # of all of them
    speed: float  # 1 is the mean of all nodes with samples of this work
    confidence: float  # as of a cell


class LearnedSummary(Struct, frozen=True, gc=False):
    """What is known in all, for metrics: few numbers, however many nodes there are."""

    arrivals: float  # tasks a second that come to all schedulers
    capacity: float  # tasks a second that all live nodes can surely do; 0 while nothing is known
    arrived: int  # tasks that have come since the learner began
    samples: int  # tasks it has learned from since
    alarms: int  # changes of speed it has found since
    states: tuple[tuple[int, NodeState, int], ...]  # (group, state, nodes)
    work: tuple[LearnedGroup, ...]
