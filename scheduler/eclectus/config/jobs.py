"""Jobs and CronJobs of `batch/v1` as DagJobs.

Each field of a Job becomes one of the DagJob, is what a DagJob does anyway, or has no counterpart and is
listed, with what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from eclectus.api.dag_job import MAX_RETRIES, MAX_TASKS, STAGE_NAME_CHARACTERS
from eclectus.api.names import API_VERSION, DAG_JOB, TASK_INDEX_LABEL
from eclectus.config.settings_reading import read_documents, read_list, read_mapping
from eclectus.model.errors import SettingsError

Object = dict[str, Any]

BACKOFF_LIMIT = 6  # of a Job that has none
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"  # that containers of an Indexed Job read
# Labels that the Job's controller gives its pods, or what they begin with.
OF_THE_CONTROLLER = ("batch.kubernetes.io/", "controller-uid", "job-name")
IGNORE_DISRUPTION = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}

PAUSED = "starts nothing, as `suspend: true` does; here as many pods at a time as there is room for"
WORK_QUEUE = (
    "a Job without completions ends with the first pod that succeeds; each of the tasks must succeed here"
)
SCHEDULE = "docs/dag-jobs.md#from-jobs-and-on-a-schedule has a CronJob that creates DagJobs"
BACKOFF = "counts the failures of all pods of a Job, and retries those of each task"
NONE: Mapping[str, str] = {
    "managedBy": "the operator runs DagJobs",
    "manualSelector": "pods are found by labels of the operator",
    "maxFailedIndexes": "a DagJob fails with its first task that has used up its retries",
    "selector": "pods are found by labels of the operator",
    "successPolicy": "all tasks must succeed; copies of slow ones by `speculative` (docs/dag-jobs.md#copies)",
}
READ = {
    *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "completionMode", "completions"),
    *("parallelism", "podFailurePolicy", "podReplacementPolicy", "suspend", "template"),
    "ttlSecondsAfterFinished",
}


class FromJobs(NamedTuple):
    """The YAML of the DagJobs, and what has no counterpart."""

    text: str
    notes: list[str]


class _Job(NamedTuple):
    where: str
    metadata: Object
    spec: Object


def dag_jobs_of(files: Iterable[tuple[str, str]], name: str = "") -> FromJobs:
    """A DagJob for each Job and CronJob of files, (name, text) each.

    With `name` one DagJob of that name, of which each Job is a stage that follows the one before. Raises
    SettingsError for a file that is no YAML, has no Job, or has one that cannot be one.
    """
    notes = list[str]()
    jobs = [job for file, text in files for job in _jobs(file, text, notes)]
    if not jobs:
        raise SettingsError("", "there is no Job in what was given: batch/v1, kind Job or CronJob")
    if name:
        made = [_chained(name, jobs, notes)]
    else:
        made = [_dag_job(job.metadata, _of_job(job, notes), [_stage(job, notes)]) for job in jobs]
    return FromJobs(yaml.safe_dump_all(made, sort_keys=False), notes)


def _jobs(file: str, text: str, notes: list[str]) -> Iterator[_Job]:
    try:
        documents = read_documents(text)
    except SettingsError as error:
        raise SettingsError(file, "; ".join(problem for _, problem in error.problems)) from error
    for number, value in enumerate(documents, start=1):
        where = file if len(documents) == 1 else f"{file}: document {number}"
        fields = _mapping(value, where)
        if str(fields.get("kind", "")).endswith("List"):
            for each in read_list(fields.get("items"), f"{where}: items"):
                yield from _job(where, each, notes)
        elif fields:
            yield from _job(where, fields, notes)


def _job(where: str, value: object, notes: list[str]) -> Iterator[_Job]:
    fields = _mapping(value, where)
    kind, metadata = fields.get("kind"), _mapping(fields.get("metadata"), f"{where}: metadata")
    where = f"{where}: {kind} {metadata.get('name') or metadata.get('generateName') or ''}".rstrip()
    spec = _mapping(fields.get("spec"), f"{where}: spec")
    if fields.get("apiVersion") != "batch/v1" or kind not in ("Job", "CronJob"):
        notes.append(f"{where}: it is neither a Job nor a CronJob of batch/v1")
        return
    if kind == "CronJob":
        notes.append(f"{where}: schedule: {SCHEDULE}")
        template = _mapping(spec.get("jobTemplate"), f"{where}: spec.jobTemplate")
        metadata |= {"labels": _mapping(template.get("metadata"), where).get("labels")}
        spec = _mapping(template.get("spec"), f"{where}: spec.jobTemplate.spec")
    yield _Job(where, metadata, spec)


def _mapping(value: object, where: str) -> Object:
    """The fields of an object; none where it is not set."""
    return {} if value is None else dict(read_mapping(value, where))


def _number(spec: Object, field: str, where: str) -> int | None:
    """A whole number, 0 or more; None where it is not set."""
    value = spec.get(field)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise SettingsError(f"{where}: {field}", f"must be a whole number of 0 or more, not {value!r}")
    return value


def _chained(name: str, jobs: Sequence[_Job], notes: list[str]) -> Object:
    """One DagJob; what a Job says of itself as a whole has no counterpart in a stage."""
    stages = list[Object]()
    for job in jobs:
        stage = _stage(job, notes)
        if any(each["name"] == stage["name"] for each in stages):
            raise SettingsError(
                job.where, f"there is a stage {stage['name']} already: give the Jobs other names"
            )
        if stages:
            stage = {"name": stage["name"], "dependsOn": [stages[-1]["name"]], **stage}
        stages.append(stage)
        notes += [
            f"{job.where}: {field}: it is of a DagJob as a whole; set it there" for field in _of_job(job, [])
        ]
    return _dag_job({"name": name, "namespace": jobs[0].metadata.get("namespace")}, {}, stages)


def _dag_job(metadata: Object, spec: Object, stages: list[Object]) -> Object:
    kept = {key: metadata[key] for key in ("name", "generateName", "namespace") if metadata.get(key)}
    if labels := _own(metadata.get("labels")):
        kept["labels"] = labels
    return {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": kept, "spec": {**spec, "stages": stages}}


def _of_job(job: _Job, notes: list[str]) -> Object:
    """The fields of the DagJob as a whole."""
    spec = job.spec
    unknown = spec.keys() - READ - NONE.keys()
    notes += [f"{job.where}: {field}: DagJobs have no such field" for field in sorted(unknown)]
    given = (
        ("deadlineSeconds", spec.get("activeDeadlineSeconds")),
        ("suspend", spec.get("suspend") or None),
        ("ttlSecondsAfterFinished", spec.get("ttlSecondsAfterFinished")),
    )
    return {field: value for field, value in given if value is not None}


def _stage(job: _Job, notes: list[str]) -> Object:
    spec, where = job.spec, job.where
    notes += [f"{where}: {field}: {why}" for field, why in NONE.items() if spec.get(field)]
    completions, parallelism = _number(spec, "completions", where), _number(spec, "parallelism", where)
    parallelism = 1 if parallelism is None else parallelism
    tasks = parallelism if completions is None else completions
    if not 1 <= tasks <= MAX_TASKS:
        raise SettingsError(where, f"would have {tasks} tasks; a stage has 1 to {MAX_TASKS:,}")
    if completions is None and tasks > 1:
        notes.append(f"{where}: parallelism without completions: {WORK_QUEUE}")
    elif not parallelism:
        notes.append(f"{where}: parallelism 0: {PAUSED}")
    rules = _mapping(spec.get("podFailurePolicy"), f"{where}: podFailurePolicy").get("rules") or []
    if any(rule != IGNORE_DISRUPTION for rule in rules):
        notes.append(f"{where}: podFailurePolicy: DagJobs ignore disruptions, and count all other failures")
    return {
        "name": _stage_name(job),
        "tasks": tasks,
        **({"maxParallel": parallelism} if 0 < parallelism < tasks else {}),
        "retries": _retries(job, tasks, notes),
        "template": _template(job, notes),
    }


def _stage_name(job: _Job) -> str:
    name = str(job.metadata.get("name") or job.metadata.get("generateName") or "main")
    return re.sub(r"[^a-z0-9-]+", "-", name.lower())[:STAGE_NAME_CHARACTERS].strip("-") or "main"


def _retries(job: _Job, tasks: int, notes: list[str]) -> int:
    per_index = _number(job.spec, "backoffLimitPerIndex", job.where)
    limit = _number(job.spec, "backoffLimit", job.where)
    if per_index is None and limit is not None and tasks > 1:
        notes.append(f"{job.where}: backoffLimit {limit}: {BACKOFF}")
    of_job = BACKOFF_LIMIT if limit is None else limit
    return min(of_job if per_index is None else per_index, MAX_RETRIES)


def _template(job: _Job, notes: list[str]) -> Object:
    template = _mapping(job.spec.get("template"), f"{job.where}: template")
    metadata = _mapping(template.get("metadata"), f"{job.where}: template.metadata")
    spec = _mapping(template.get("spec"), f"{job.where}: template.spec")
    if spec.pop("restartPolicy", "Never") == "OnFailure":
        notes.append(f"{job.where}: restartPolicy OnFailure: a task that fails runs again in a new pod")
    if (node := spec.pop("nodeName", None)) is not None:
        notes.append(f"{job.where}: nodeName {node}: it would bypass the scheduler; use nodeSelector")
    if spec.get("schedulerName") == "default-scheduler":
        del spec["schedulerName"]
    for field in ("initContainers", "containers"):
        where = f"{job.where}: template.spec.{field}"
        found = [_mapping(each, where) for each in read_list(spec.get(field) or [], where)]
        if job.spec.get("completionMode") == "Indexed":
            found = [_with_index(each) for each in found]
        if found:
            spec[field] = found
        elif field == "containers":
            raise SettingsError(where, "is missing")
    kept = {"labels": _own(metadata.get("labels")), "annotations": metadata.get("annotations")}
    kept = {key: value for key, value in kept.items() if value}
    return {"metadata": kept, "spec": spec} if kept else {"spec": spec}


def _with_index(container: Object) -> Object:
    """A container that reads the number of its task where it has read that of its Job's pod."""
    variables = list(container.get("env") or ())
    if any(each.get("name") == INDEX_VARIABLE for each in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{TASK_INDEX_LABEL}']"}}
    return {**container, "env": [{"name": INDEX_VARIABLE, "valueFrom": source}, *variables]}


def _own(labels: object) -> Object:
    """Labels without those of the Job's controller."""
    found = labels if isinstance(labels, dict) else {}
    return {key: value for key, value in found.items() if not str(key).startswith(OF_THE_CONTROLLER)}
