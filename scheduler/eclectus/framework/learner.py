"""The learner's part of the seam: what it is told, and what it tells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary, NodeState


class Completion(Struct, frozen=True, gc=False):
    """A task ran to its end on a node: what a learner learns from."""

    row: int
    workload: str
    seconds: float  # container start to container end; no queueing, no image pull
    at: float  # when we saw that it had ended, seconds: no kubelet's clock can disturb it


@dataclass(frozen=True, slots=True)
class Speeds:
    """What is believed of every node for one workload.

    `rate`: tasks a second in one slot, shape [capacity]. `most`: no rate is above it. `epoch`
    changes when all rows may have changed at once; a single row changes only together with that
    node's usage.
    """

    rate: NDArray[np.float64]
    most: float
    epoch: int


class LearnedCell(Struct, frozen=True, gc=False):
    """One learned cell, for people."""

    node: str
    workload: str
    rate: float  # tasks a second in one slot
    samples: int
    confidence: float = 0.0  # chance that the rate is within a third of the truth, 0..1
    state: NodeState = "live"  # of the node
    newest_at: float | None = None  # when the newest sample was taken, seconds


class Learn(ABC):
    """What does it teach us? One learner serves all profiles: the nodes are the same for all."""

    @abstractmethod
    def add_node(self, row: int, node: str, capacity: int) -> None:
        """Node `node` now has row `row` of arrays of length `capacity`."""

    @abstractmethod
    def remove_node(self, row: int) -> None:
        """The node of this row is gone."""

    @abstractmethod
    def observe(self, done: Completion) -> None:
        """A task has ended."""

    @abstractmethod
    def speeds(self, workload: str) -> Speeds:
        """What is believed of every node for this workload; cheap, asked with every decision."""

    @abstractmethod
    def learned_cells(self) -> Iterator[LearnedCell]:
        """Every cell with samples, for people."""

    # What a learner that needs to know of may override; none else is told.

    def arrived(self, workload: str, now: float) -> None:
        """A task that will end by itself has come to us, or another scheduler has bound it; once a task."""
        del workload, now

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """A task that will end by itself has been seen running, whoever bound it; maybe many times over."""
        del uid, row, workload, now

    def left(self, uid: str, now: float) -> None:
        """A task has ended in any way, or is gone; it may never have been seen running."""
        del uid, now

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """What is known of every node, as values that another process can recall."""
        return iter(())

    def learned_load(self, now: float) -> LearnedLoad | None:
        """How busy all nodes are; None where the learner does not say."""
        del now
        return None

    def summary(self, groups: NDArray[np.intp], now: float) -> LearnedSummary | None:
        """What is known in all, by group of nodes (by row, -1: none); None where the learner does not say."""
        del groups, now
        return None

    def recall(self, known: LearnedNode) -> None:
        """What was known of a node once, here or elsewhere; the node has a row, `known.at` is not to come."""
        del known
