"""What the scheduler process needs from an engine. `eclectus.engine.engine.Engine` is the implementation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from eclectus.accounts.node_prices import PriceSummary
from eclectus.engine.counters import QueueCounts
from eclectus.engine.explain.decision import Decision
from eclectus.engine.explain.what_if.explanation import WhatIfExplanation
from eclectus.engine.explain.what_if.question import Question
from eclectus.framework import LearnedCell, Need
from eclectus.model.commands import Command
from eclectus.model.events import Event
from eclectus.model.explanation import JobExplanation, NodeExplanation, PodExplanation
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary


class SteppingEngine(Protocol):
    """The part of an engine that the loop calls."""

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        """Apply the events and return the commands that follow; `now` in seconds since the epoch."""

    def next_step_at(self) -> float | None:
        """When to step even without events, on the clock of `now`; None: not before the next event."""


class ExplainingEngine(Protocol):
    """The part of an engine that explains. Between two steps; nothing changes by it."""

    def explain_pod(self, namespace: str, name: str, now: float) -> PodExplanation:
        """Why a pod waits, or what is known of its placement; `now` in seconds since the epoch."""

    def explain_what_if(self, namespace: str, name: str, question: Question, now: float) -> WhatIfExplanation:
        """How a waiting pod would be explained, and placed, if something were other than it is.

        Raises QuestionError.
        """

    def explain_job(
        self, namespace: str, name: str, labels: Collection[tuple[str, str]], now: float
    ) -> JobExplanation:
        """Why the pods of a job wait; whichever of the labels a pod has, it is one of the job."""

    def explain_node(self, name: str) -> NodeExplanation:
        """What a node holds and what keeps pods off it."""


class Engine(SteppingEngine, ExplainingEngine, Protocol):
    """An engine with the counts and the learned state that the process publishes."""

    @property
    def needs(self) -> Mapping[Need, frozenset[str]]:
        """What is to be watched for policies, and for the profiles of which schedulerNames."""

    def decision(self, uid: str) -> Decision | None:
        """What a pod bound in the last step was placed by and among, for logs; None for other pods."""

    def unmet_preferences(self, uid: str) -> tuple[str, ...]:
        """The preferences that the node of a pod bound in the last step does not meet, in words."""

    def queue_counts(self) -> QueueCounts:
        """How many pods are in each queue, and what the engine has counted."""

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """Every learned rate, by node and class of work; only of nodes whose names come after this one."""

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """What is learned of each node, in the form that NodeProfile objects store."""

    def learned_load(self, now: float) -> LearnedLoad | None:
        """How busy the cluster is; None while the learner does not know."""

    def price_summary(self, label: str, most: int) -> PriceSummary | None:
        """Node prices by node group (values of `label`, at most `most`), and what constraints ask for."""

    def learned_summary(self, label: str, most: int, now: float) -> tuple[list[str], LearnedSummary | None]:
        """Names of the node groups (values of `label`, at most `most`), and what is learned of each."""
