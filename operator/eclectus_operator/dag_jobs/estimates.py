"""The graph of a DagJob's stages, and how long their tasks run: as declared, or as long as in earlier runs.

The history of a job is in the status of the DagJobs of its namespace that still exist, so it needs no place
of its own, no permission, and is gone with its namespace. Runs belong together by the label
`eclectus.dev/job-key`; without it by `generateName`, or by the name without a number at its end.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from statistics import median

from eclectus.api.dag_job import DagJob, DagJobMeta, DagJobSpec, EstimateSource, Stage
from eclectus.api.names import ESTIMATED_SECONDS, JOB_KEY_LABEL, JOB_WORK_SECONDS, OPERATOR_KEYS, PATH_SECONDS
from eclectus.maths.longest_paths import longest_paths
from eclectus_operator.convert import shape_problem
from eclectus_operator.dag_jobs import outputs
from eclectus_operator.dag_jobs.tasks import Tasks, is_gang

MOST_RUNS = 5  # the last ones: an older run says less about the next
_NUMBERED = re.compile(r"(.+?)[-.]?[0-9]+")

StageKey = tuple[str, str, str]
"""Namespace, job key and stage."""
Seconds = Mapping[str, float | None]
"""Stage -> seconds; None: unknown."""
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


@dataclass(frozen=True)
class StageGraph:
    """The stages of a job, each after those that it depends on, with their estimates."""

    problems: tuple[str, ...]  # what is wrong with the spec; then there is nothing else
    order: tuple[Stage, ...] = ()
    estimates: Estimates = field(default_factory=dict)
    paths: Seconds = field(default_factory=dict)  # as `longest_paths` returns them

    def pod_hints(self, tasks: Iterable[Tasks]) -> dict[str, dict[str, str]]:
        """Stage -> the annotations by which schedulers order its pods: of the task, its path, its job's work.

        The work of the job is what has not begun.
        """
        work: float | None = 0.0
        for each in tasks:
            own = self.estimates[each.stage.name][0]
            left = each.stage.tasks - len(each.succeeded) - each.running
            work = None if work is None or own is None else work + own * left
        return {name: hints(seconds, self.paths[name], work) for name, (seconds, _) in self.estimates.items()}


def stage_graph(job: DagJob, history: History, *, is_valid: bool = False) -> StageGraph:
    """The graph of a job, whose run times are noted in the history.

    `is_valid`: its stages, which cannot be changed, have been checked before.
    """
    history.note(job)
    wrong = () if is_valid else tuple(problems(job.spec))
    if wrong:
        return StageGraph(wrong)
    found, order = estimates(job, history), ordered(job.spec)
    stages = [(stage.name, stage.depends_on) for stage in order]
    paths = longest_paths(stages, {name: seconds for name, (seconds, _) in found.items()})
    return StageGraph((), tuple(order), found, paths)


def problems(spec: DagJobSpec) -> list[str]:
    """What is wrong with a spec that passed its schema, each with its path; empty if it is valid."""
    of_templates = [wrong for stage in spec.stages for wrong in _of_template(stage)]
    return [*_of_graph(spec), *(of_templates or _of_limits(spec)), *outputs.problems(spec)]


def ordered(spec: DagJobSpec) -> list[Stage]:
    """The stages, each after those that it depends on. Of a valid spec."""
    stages = {stage.name: stage for stage in spec.stages}
    return [stages[name] for name in _sorter(spec).static_order()]


def _of_graph(spec: DagJobSpec) -> Iterator[str]:
    names = {stage.name for stage in spec.stages}
    unknown = [(stage.name, each) for stage in spec.stages for each in stage.depends_on if each not in names]
    for stage_name, parent in unknown:
        yield f"stages[{stage_name}].dependsOn: there is no stage {parent!r}"
    if unknown:
        return
    try:
        _sorter(spec).prepare()
    except CycleError as error:
        circle = " -> ".join(reversed(error.args[1]))
        yield f"stages: {circle} depend on each other in a circle, so none of them could ever start"


def _of_limits(spec: DagJobSpec) -> Iterator[str]:
    for stage in spec.stages:
        limits = {"maxParallel": spec.max_parallel, f"stages[{stage.name}].maxParallel": stage.max_parallel}
        for path, most in limits.items():
            if most is not None and most < stage.tasks and is_gang(stage):
                yield (
                    f"{path}: the {stage.tasks} pods of stage {stage.name} are a pod group, which starts "
                    f"when all of them exist, so it could never start with {most} at a time"
                )


def _of_template(stage: Stage) -> Iterator[str]:
    path = f"stages[{stage.name}].template"
    wrong = shape_problem(stage.template)
    if wrong:
        yield f"{path}: {wrong}"
        return
    metadata = stage.template.get("metadata", {})
    for kind in ("labels", "annotations"):
        for key in sorted(metadata.get(kind, {}).keys() & set(OPERATOR_KEYS)):
            # A template must not be a way around admission.
            yield f"{path}.metadata.{kind}[{key}]: only the operator makes pods with it"


def _sorter(spec: DagJobSpec) -> TopologicalSorter[str]:
    return TopologicalSorter({stage.name: stage.depends_on for stage in spec.stages})


def hints(seconds: float | None, path: float | None, job_work: float | None) -> dict[str, str]:
    """The annotations with estimates, of those that are known."""
    known = {ESTIMATED_SECONDS: seconds, PATH_SECONDS: path, JOB_WORK_SECONDS: job_work}
    return {name: f"{value:.6g}" for name, value in known.items() if value}
