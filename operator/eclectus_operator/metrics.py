"""The operator's metrics: how runs ended, DagJobs, and copies (docs/reference/metrics.md)."""

from collections import Counter as Tally
from collections.abc import Iterable
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics, generate_latest

from eclectus.api.dag_job import Phase
from eclectus.api.node_probe import EndedBy, Outcome

YIELDED = "Yielded"
"""The reason of the outcome of a run that real pods have displaced."""

CopyStep = Literal["created", "won", "lost", "withdrawn", "refused", "restarted"]

_FAILURES: dict[EndedBy, str] = {"Pod": "failed", "Operator": "overdue", "Other": "lost"}

# A `_created` series for each other one would double the page.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """Counted in kopf's threads, read in the health server's: prometheus_client locks them.

    The number of values of each label is fixed: it does not grow with the jobs.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._probes = self._counter(
            "probes",
            "Probes that have ended: succeeded, failed, overdue (ended by the operator), yielded (to a pod "
            "that needed the room), or lost (refused, or deleted by others).",
            "outcome",
            "stage",
        )
        self._jobs = Gauge(
            "eclectus_dag_jobs",
            "DagJobs by phase: Pending (no pod may be created yet), Running, Suspended, Succeeded, Failed.",
            ["phase"],
            registry=self.registry,
        )
        self._ended = self._counter(
            "dag_jobs_ended", "DagJobs that have ended, by the reason of their condition.", "reason"
        )
        self._pods = self._counter(
            "dag_pods_created",
            "Pods created for tasks of DagJobs: first, or again after the task has failed.",
            "attempt",
        )

        self._copies = self._counter(
            "copy_steps",
            "Copies of pods that straggle: created, won (ended before their originals), lost, withdrawn (too "
            "long in one stage, or not needed any more), or refused (with an event that says why); and "
            "pods of Jobs that were restarted instead.",
            "step",
        )

    def probe_ended(self, outcome: Outcome) -> None:
        """Count a run that has ended; its NodeProbe's status counts it too."""
        how = "succeeded" if outcome.succeeded else _FAILURES[outcome.ended_by]
        self._probes.labels("yielded" if outcome.reason == YIELDED else how, outcome.stage).inc()

    def count_jobs(self, phases: Iterable[Phase]) -> None:
        """Set how many DagJobs are in which phase now."""
        found = Tally(phases)
        for phase in get_args(Phase):
            self._jobs.labels(phase).set(found[phase])

    def job_ended(self, reason: str) -> None:
        """Count a DagJob that has ended; `reason`: that of its condition, of which there are few."""
        self._ended.labels(reason).inc()

    def pod_created(self, attempt: int) -> None:
        """Count a pod of a task; `attempt`: how often its task has failed before."""
        self._pods.labels("again" if attempt else "first").inc()

    def count_copy(self, step: CopyStep) -> None:
        """Count what has become of a copy."""
        self._copies.labels(step).inc()

    def expose(self) -> bytes:
        """The page /metrics."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"eclectus_{name}", text, labels, registry=self.registry)
