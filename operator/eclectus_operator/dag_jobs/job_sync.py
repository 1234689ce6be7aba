"""One sync of one DagJob: read it and its pods, write what has come of it, delete and create pods.

Nothing is decided from memory alone. Wherever a crash falls, the next sync finds the pods that exist, and
what is recorded of those that do not: names are deterministic, a failure is counted by its attempt, and a pod
is deleted for being surplus only when the status records its success.

What is wrong with a job its definition cannot know: its graph, its templates, the cluster's nodes. The
templates are checked by the API server itself: a pod of each stage is created in a dry run, once, so that a
mistake in the last stage is known when the job arrives and not when that stage starts. A job whose spec can
never run fails. One whose pods fit no node does not: an autoscaler may add a larger one. Nor does one whose
pods cannot start on their nodes: the kubelets try again for ever, and no retry of a task would help.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import structs

from eclectus.api.dag_job import INVALID_SPEC, DagJob, DagJobStatus, Phase, Stage
from eclectus.api.names import API_VERSION, DAG_JOB_LABEL, DAG_JOBS
from eclectus.kube import objects as kube
from eclectus.kubeclient import api_errors
from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError
from eclectus.kubeclient.client import ObjectApi, list_pages
from eclectus_operator import convert, room
from eclectus_operator.convert import ShapeError
from eclectus_operator.dag_jobs import job_status, outputs, task_pods
from eclectus_operator.dag_jobs.estimates import History, StageGraph, stage_graph
from eclectus_operator.dag_jobs.job_copies import JobCopies
from eclectus_operator.dag_jobs.job_pools import JobPools, asked_pools
from eclectus_operator.dag_jobs.job_status import Observed, Problem, StatusUpdate, status_update
from eclectus_operator.dag_jobs.late_pods import LatePods, SlowNodes, note_slow, overdue
from eclectus_operator.dag_jobs.node_results import inputs_hint
from eclectus_operator.dag_jobs.parallel import Rooms
from eclectus_operator.dag_jobs.quotas import Quotas
from eclectus_operator.dag_jobs.task_pods import NewPod, TaskPod, factors_text
from eclectus_operator.dag_jobs.tasks import MOST_WRITES, Tasks, assess_job, next_steps, second_successes
from eclectus_operator.observed import PULL_REASONS, Pod
from eclectus_operator.operator_context import NotLeadingError, OperatorContext, Sync
from eclectus_operator.races import Pauses
from eclectus_operator.room import Room

JOB_SECONDS = 5.0  # a sync of a job that takes longer goes on after others
MOST_CHECKS = 50  # templates checked in one sync of a job, likewise
WRITE_SECONDS = 15.0  # between two writes of counts alone
RETRY_SECONDS = 2.0  # after a failed sync of a job, doubled with each
BACKOFF_SECONDS, MOST_BACKOFF_SECONDS = 10.0, 300.0  # after a refused pod of a stage, doubled with each
_SHOWN = 5  # failures in one event
_log = logging.getLogger(__name__)

JobKey = tuple[str, str]
"""Namespace and name."""


@dataclass
class Refusal:
    """The API server refuses the pods of a stage; the next try is at `until`, seconds since the epoch."""

    problem: Problem
    until: float
    seconds: float
    since: float


@dataclass
class JobMemory:
    """What an operator remembers of a job. Losing it costs a few requests."""

    uid: str
    status: DagJobStatus | None = None  # as computed last, which may not be written yet
    written_at: float = float("-inf")
    is_valid: bool = False  # its graph was checked
    checked: int = 0  # of how many stages the API server has accepted a pod in a dry run
    refusals: dict[str, Refusal] = field(default_factory=dict)  # by stage
    sizes: Sizes = field(default_factory=dict)
    seen_at: dict[str, float] = field(default_factory=dict)  # uid -> when its pod was first seen to end or go
    pauses: Pauses = field(default_factory=Pauses)
    slow_nodes: SlowNodes = field(default_factory=dict)
    forced: set[str] = field(default_factory=set)  # uids of pods that were deleted without their nodes

    def by_our_clock(self, pods: Iterable[TaskPod], now: float) -> list[TaskPod]:
        """The pods with times that `now` can be compared with: clocks of nodes and servers may be others.

        By a clock that is ahead a task would wait for long, and by one that is behind a pod would be replaced
        that still runs.
        """
        found = list(pods)
        leaving = (pod.uid for pod in found if pod.ended is not None or pod.deletion is not None)
        self.seen_at = {uid: self.seen_at.get(uid, now) for uid in leaving}
        return [
            _by_our_clock(pod, self.seen_at[pod.uid]) if pod.uid in self.seen_at else pod for pod in found
        ]

    def refuse(self, stage: str, problem: Problem, now: float) -> None:
        """Note that a pod of the stage was refused, and when the next try is due."""
        before = self.refusals.get(stage)
        seconds = min(before.seconds * 2.0, MOST_BACKOFF_SECONDS) if before else BACKOFF_SECONDS
        since = before.since if before else now
        self.refusals[stage] = Refusal(problem, now + seconds, seconds, since)


def _by_our_clock(pod: TaskPod, seen_at: float) -> TaskPod:
    ended = None if pod.ended is None else min(pod.ended, seen_at)
    if pod.deletion is None:
        return structs.replace(pod, ended=ended)
    deletion = seen_at + pod.grace_seconds
    until = None if pod.stage_until is None else pod.stage_until + deletion - pod.deletion
    return structs.replace(pod, ended=ended, deletion=deletion, stage_until=until)


@dataclass
class KnownJob:
    """A job of the cluster. It is to be synced at `due`, and after an event, but not before `least`."""

    due: float = float("inf")
    least: float = 0.0
    retry_seconds: float = RETRY_SECONDS
    phase: Phase | None = None  # as last read; None: it was never read
    memory: JobMemory | None = None


async def sync_job(
    context: OperatorContext,
    key: JobKey,
    known: KnownJob,
    history: History,
    quotas: Quotas,
    *,
    pools: JobPools,
) -> JobSync | None:
    """Sync a job now; None if it is gone or being deleted. Raises ApiError, ShapeError."""
    try:
        job = convert.read_authored(await context.api.send("GET", job_path(key)), DagJob)
    except MissingError:
        return None
    if job.metadata.deletion_timestamp:
        return None  # Kubernetes deletes its pods
    job = structs.replace(job, spec=job.spec.with_retry)
    if known.memory is None or known.memory.uid != job.metadata.uid:
        known.memory = JobMemory(job.metadata.uid)
    sync = JobSync(context, job, known.memory, quotas, pools)
    await sync.run(history)
    return sync


@dataclass
class JobSync(Sync):
    """One sync of one job."""

    job: DagJob
    memory: JobMemory
    quotas: Quotas
    pools: JobPools
    pods: list[TaskPod] = field(default_factory=list)  # as listed in this sync

    def __post_init__(self) -> None:
        self._until = self.now + JOB_SECONDS

    async def run(self, history: History) -> None:
        """Carry out what is to be done. Raises ApiError, ShapeError."""
        if self.job.is_retried:
            await self._run_again()
        self.pods = self.memory.by_our_clock(await self._list_pods(), self.now)
        timed = [pod for pod in self.pods if pod.stage_until is not None]
        if timed:
            late = LatePods(self.context, self.job, self.memory.forced)
            await late.force(timed)
            self.wake_by(late.wake_at)
        if self.job.status.has_finished:
            self.quotas.forget(key_of(self.job))
            history.note(self.job)
            await self._clean_up()
            return
        graph = stage_graph(self.job, history, is_valid=self.memory.is_valid)
        self.memory.is_valid = not graph.problems
        tasks: dict[str, Tasks] = {}
        problem = await self._find_defect(graph)
        if problem is None and self.memory.checked >= len(self.job.spec.stages):
            known = self.memory.status or self.job.status
            tasks = assess_job(
                self.job, graph.order, known.stages, self.pods, self.now, may_copy=self._may_copy
            )
            problem = await self._find_obstacle(tasks)
        # Most jobs ask for no Pool.
        pool_refusal = await self.pools.refusal(self.job) if any(asked_pools(self.job)) else ""
        seen = Observed(self.now, self.memory.checked, problem, tasks, graph.estimates, pool_refusal)
        update = await self._write_status(seen)
        if update.status.has_finished:
            await self._race(tasks)
            await self._clean_up()
            return
        if not tasks:
            self.wake_by(self.now)  # there are more templates to check
            return
        now, settings = self.now, self.context.settings
        blocked = {stage for stage, refusal in self.memory.refusals.items() if now < refusal.until}
        first = self.quotas.first_pods(self.job, tasks)
        steps = next_steps(
            self.job, tasks, settings.dag_waiting, settings.dag_kept, blocked, first_pods=first
        )
        await self._delete_pods(steps.delete)
        hints = self._hints(graph, tasks, {new.stage.name for new in steps.create})
        if not self.job.spec.suspend:
            await self._create_pods(seen, steps.create, hints)
        await self._race(tasks, hints, steps.create)
        self._plan_next(update, tasks)

    def _hints(
        self, graph: StageGraph, tasks: Mapping[str, Tasks], created: Set[str]
    ) -> dict[str, dict[str, str]]:
        """Stage -> the annotations of its pods. `created`: stages of which pods are made now."""
        found = graph.pod_hints(tasks.values())
        for name in found:
            if name in created or tasks[name].copies:  # else nobody reads where the results lie
                stage = tasks[name].stage
                found[name] |= inputs_hint(self.job, stage, tasks)
                if stage.reads_outputs_of:
                    found[name] |= outputs.annotations(self.job, stage)
        return found

    async def _race(
        self,
        tasks: Mapping[str, Tasks],
        hints: Mapping[str, Mapping[str, str]] | None = None,
        created: Iterable[NewPod] = (),
    ) -> None:
        """End the pods that have lost to their copies, or before them; make the copies that are asked for.

        `hints`: annotations by stage; None: the job has ended, so no copy is made. `created`: in this sync.
        """
        if not any(each.copies for each in tasks.values()):
            return
        copies = JobCopies(self.context, self.job, self.memory.pauses, may_copy=self._may_copy)
        await copies.settle(tasks)
        if hints is not None:
            rooms = Rooms.of(self.job, tasks)
            for new in created:
                rooms.take(new.stage.name)
            await copies.start(tasks, hints, rooms)
        self.wake_by(copies.wake_at)

    @property
    def _may_copy(self) -> bool:
        """Whether the admin lets the operator make copies in the job's namespace."""
        return self.job.metadata.namespace in self.context.settings.copy_namespaces

    @property
    def pods_path(self) -> str:
        """Path of the pods of the job's namespace."""
        return f"/api/v1/namespaces/{self.job.metadata.namespace}/pods"

    def _is_spent(self, done: int) -> bool:
        """Whether the sync has taken so long that other jobs come first; never before one request is done."""
        return done > 0 and self.now >= self._until

    async def _list_pods(self) -> list[TaskPod]:
        """The pods of the job's tasks, read page by page."""
        query = {"labelSelector": f"{DAG_JOB_LABEL}={self.job.metadata.name}"}
        pages = list_pages(self.context.api, self.pods_path, query)
        handed_on = self.job.spec.with_output
        read = [task_pods.read(each, self.job, handed_on) async for page in pages for each in page]
        return [pod for pod in read if pod is not None]

    async def _find_defect(self, graph: StageGraph) -> Problem | None:
        """Why the job can never run; None if it can."""
        job, memory = self.job, self.memory
        if graph.problems:
            return Problem(INVALID_SPEC, "; ".join(graph.problems), is_final=True)
        if job.status.start_time:
            memory.checked = len(job.spec.stages)
        memory.checked = max(memory.checked, job.status.checked_stages or 0)
        to_check = job.spec.stages[memory.checked :][:MOST_CHECKS]
        accepted = set(map(_dry_run_of, job.spec.stages[: memory.checked])) if to_check else set()
        for at, stage in enumerate(to_check):
            if self._is_spent(at):
                break
            if (dry_run := _dry_run_of(stage)) not in accepted:
                wrong = await template_problem(self.context.api, self.pods_path, job, stage)
                if wrong:
                    return Problem("InvalidTemplate", wrong, is_final=True)
                accepted.add(dry_run)
            memory.checked += 1
        return None

    async def _find_obstacle(self, tasks: Mapping[str, Tasks]) -> Problem | None:
        """Why the job cannot run now, or has waited for too long; None if it can run."""
        refused = {name: (each.since, each.problem.message) for name, each in self.memory.refusals.items()}
        if refused or any(pod.is_late(self.now) for pod in self.pods if pod.stage_until):
            final = overdue(self.job, refused, tasks.values(), self.now)
            if final is not None:
                return final
        if self.memory.refusals:
            return next(iter(self.memory.refusals.values())).problem
        largest = await self.context.pool.capacities()
        too_large = _too_large(self.job, tasks.values(), largest, self.memory.sizes) if largest else ()
        found = "; ".join(too_large)
        first_attempts = [pod for pod in self.pods if not pod.copy_of]  # a copy is never a trouble of its job
        return _start_problem(first_attempts) or (Problem("FitsNoNode", found) if found else None)

    async def _write_status(self, seen: Observed) -> StatusUpdate:
        """Write the status if it has changed, and the change is urgent or due; then events of conditions."""
        old, update = self.job.status, status_update(self.job, seen)
        self.memory.status = update.status
        if update.status == old:
            return update
        due = self.memory.written_at + WRITE_SECONDS
        if self.now < due and not update.is_urgent:
            self.wake_by(due)
            return update
        await self._write(update)
        if update.status.has_finished:
            self.context.metrics.job_ended(job_status.end_reason(update.status))
        return update

    async def _write(self, update: StatusUpdate) -> None:
        """Write a status, then events of its conditions."""
        old, path = self.job.status, f"{job_path(key_of(self.job))}/status"
        answer = await self.context.api.send("PATCH", path, update.patch)
        meta = structs.replace(self.job.metadata, resource_version=answer["metadata"]["resourceVersion"])
        self.job = structs.replace(self.job, metadata=meta, status=update.status)
        self.memory.status, self.memory.written_at = None, self.now
        await self._report_conditions(old)
        has_outputs = any(each.outputs for each in self.job.status.stages)
        if has_outputs and (missing := outputs.new_problems(old, self.job.status)):
            await self._record("OutputRefused", f"not handed on: {_listed(missing)}")

    async def _run_again(self) -> None:
        """Take up the retry of a job that has failed; what was remembered of its last run counts no more."""
        await self._write(job_status.retried(self.job, self.now))
        self.memory.refusals.clear()
        self.memory.slow_nodes.clear()

    async def _report_conditions(self, old: DagJobStatus) -> None:
        """Write events of the conditions that have changed, but for those of a start without a problem."""
        before, said = {each.type: (each.status, each.reason) for each in old.conditions}, set[str]()
        for each in self.job.status.conditions:
            is_new = before.get(each.type) != (each.status, each.reason) and each.reason not in said
            if is_new and (before or each.reason != "Accepted") and each.reason != "Finished":
                said.add(each.reason)
                is_bad = each.type in ("Failed", "PoolRefused") and each.status == "True"
                is_good = not is_bad and (each.type != "Ready" or each.status == "True")
                await self._record(each.reason, each.message, is_warning=not is_good)

    async def _record(self, reason: str, note: str, *, is_warning: bool = True) -> None:
        await self.context.record(self.job.metadata, "Reconcile", reason, note, is_warning=is_warning)

    async def _delete_pods(self, pods: list[TaskPod]) -> None:
        """Delete pods, each as it was read: it may have succeeded since. Of many some are left for later."""
        replaced, goes_on = list[str](), not (self.job.status.has_finished or self.job.spec.suspend)
        for at, pod in enumerate(pods):
            if at == MOST_WRITES or self._is_spent(at):
                self.wake_by(self.now)
                break
            try:
                await self.context.delete(f"{self.pods_path}/{pod.name}", pod.uid, pod.version)
                _log.info("deleted %s/%s", self.job.metadata.namespace, pod.name)
            except ConflictError:  # it has changed, or another pod has its name: the next sync reads it again
                self.wake_by(self.now)
                continue
            if goes_on and pod.stage_until and pod.has_not_started(self.now):
                note_slow(self.memory.slow_nodes, pod)
                replaced.append(f"{pod.stage}[{pod.index}]: {pod.late}")
        if replaced:
            late = LatePods(self.context, self.job, self.memory.forced)
            await late.report("TasksReplaced", "run again, rather on other nodes: ", replaced)

    async def _create_pods(
        self, seen: Observed, new: list[NewPod], hints: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Create pods; a stage whose pods are refused waits. `hints`: annotations by stage."""
        now, refusals = self.now, self.memory.refusals
        was_refused = bool(refusals)
        for stage in [name for name in refusals if not seen.tasks[name].startable]:
            del refusals[stage]  # it needs no more pods, such as after a request whose answer was lost
        created: list[NewPod] = []
        refused: set[str] = set()
        for at, each in enumerate(new):
            stage = each.stage.name
            if self._is_spent(at):
                self.wake_by(self.now)
                break
            if stage in refused:
                continue
            slow = self.memory.slow_nodes.get((stage, each.index), frozenset())
            problem = await self._create(replace(each, slow_nodes=slow), hints[stage])
            if problem is None:
                created.append(each)
                refusals.pop(stage, None)
            else:
                refused.add(stage)
                self.memory.refuse(stage, problem, now)
        await self._report_retries(created)
        if refused:
            await self._write_status(replace(seen, problem=refusals[min(refused)].problem))
        if len(new) == MOST_WRITES or (was_refused and not refusals):
            self.wake_by(now)  # there may be more to create, or the condition Ready to change

    async def _create(self, new: NewPod, hints: Mapping[str, str]) -> Problem | None:
        """Create a pod; None if it exists then."""
        try:
            await self.context.api.send("POST", self.pods_path, new.body(hints))
        except ConflictError:
            return await self._adopt(new)
        except NOT_OF_THE_POD:
            raise
        except ApiError as error:
            return refusal(new, error)
        self.context.metrics.pod_created(new.attempt)
        _log.info("created %s/%s", self.job.metadata.namespace, new.name)
        return None

    async def _adopt(self, new: NewPod) -> Problem | None:
        """The pod exists: an earlier request has created it, or its name is taken."""
        try:
            found = await self.context.api.send("GET", f"{self.pods_path}/{new.name}")
        except MissingError:
            self.wake_by(self.now)  # it was there a moment ago
            return None
        if task_pods.is_owned(convert.read_authored(found, Pod), self.job):
            return None
        message = f"stage {new.stage.name}: a pod that is not the job's is named {new.name}"
        return Problem("NameTaken", message)

    async def _report_retries(self, created: list[NewPod]) -> None:
        """Write an event for each kind of reason for which tasks run again."""
        killed, failed, refused = list[str](), list[str](), list[str]()
        for each in created:
            task, before = f"{each.stage.name}[{each.index}]", each.before
            if before is not None and before.is_refused:
                refused.append(f"{task}: {before.node}: {before.why}")
            elif before is not None and before.has_failed and before.killed:
                killed.append(f"{task}: {task_pods.factors_text(each.memory_factors)}")
            elif before is not None and before.has_failed:
                failed.append(f"{task}: {before.why}")
        for reason, head, tasks in (
            ("MemoryRaised", "run again with more memory, by these factors of the template's: ", killed),
            ("TasksRetried", "run again after a failure: ", failed),
            ("TasksRefused", "tried again after their node has refused them: ", refused),
        ):
            if tasks:
                await self._record(reason, head + _listed(tasks))

    async def _clean_up(self) -> None:
        """Delete what still runs of a job that has ended; delete the job when it has expired."""
        alive = [pod for pod in self.pods if not pod.has_ended and pod.deletion is None]
        await self._delete_pods([*alive, *second_successes(self.pods)])
        expiry = job_status.expiry(self.job)
        if expiry is not None and self.now < expiry:
            self.wake_by(expiry)
        elif expiry is not None:
            path, uid = job_path(key_of(self.job)), self.job.metadata.uid
            await self.context.delete(path, uid, propagationPolicy="Background")  # with its pods

    def _plan_next(self, update: StatusUpdate, tasks: Mapping[str, Tasks]) -> None:
        """When the job is to be synced next, whatever events arrive."""
        if update.deadline is not None:
            self.wake_by(update.deadline)
        if self.job.spec.suspend:
            return
        for each in tasks.values():
            for moment in each.not_before.values():
                self.wake_by(moment)
        most = self.job.spec.pod_deadlines.creating_seconds
        for refused in self.memory.refusals.values():
            self.wake_by(refused.until)
            if most is not None:
                self.wake_by(refused.since + most)


def _listed(tasks: list[str]) -> str:
    """The first of them, for an event."""
    more = f"; and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else ""
    return "; ".join(tasks[:_SHOWN]) + more


def key_of(job: DagJob) -> JobKey:
    """The job's namespace and name."""
    return job.metadata.namespace, job.metadata.name


def job_path(key: JobKey) -> str:
    """The path of a DagJob."""
    namespace, name = key
    return f"/apis/{API_VERSION}/namespaces/{namespace}/{DAG_JOBS}/{name}"


# -- what is wrong with a job -----------------------------------------------------------------------

FORBIDDEN, INVALID = 403, 422
# Any other request would fail as well.
NOT_OF_THE_POD = (NotLeadingError, api_errors.NotDoneError, api_errors.UnauthenticatedError)
# As the API server's validation names a field. A policy that denies a request answers 422 too by default, and
# may name one in its own words; but what it denies now it may allow later.
_FIELD = re.compile(r"\b(spec|metadata)\.[A-Za-z]")
_DENIED = re.compile(r"\bdenied\b")

Sizes = dict[tuple[str, str], Room]
"""What the pods of a stage request, with these memory factors."""


def names_field(error: ApiError) -> bool:
    """Whether the API server says what is wrong with the pod itself."""
    text = error.message
    return error.status == INVALID and bool(_FIELD.search(text)) and not _DENIED.search(text)


def _dry_run_of(stage: Stage) -> tuple[bytes, tuple[str, ...]]:
    """What the API server is asked about a stage: one answer is enough for all stages with the same."""
    return msgspec.json.encode(stage.template, order="deterministic"), stage.reads_outputs_of


async def template_problem(api: ObjectApi, path: str, job: DagJob, stage: Stage) -> str:
    """What the API server says against the pods of a stage, empty if nothing; `path`: of the pods.

    Only what is wrong with the pod itself: a quota, for example, may allow it when the stage starts.
    Raises ApiError where the API server did not look at the pod.
    """
    try:
        await api.send("POST", path, NewPod(job, stage).body({}), {"dryRun": "All"})
    except NOT_OF_THE_POD:
        raise
    except ApiError as error:
        return f"stages[{stage.name}].template: {error.message}" if names_field(error) else ""
    return ""


def refusal(new: NewPod, error: ApiError) -> Problem:
    """Why a pod was not created, as a problem of its stage."""
    if error.status == FORBIDDEN and "exceeded quota" in error.message:
        reason = "QuotaExceeded"
    elif error.status == FORBIDDEN or (error.status == INVALID and not names_field(error)):
        reason = "PodForbidden"
    else:
        reason = "FailedCreate" if error.status == 0 or error.status >= 500 else "PodInvalid"
    return Problem(reason, f"stage {new.stage.name}: {error.message}")


def _start_problem(pods: Iterable[TaskPod]) -> Problem | None:
    """What keeps pods from starting, of the first stage by name with such a pod."""
    stuck = {(pod.stage, pod.name): pod.stuck for pod in pods if pod.stuck is not None}
    if not stuck:
        return None
    stage, name = min(stuck)
    first, more = stuck[stage, name], sum(other == stage for other, _ in stuck) - 1
    reason = "ImageNotPulled" if first.reason in PULL_REASONS else "ContainerNotCreated"
    cause = f"{first.reason}: {first.message}" if first.message else first.reason
    others = f", nor do {more} other pods" if more else ""
    where = f"stage {stage}: container {first.container} of pod {name}"
    return Problem(reason, f"{where} does not start{others}: {cause}")


def _too_large(job: DagJob, tasks: Iterable[Tasks], largest: list[Room], sizes: Sizes) -> Iterator[str]:
    """The stages of which a pod fits no node, parents first. Of raised memory the first that does not fit.

    `sizes`: what was found of them before, which is brought up to date.
    """
    for each in reversed(list(tasks)):
        for text, new in _by_factors(job, each).items():
            key = each.stage.name, text
            if key not in sizes:
                sizes[key] = _size(new)
            # Of the node that lacks the fewest resources.
            lacking = min((room.lacking(sizes[key], node) for node in largest), key=len, default=[])
            if lacking:
                raised = f", which is raised for tasks that had too little ({text})" if text else ""
                where = f"stages[{each.stage.name}]: no node of the cluster is large enough"
                yield f"{where} ({', '.join(lacking)}){raised}"
                break


def _by_factors(job: DagJob, tasks: Tasks) -> dict[str, NewPod]:
    """Pods of a stage that differ in the memory that they request, by their factors."""
    found = {"": NewPod(job, tasks.stage)}
    for index, own in tasks.pods.items():
        if index not in tasks.succeeded:
            new = NewPod(job, tasks.stage, index, 0, own)
            found.setdefault(factors_text(new.memory_factors), new)
    return found


def _size(new: NewPod) -> Room:
    """What a pod requests; nothing where that cannot be read, which is the scheduler's to report."""
    try:
        return room.wanted(convert.read(new.body({}), kube.Pod))
    except (ShapeError, ValueError):
        return {}
