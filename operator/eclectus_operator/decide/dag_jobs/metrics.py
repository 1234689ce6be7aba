"""Metrics of DagJobs: how many there are by phase, why they ended, and pods created."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from eclectus_operator.decide.dag_jobs.job_status import Phase


class DagMetrics:
    """The number of values of each label is fixed: it does not grow with the jobs."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Gauge(
            "eclectus_dag_jobs",
            "DagJobs by phase: Pending (no pod may be created yet), Running, Suspended, Succeeded, Failed.",
            ["phase"],
            registry=registry,
        )
        self._ended = Counter(
            "eclectus_dag_jobs_ended",
            "DagJobs that have ended, by the reason of their condition.",
            ["reason"],
            registry=registry,
        )
        self._pods = Counter(
            "eclectus_dag_pods_created",
            "Pods created for tasks of DagJobs: first, or again after the task has failed.",
            ["attempt"],
            registry=registry,
        )

    def count(self, phases: Iterable[Phase]) -> None:
        """How many jobs are in which phase now."""
        found = Tally(phases)
        for phase in get_args(Phase):
            self._jobs.labels(phase).set(found[phase])

    def ended(self, reason: str) -> None:
        """A job has ended; `reason`: that of its condition, of which there are five."""
        self._ended.labels(reason).inc()

    def pod_created(self, attempt: int) -> None:
        """A pod was created; `attempt`: how often its task has failed before."""
        self._pods.labels("again" if attempt else "first").inc()
