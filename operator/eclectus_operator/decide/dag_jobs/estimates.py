"""How long the tasks of a stage run: as declared, or as long as in earlier runs of the same job.

The history of a job is in the status of the DagJobs of its namespace that still exist, so it needs no place
of its own, no permission, and is gone with its namespace. Runs belong together by the label
`eclectus.dev/job-key`; without it by `generateName`, or by the name without a number at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from statistics import median

from eclectus.api.dag_job import DagJob, DagJobMeta, EstimateSource, Stage
from eclectus.api.names import JOB_KEY_LABEL
from eclectus_operator.decide.dag_jobs import graph
from eclectus_operator.decide.dag_jobs.tasks import Tasks
from eclectus_operator.objects.dag_jobs.pods import hints

MOST_RUNS = 5  # the last ones: an older run says less about the next
_NUMBERED = re.compile(r"(.+?)[-.]?[0-9]+")

StageKey = tuple[str, str, str]
"""Namespace, job key and stage."""
Estimates = Mapping[str, tuple[float | None, EstimateSource]]
"""Stage -> run time of a task in seconds, None if unknown, and its source."""


def job_key(meta: DagJobMeta) -> str:
    """What a DagJob has in common with other runs of the same job."""
    label = meta.labels.get(JOB_KEY_LABEL)
    if label or meta.generate_name:
        return label or meta.generate_name
    match = _NUMBERED.fullmatch(meta.name)
    return match[1] if match else meta.name


class History:
    """The run times of the last runs of each stage, as `runSeconds` in the status of the DagJobs says."""

    def __init__(self) -> None:
        self._runs: dict[StageKey, dict[tuple[str, str], float]] = {}

    def note(self, job: DagJob) -> None:
        """Remember the run times of a job, in place of those noted of it before."""
        meta = job.metadata
        for stage in job.status.stages:
            if stage.run_seconds:
                runs = self._runs.setdefault((meta.namespace, job_key(meta), stage.name), {})
                runs[meta.creation_timestamp, meta.uid] = stage.run_seconds
                if len(runs) > MOST_RUNS:
                    del runs[min(runs)]

    def seconds(self, job: DagJob, stage: str) -> float | None:
        """The median of the last runs; None if there is none."""
        runs = self._runs.get((job.metadata.namespace, job_key(job.metadata), stage))
        return round(median(runs.values()), 3) if runs else None


def estimates(job: DagJob, history: History) -> Estimates:
    """The estimate of each stage."""
    return {stage.name: _estimate(stage, history.seconds(job, stage.name)) for stage in job.spec.stages}


def _estimate(stage: Stage, in_history: float | None) -> tuple[float | None, EstimateSource]:
    given = stage.estimate
    if given.source == "declared" and given.seconds is not None:
        return given.seconds, "declared"
    if given.source == "unknown":
        return None, "unknown"
    if in_history is not None:
        return in_history, "history"
    return (given.seconds, "declared") if given.seconds is not None else (None, "unknown")


def pod_hints(job: DagJob, found: Estimates, tasks: Iterable[Tasks]) -> dict[str, dict[str, str]]:
    """Stage -> the annotations by which schedulers order its pods: of the task, its path, and its job's work.

    The work of the job is what has not begun.
    """
    seconds = {name: each for name, (each, _) in found.items()}
    paths = graph.path_seconds(job.spec, seconds)
    work: float | None = 0.0
    for each in tasks:
        own = seconds[each.stage.name]
        left = each.stage.tasks - len(each.succeeded) - each.running
        work = None if work is None or own is None else work + own * left
    return {name: hints(seconds[name], paths[name], work) for name in seconds}
