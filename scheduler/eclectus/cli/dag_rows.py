"""What `eclectus dag` says of each job and of its stages, as plain values for programs. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import ValidationError, convert

from eclectus.api.dag_job import FAILED, READY, SUCCEEDED, DagJob, PlanStatus, Stage, StageStatus
from eclectus.api.names import STAGE_LABEL
from eclectus.kube.dag_jobs import topological
from eclectus.kube.requests import FieldError

Row = dict[str, Any]
Object = dict[str, Any]
Waits = Mapping[tuple[str, str], Sequence[str]]
"""(uid of the job, stage) -> for each pod without a node what its condition PodScheduled says."""

UNREPORTED = "no scheduler has reported on it"


def rows(jobs: Iterable[Object], pods: Iterable[Object], now: datetime) -> tuple[list[Row], list[str]]:
    """One mapping for each job, those that have not ended first, then by age; and what cannot be read.

    `pods` are those of DAG jobs that have no node.
    """
    waits = _waits(pods)
    found, problems = list[Row](), list[str]()
    for each in jobs:
        try:
            found.append(_row(convert(each, DagJob), waits, now))
        except ValidationError as error:
            meta = each["metadata"]
            problems.append(f"DagJob {meta.get('namespace', '')}/{meta['name']} cannot be read: {error}")
    found.sort(key=lambda row: (row["completionTime"] is not None, row["createdTime"], row["name"]))
    return found, problems


def _waits(pods: Iterable[Object]) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for pod in pods:
        meta = pod["metadata"]
        owner = next((one["uid"] for one in meta.get("ownerReferences") or () if one.get("controller")), "")
        conditions = pod.get("status", {}).get("conditions") or ()
        said: Object = next((one for one in conditions if one["type"] == "PodScheduled"), {})
        message = said.get("message") or UNREPORTED
        found.setdefault((owner, meta.get("labels", {}).get(STAGE_LABEL, "")), []).append(message)
    return found


def _row(job: DagJob, waits: Waits, now: datetime) -> Row:
    meta, status, plan = job.metadata, job.status, job.status.plan or PlanStatus()
    held = PlanStatus() if status.has_finished else plan  # its last plan may be of a moment before its end
    state, message = _state(job)
    return {
        "namespace": meta.namespace,
        "name": meta.name,
        "pool": job.spec.pool,
        "state": state,
        "message": message,
        "tasks": {
            "succeeded": sum(each.succeeded for each in status.stages),
            "all": sum(each.tasks for each in job.spec.stages),
        },
        "createdTime": meta.creation_timestamp,
        "startTime": status.start_time,
        "completionTime": status.completion_time,
        "share": dict(held.share),
        "lent": dict(held.lent),
        "borrowed": dict(held.borrowed),
        "reservedNode": held.reserved_node,
        "lentSeconds": dict(plan.lent_seconds),
        "borrowedSeconds": dict(plan.borrowed_seconds),
        "finishSeconds": held.finish_seconds,
        "deadline": plan.deadline,
        "slips": plan.slips,
        "slipSeconds": plan.slip_seconds,
        "stages": list(_stages(job, waits)),
    }


def _state(job: DagJob) -> tuple[str, str]:
    """In one word, and what a condition says about it."""
    for kind in (SUCCEEDED, FAILED):
        condition = job.status.condition(kind)
        if condition is not None and condition.status == "True":
            return kind, condition.message
    if job.metadata.deletion_timestamp is not None:
        return "Deleting", ""
    if job.spec.suspend:
        return "Suspended", ""
    ready = job.status.condition(READY)
    if ready is None:
        return "New", "the operator has not seen it"
    if ready.status != "True":
        return ready.reason, ready.message
    return ("Running" if any(each.running for each in job.status.stages) else "Waiting"), ""


# -- stages --------------------------------------------------------------------------------------------


def _stages(job: DagJob, waits: Waits) -> Iterator[Row]:
    known = {each.name: each for each in job.status.stages}
    behind = _seconds_behind(job.spec.stages, known)
    for stage in job.spec.stages:
        status = known.get(stage.name) or StageStatus(stage.name, waiting=stage.tasks)
        yield {
            "name": stage.name,
            "dependsOn": list(stage.depends_on),
            "state": _stage_state(stage, status),
            "tasks": stage.tasks,
            "waiting": status.waiting,
            "running": status.running,
            "succeeded": status.succeeded,
            "failed": status.failed,
            "retried": status.retried,
            "estimateSeconds": status.estimate_seconds,
            "estimateSource": status.estimate_source,
            "runSeconds": status.run_seconds,
            "due": _due(job, status, behind[stage.name]),
            "why": list(_why(job, stage, status, known, waits)),
        }


def _stage_state(stage: Stage, status: StageStatus) -> str:
    if status.succeeded >= stage.tasks:
        return SUCCEEDED
    if status.failed:
        return FAILED
    return "Running" if status.running else "Waiting"


def _seconds_behind(stages: Sequence[Stage], known: Mapping[str, StageStatus]) -> dict[str, float | None]:
    """By stage: the longest chain of estimates from its start to the end of the job; None: one is unknown."""
    found: dict[str, float | None] = {stage.name: None for stage in stages}
    try:
        order = topological([(stage.name, stage.depends_on) for stage in stages])
    except FieldError:
        return found  # the operator refuses such a job, and its condition Ready says why
    for at in reversed(order):
        name = stages[at].name
        own = known[name].estimate_seconds if name in known else None
        after = [found[each.name] for each in stages if name in each.depends_on]
        if own is not None and None not in after:
            found[name] = own + max((each for each in after if each is not None), default=0.0)
    return found


def _due(job: DagJob, status: StageStatus, seconds_behind: float | None) -> str | None:
    """When the next task must start for the deadline; None if nothing has to start or it is not known."""
    deadline = job.status.plan.deadline if job.status.plan is not None else None
    if deadline is None or seconds_behind is None or not status.waiting or job.status.has_finished:
        return None
    return (datetime.fromisoformat(deadline) - timedelta(seconds=seconds_behind)).isoformat()


def _why(
    job: DagJob, stage: Stage, status: StageStatus, known: Mapping[str, StageStatus], waits: Waits
) -> Iterator[str]:
    """Why tasks of it do not run, the most frequent reason first."""
    if not status.waiting or job.status.has_finished or job.spec.suspend:
        return
    open_parents = [
        f"{name} ({known[name].succeeded if name in known else 0} of {parent.tasks} tasks have succeeded)"
        for name in stage.depends_on
        if (parent := job.spec.find_stage(name)) and not _is_done(parent, known)
    ]
    if open_parents:
        yield f"waits for {', '.join(open_parents)}"
        return
    messages = waits.get((job.metadata.uid, stage.name), ())
    for message, count in Counter(messages).most_common():
        yield f"{_count(count, 'pod')}: {' '.join(message.split())}"
    without = status.waiting - len(messages)
    if without > 0:
        yield f"{_count(without, 'task')} without a pod yet: the operator creates a bounded number ahead"


def _is_done(stage: Stage, known: Mapping[str, StageStatus]) -> bool:
    return stage.name in known and known[stage.name].succeeded >= stage.tasks


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
