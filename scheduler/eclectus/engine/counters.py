"""What the engine counts, for metrics."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Literal

AttemptResult = Literal["scheduled", "unschedulable", "error"]
Incoming = Literal["active", "backoff"]


class PlanCounters:
    """Of the plans of DAG jobs, since the start."""

    def __init__(self) -> None:
        self.made = 0  # plans that an Order has made or changed
        self.slips = 0  # deadlines that were moved to a later time
        self.slip_seconds = 0.0  # by how much in all
        self.lent_seconds: dict[str, float] = {}  # by resource: amounts of the model times seconds
        self.borrowed_seconds: dict[str, float] = {}  # likewise


class Counters:
    """Counts since the start. Names and labels follow kube-scheduler's metrics."""

    def __init__(self) -> None:
        self.attempts: Counter[tuple[AttemptResult, str]] = Counter()  # by result and profile
        self.incoming: Counter[tuple[Incoming, str]] = Counter()  # pods entering a queue, by queue and event
        self.faults = 0  # actions of policies that were refused, and exceptions they raised
        self.placed_by_limit = 0  # pods that had waited for so long as their profile allows, beside room
        self.preemption_attempts = 0  # searches for pods to evict
        self.preemption_victims = 0  # pods of which the eviction was sent
        # By profile and set of constraints, of pods that were placed since; both from the same moment on.
        self.expected_wait_seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.observed_wait_seconds: dict[tuple[str, str], float] = defaultdict(float)
        self.plans = PlanCounters()
        self.missed_activations = 0  # unschedulable pods that only the periodic recheck has found schedulable


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many pods are in which queue now, and the counters."""

    active: int
    backoff: int
    unschedulable: int
    gated: int
    in_gangs: int  # pods that wait to be placed together with others, leads aside
    node_queues: int
    binding: int
    nominated: int  # pods for which room is held on a node, neither bound nor assumed
    nodes: int
    classes: int
    dag_jobs: int
    counters: Counters
