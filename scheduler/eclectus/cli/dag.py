"""`eclectus dag`: DAG jobs with their stages, what is planned for them, and why a stage waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import click
from msgspec import Struct, ValidationError, convert, to_builtins

from eclectus.api.dag_job import (
    FAILED,
    POOL_REFUSED,
    READY,
    SUCCEEDED,
    DagJob,
    PlanStatus,
    Stage,
    StageStatus,
)
from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOB_LABEL, DAG_JOBS, STAGE_LABEL
from eclectus.cli import cluster_commands
from eclectus.cli.output import age, aligned, count, structured
from eclectus.cli.verbs import WithVerbs
from eclectus.kube.requests import FieldError, thousandths
from eclectus.kube.stage_order import topological
from eclectus.kubeclient.kubeconfigs import default_namespace
from eclectus.maths.longest_paths import longest_paths
from eclectus.model.printed import ABSENT, nearest, shortened, span, spelling

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ApiClient

Output = Literal["table", "wide", "json", "yaml"]
Object = dict[str, Any]

NO_PLAN = "no plans: no scheduler of these jobs has `order: carbyne`, or it has not written them yet"
WITHOUT_NODE = {"labelSelector": DAG_JOB_LABEL, "fieldSelector": "spec.nodeName=,status.phase=Pending"}


class _Dag(WithVerbs):
    verbs: ClassVar = {
        "suspend": "dag_verbs:suspend",
        "resume": "dag_verbs:resume",
        "retry": "dag_verbs:retry",
        "cancel": "dag_verbs:cancel",
        "logs": "dag_verbs:logs",
        "from-job": "dag_from_job:from_job",
    }


@click.command(cls=_Dag)
@click.argument("name", default="", shell_complete=_Dag.complete)
@click.option("-n", "--namespace", help="Namespace of the jobs. By default that of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of all namespaces.")
@cluster_commands.output_option(
    Output, "Output format; `wide` is a table with more columns and whole messages."
)
@click.option("-w", "--watch", is_flag=True, help="Keep running and print again after each change.")
@cluster_commands.kubeconfig_options
def dag(
    *,
    name: str,
    namespace: str | None,
    all_namespaces: bool,
    output: Output,
    watch: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """List DAG jobs and what is planned for them; of the job NAME also its stages and why they wait.

    SHARE is what a job is entitled to, LENT what it leaves of that to other jobs now, BORROWED what it holds
    beyond it. FINISH is how long the rest of the job would take inside its share, DEADLINE when it would end:
    what is lent must not delay it beyond. With `-o wide`, MOVED is how often and by how much that was moved
    to a later time, LENT-SECONDS and BORROWED-SECONDS are what was lent and borrowed in all: cores or GiB
    times seconds, RESERVED is the node that is kept free for a large task. A scheduler whose order plans DAG
    jobs writes these; `-` without.

    Of a stage, DUE is when its next task must start for the deadline, by its estimate and those of the stages
    behind it alone; inside its share a job may have to start it earlier.

    \b
    Permissions of the caller:
      list dagjobs.eclectus.dev  in the namespace, or with -A in the cluster
      list pods                  the same; without it, why pods wait is not shown
    """
    from eclectus.kubeclient import credentials
    from eclectus.kubeclient.client import ObjectApi, list_objects

    if all_namespaces and (namespace or name):
        raise click.UsageError("give --all-namespaces alone: without NAME and without --namespace")
    access = credentials.load(kubeconfig, context)
    where = "" if all_namespaces else namespace or default_namespace(kubeconfig, context)

    async def answer(client: ApiClient) -> cluster_commands.Answer:
        api, place = ObjectApi(client), f"namespaces/{where}/" if where else ""
        listing = cluster_commands.defined(
            list_objects(api, f"/apis/{API_VERSION}/{place}{DAG_JOBS}"), DAG_JOB
        )
        jobs = await cluster_commands.awaited(listing, "listing the DagJobs")
        of_pods = list_objects(api, f"/api/v1/{place}pods", WITHOUT_NODE)
        pods = await cluster_commands.awaited(
            cluster_commands.permitted(of_pods, "why pods wait is not shown: "), "listing the pods"
        )
        found, problems = rows(jobs, pods or (), datetime.now(UTC))
        return formatted(found, where, name, output), problems

    cluster_commands.print_changes(access, answer, watch)


def formatted(found: Sequence[Row], namespace: str, name: str, output: Output) -> str:
    """The text to print."""
    shown = [row for row in found if name in ("", row["name"])]
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    if name and not shown:
        known = [row["name"] for row in found]
        verb = spelling(name, list(_Dag.verbs))
        hint = verb or (nearest(name, known) if known else "there is none")
        raise click.UsageError(f"there is no DagJob {name!r} {where}; {hint}")
    if output in ("json", "yaml"):
        return structured(shown, output)
    if not shown:
        return f"there is no DagJob {where}"
    now, is_wide = datetime.now(UTC), output == "wide"
    lines = list(jobs_table(shown, now, all_namespaces=not namespace, wide=is_wide))
    if not any(row["share"] or row["deadline"] or row["completionTime"] for row in shown):
        lines.append(NO_PLAN)
    if name:
        lines += ["", *stages_table(shown[0], now, wide=is_wide)]
    return "\n".join(lines)


_GI = 2**30
_BYTES = ("memory", "ephemeral-storage")


def jobs_table(found: Sequence[Row], now: datetime, *, all_namespaces: bool, wide: bool) -> Iterator[str]:
    """A line for each job, and below the table what has gone wrong with any."""
    heads = ["NAME", "STATE", "TASKS", "SHARE", "LENT", "BORROWED", "FINISH", "DEADLINE", "AGE"]
    if all_namespaces:
        heads.insert(0, "NAMESPACE")
    if wide:
        heads += ["POOL", "MOVED", "LENT-SECONDS", "BORROWED-SECONDS", "RESERVED"]
    yield from aligned([heads, *(_cells(row, now, all_namespaces, wide) for row in found)])
    for row in found:
        if row["message"]:
            yield f"{row['namespace']}/{row['name']}: {row['message']}"


def stages_table(row: Row, now: datetime, *, wide: bool) -> Iterator[str]:
    """A line for each stage of a job; a further reason why it waits has a line of its own."""
    heads = ["STAGE", "AFTER", "STATE", "TASKS", "RUNNING", "ESTIMATE", "DUE", "WHY"]
    if wide:
        heads[5:6] = ["WAITING", "FAILED", "RETRIED", "ESTIMATE", "FROM", "TOOK"]
    lines = [heads]
    for stage in row["stages"]:
        first, *others = stage["why"] or [ABSENT]
        times = (stage["estimateSeconds"], stage["runSeconds"])
        estimate, took = (ABSENT if each is None else span(each) for each in times)
        counts = [str(stage[each]) for each in ("waiting", "failed", "retried")]
        cells = [
            stage["name"],
            ",".join(stage["dependsOn"]) or ABSENT,
            stage["state"],
            f"{stage['succeeded']}/{stage['tasks']}",
            str(stage["running"]),
            *([*counts, estimate, stage["estimateSource"], took] if wide else [estimate]),
            when(stage["due"], now),
        ]
        lines.append([*cells, shortened(first, wide=wide)])
        lines += [[*[""] * len(cells), shortened(other, wide=wide)] for other in others]
    return aligned(lines)


def _cells(row: Row, now: datetime, all_namespaces: bool, wide: bool) -> list[str]:
    tasks, finish, moved = row["tasks"], row["finishSeconds"], row["slips"]
    cells = [
        *([row["namespace"]] if all_namespaces else []),
        row["name"],
        row["state"],
        f"{tasks['succeeded']}/{tasks['all']}",
        *(amounts_text(row[each]) for each in ("share", "lent", "borrowed")),
        ABSENT if finish is None else span(finish),
        when(row["deadline"], now),
        age(row["createdTime"], now),
    ]
    if wide:
        cells += [row["pool"] or ABSENT, f"{moved} times, {span(row['slipSeconds'])}" if moved else ABSENT]
        cells += [amounts_text(row[each]) for each in ("lentSeconds", "borrowedSeconds")]
        cells.append(row["reservedNode"] or ABSENT)
    return cells


def amounts_text(resources: Mapping[str, str | float]) -> str:
    """Quantities, or numbers of whole units, for people: cores, GiB, or a number."""
    words = []
    for name, amount in resources.items():
        try:
            value = thousandths(amount) / 1000 if isinstance(amount, str) else amount
        except ValueError:
            words.append(f"{name}={amount}")
        else:
            words.append(f"{name}={value / _GI:.4g}Gi" if name in _BYTES else f"{name}={value:.4g}")
    return " ".join(words) or ABSENT


def when(moment: str | None, now: datetime) -> str:
    """`in 45s` or `12m ago`."""
    if moment is None:
        return ABSENT
    seconds = (datetime.fromisoformat(moment) - now).total_seconds()
    return f"in {span(seconds)}" if seconds >= 0 else f"{span(-seconds)} ago"


Row = dict[str, Any]
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
            "all": _tasks_of(job),
        },
        "createdTime": meta.creation_timestamp,
        "startTime": status.start_time,
        "completionTime": status.completion_time,
        **_fields(held, "share", "lent", "borrowed", "reservedNode"),
        **_fields(plan, "lentSeconds", "borrowedSeconds"),
        "finishSeconds": held.finish_seconds,
        **_fields(plan, "deadline", "slips", "slipSeconds"),
        "stages": list(_stages(job, waits)),
    }


def _fields(of: Struct, *names: str) -> Row:
    """Some fields of an object, as it has them in JSON."""
    fields = to_builtins(of)
    return {name: fields[name] for name in names}


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
    refused = job.status.condition(POOL_REFUSED)
    message = "" if refused is None else refused.message
    return ("Running" if any(each.running for each in job.status.stages) else "Waiting"), message


# -- stages --------------------------------------------------------------------------------------------


def _stages(job: DagJob, waits: Waits) -> Iterator[Row]:
    known = {each.name: each for each in job.status.stages}
    behind = _seconds_behind(job.spec.stages, known)
    for stage in job.spec.stages:
        status = known.get(stage.name) or StageStatus(stage.name, waiting=stage.tasks)
        state = FAILED if status.failed else "Running" if status.running else "Waiting"
        yield {
            "name": stage.name,
            "dependsOn": list(stage.depends_on),
            "state": SUCCEEDED if status.succeeded >= stage.tasks else state,
            "tasks": stage.tasks,
            **_fields(status, "waiting", "running", "succeeded", "failed", "retried"),
            **_fields(status, "estimateSeconds", "estimateSource", "runSeconds"),
            "due": _due(job, status, behind.get(stage.name)),
            "why": list(_why(job, stage, status, known, waits)),
        }


def _seconds_behind(stages: Sequence[Stage], known: Mapping[str, StageStatus]) -> dict[str, float | None]:
    """By stage: the longest chain of estimates from its start to the end of the job; None: one is unknown."""
    try:
        order = topological([(stage.name, stage.depends_on) for stage in stages])
    except FieldError:
        return {}  # the operator refuses such a job, and its condition Ready says why
    ordered = [(stages[at].name, stages[at].depends_on) for at in order]
    return longest_paths(ordered, {name: each.estimate_seconds for name, each in known.items()})


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
        if (parent := job.spec.find_stage(name))
        and (name not in known or known[name].succeeded < parent.tasks)
    ]
    if open_parents:
        yield f"waits for {', '.join(open_parents)}"
        return
    messages = waits.get((job.metadata.uid, stage.name), ())
    for message, number in Counter(messages).most_common():
        yield f"{count(number, 'pod')}: {' '.join(message.split())}"
    without = status.waiting - len(messages)
    if without > 0:
        yield f"{count(without, 'task')} without a pod yet: {_most_pods(job, stage)}"


def _most_pods(job: DagJob, stage: Stage) -> str:
    """Why the operator does not create the pods of all tasks at once."""
    of_job, of_stage, tasks = job.spec.max_parallel, stage.max_parallel, _tasks_of(job)
    if of_stage is not None and of_stage < stage.tasks:
        return f"maxParallel of the stage is {of_stage}"
    if of_job is not None and of_job < tasks:
        return f"maxParallel of the job is {of_job}"
    return "the operator creates a bounded number ahead"


def _tasks_of(job: DagJob) -> int:
    return sum(each.tasks for each in job.spec.stages)
