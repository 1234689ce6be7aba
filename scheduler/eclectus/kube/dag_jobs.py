"""DagJobs of the API as jobs of the model, and the plan of a job as a part of its status.

A stage's Spec and class of work are made from its pod template by the code that makes them from a pod.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from msgspec import Struct, ValidationError, convert
from msgspec.json import Decoder
from msgspec.structs import replace

from eclectus.api.common import micro_time_text, rounded
from eclectus.api.dag_job import DagJob, PlanStatus, Stage, StageStatus
from eclectus.api.names import DAG_JOB, ESTIMATED_SECONDS, POOL_LABEL
from eclectus.kube import objects
from eclectus.kube.objects import ApiObject, Metadata, Pod, PodSpec, decode, full_name
from eclectus.kube.requests import MOST, FieldError, quantities
from eclectus.kube.stage_order import topological
from eclectus.kube.translate import MAX_SECONDS, spec_from, workload_of
from eclectus.model.errors import MalformedError
from eclectus.model.job import Job, JobPlan, JobStage
from eclectus.model.objects import Amounts

# The greatest is 1e6; shares divide by weights, and one as small as floats are is no number.
LEAST_WEIGHT = 1e-6


class Shape(Struct, frozen=True):
    """What of a DagJob changes with its generation alone."""

    stages: tuple[JobStage, ...]  # in topological order, as if nothing had been done yet
    profiles: frozenset[str]  # the schedulers that its pods ask for


class _TaskSpec(PodSpec, frozen=True):
    """spec of a template, with what the operator sets on a pod where the template says nothing."""

    restart_policy: str = "Never"
    scheduler_name: str = "eclectus"


class _Template(ApiObject, frozen=True):
    spec: _TaskSpec
    metadata: Metadata = Metadata()


decode_dag_job = partial(decode, Decoder(DagJob), DAG_JOB)
"""Takes the JSON of a DagJob. Raises MalformedError naming the object and the field."""


def shape_from(job: DagJob, shared: AbstractSet[str] = frozenset()) -> Shape:
    """Its stages and the schedulers they ask for. Raises MalformedError naming the DagJob and the field.

    `shared` are the classes of work that belong to no namespace.
    """
    stages = job.spec.stages
    try:
        templates = [_template(stage, at) for at, stage in enumerate(stages)]
        order = topological([(stage.name, stage.depends_on) for stage in stages])
        place = {stages[at].name: number for number, at in enumerate(order)}
        found = tuple(_stage(job, at, templates[at], place, shared) for at in order)
    except FieldError as error:
        name = full_name(job.metadata.namespace, job.metadata.name)
        raise MalformedError(DAG_JOB, name, error.field, error.problem) from error
    return Shape(found, frozenset(template.spec.scheduler_name for template in templates))


def job_from(job: DagJob, shape: Shape) -> Job:
    """The job in the model: its shape, and what the status says is done of it."""
    meta, spec, plan = job.metadata, job.spec, job.status.plan or PlanStatus()
    known = {each.name: each for each in job.status.stages}
    return Job(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        stages=tuple(_with_progress(stage, known) for stage in shape.stages),
        created=objects.seconds(meta.creation_timestamp) or 0.0,
        pool=spec.pool,
        weight=max(spec.weight, LEAST_WEIGHT),
        altruism=spec.altruism,
        suspended=spec.suspend,
        deadline=objects.seconds(plan.deadline),
        slips=plan.slips,
        slip_seconds=min(plan.slip_seconds, MOST),
        lent_seconds=_in_model_units(plan.lent_seconds),
        borrowed_seconds=_in_model_units(plan.borrowed_seconds),
        max_parallel=_limit(spec.max_parallel),
    )


def plan_status(plan: JobPlan, before: PlanStatus | None = None) -> dict[str, Any]:
    """The value of `status.plan` in a merge patch; `before` is what the status has.

    A merge patch keeps what it does not name, so resources and times that are no longer planned are null.
    """
    before = before or PlanStatus()
    return {
        "share": quantities(plan.share, before.share),
        "finishSeconds": None if plan.finish_seconds is None else rounded(plan.finish_seconds),
        "deadline": None if plan.deadline is None else micro_time_text(plan.deadline),
        "slips": plan.slips,
        "slipSeconds": rounded(plan.slip_seconds),
        "lent": quantities(plan.lent, before.lent),
        "borrowed": quantities(plan.borrowed, before.borrowed),
        "reservedNode": plan.reserved_node or None,
        "lentSeconds": _numbers(plan.lent_seconds),
        "borrowedSeconds": _numbers(plan.borrowed_seconds),
    }


def _template(stage: Stage, at: int) -> _Template:
    try:
        return convert(stage.template, _Template)
    except ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise FieldError(f"{_field(at)}{path.rstrip('`')}", problem) from error


def _stage(
    job: DagJob, at: int, template: _Template, place: Mapping[str, int], shared: AbstractSet[str]
) -> JobStage:
    stage = job.spec.stages[at]
    labels = template.metadata.labels
    pod = Pod(Metadata(namespace=job.metadata.namespace, labels=labels), template.spec)
    try:
        spec = spec_from(pod)
    except FieldError as error:
        raise FieldError(f"{_field(at)}.{error.field}", error.problem) from error
    return JobStage(
        name=stage.name,
        tasks=stage.tasks,
        spec=spec,
        workload=workload_of(pod, shared),
        seconds=stage.estimate.seconds,
        parents=tuple(sorted(place[parent] for parent in stage.depends_on)),
        asked_pool=labels.get(POOL_LABEL, ""),
        max_parallel=_limit(stage.max_parallel),
    )


def _limit(most: int | None) -> int | None:
    return None if most is None else max(most, 1)


def _field(at: int) -> str:
    return f"spec.stages[{at}].template"


def _with_progress(stage: JobStage, known: Mapping[str, StageStatus]) -> JobStage:
    """What the operator has counted, and the estimate that it has chosen; before that, the declared one."""
    status = known.get(stage.name)
    if status is None:
        return stage
    estimate = status.estimate_seconds
    return replace(
        stage,
        succeeded=min(max(status.succeeded, 0), stage.tasks),
        seconds=None if estimate is None else min(max(estimate, 0.0), MAX_SECONDS[ESTIMATED_SECONDS]),
    )


def _numbers(amounts: Amounts) -> dict[str, float]:
    """Amounts as numbers of whole units: cores, not thousandths. Of totals, of which none ever goes away."""
    return {name: amount / 1000 if name == "cpu" else float(amount) for name, amount in amounts}


def _in_model_units(numbers: Mapping[str, float]) -> Amounts:
    """Whole numbers; the largest that can be counted for a larger one, which anybody may have written."""
    counts = ((name, number * 1000 if name == "cpu" else number) for name, number in sorted(numbers.items()))
    return tuple((name, round(min(count, MOST))) for name, count in counts)
