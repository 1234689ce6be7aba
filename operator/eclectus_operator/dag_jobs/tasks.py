"""The state of a stage's tasks, from what the status records and from the pods that exist, and what follows.

    recorded     its pods                         the task
    succeeded    any                              has succeeded; pods that still run are obsolete
    not          one has succeeded by itself      has succeeded
    not          one runs or waits                goes on; if two do, the later one is obsolete
    not          one runs that failed before      waits until that is deleted: etcd was restored
    not          one is being deleted             waits until that is gone, or overdue by a minute
    not          the last one failed by itself    runs again after a back-off, or has failed for good;
                                                  at once if that was before the job began
    not          the last one was preempted,      runs again at once; that does not count as a failure
                 evicted or lost with its node
    not          its node refused the last one    runs again after a back-off; that is no failure either
    not          one has not started in time      waits until that is deleted and gone; no failure either
    not          none                             runs again: its pod was deleted

A task that straggles may have a copy (eclectus/maths/copies.py has the table of both). The copy is no pod of
this table: it neither takes the place of its original nor counts as a failure. Only where the original is no
more it is the pod that runs or waits, and as long as it is there its original has not failed.

The attempt on a pod is the number of failures before it. So a failure is counted once, whatever crashes: the
failures of a task are what is recorded, or what its pods show if that is more.

Pods are created lazily: of stages whose parents have finished, and only as many as keep a bounded number
waiting for a node. A pod that waits costs etcd, quota and every scheduler's attention, and a longer queue of
them starts nothing earlier. The stages that are ready share that number, so that one whose pods find no
node does not stop the others. The pods of a gang are all created: it starts when all of them exist.
Where Pools limit what starts, fewer wait (quotas.py), and `maxParallel` limits how many exist (parallel.py).

Pods that have succeeded are kept for their logs, up to a number. Beyond it the oldest are deleted, once the
status records that they have succeeded.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from itertools import groupby
from statistics import median

from eclectus.api.common import time_seconds
from eclectus.api.dag_job import DagJob, FailedTasks, Stage, StageStatus, TaskOutput
from eclectus.kube.cluster_objects import COSCHEDULING_LABEL
from eclectus.maths.copies import NO_POD, Attempt, Doing, Step, next_step
from eclectus_operator.dag_jobs import outputs, parallel
from eclectus_operator.dag_jobs.task_pods import QUOTA_REASON, NewPod, TaskPod
from eclectus_operator.races import Race

BACKOFF_SECONDS, MOST_BACKOFF_SECONDS = 10.0, 360.0  # after the first failure, doubled with each; as of Jobs
MOST_REFUSED = 7  # pods of a task that are kept for it: with so many the back-off is the longest
OVERDUE_SECONDS = 60.0  # after its grace period a pod that is being deleted is replaced: its node is silent
MOST_WRITES = 50  # pods created, and deleted, in one sync of a job, so that one job does not delay the others
MOST_WAITING = 2**31 - 1
_RANGE = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


@dataclass(frozen=True)
class CopyRules:
    """Which copies there may be: whether new ones are made, and whether the task is wanted at all."""

    may_start: bool = False
    is_wanted: bool = True


@dataclass(frozen=True)
class Tasks:
    """The tasks of a stage by number."""

    stage: Stage
    succeeded: frozenset[int]
    failures: Mapping[int, int]  # how often each has failed that has
    active: Mapping[int, TaskPod]  # the pod that runs or waits, where there is one
    not_before: Mapping[int, float]  # when a task may run again, of those that must wait
    obsolete: tuple[TaskPod, ...]  # to be deleted
    pods: Mapping[int, tuple[TaskPod, ...]]  # all that exist
    copies: Mapping[int, Race[TaskPod]] = field(
        default_factory=dict
    )  # of tasks that straggle, or whose copies exist
    run_seconds: float | None = None
    outputs: tuple[TaskOutput, ...] = ()  # of those that have succeeded
    unended: int = 0  # pods that have not ended, copies too; not those that a silent node should have ended

    @property
    def is_complete(self) -> bool:
        """Whether all have succeeded."""
        return len(self.succeeded) == self.stage.tasks

    @cached_property
    def failed(self) -> tuple[int, ...]:
        """The tasks that have failed for good."""
        most = self.stage.retries
        return tuple(i for i, times in self.failures.items() if times > most and i not in self.succeeded)

    @cached_property
    def running(self) -> int:
        """How many tasks run on a node."""
        return sum(pod.phase == "Running" for pod in self.active.values())

    @cached_property
    def held(self) -> int:
        """How many pods hold room on a node."""
        return sum(bool(pod.node) for pod in self.active.values())

    @cached_property
    def is_held_back(self) -> bool:
        """Whether the scheduler says of a pod that its pool has no room for it."""
        return any(pod.waits_for == QUOTA_REASON for pod in self.active.values())

    @property
    def not_started(self) -> int:
        """How many pods exist that have not started."""
        return len(self.active) - self.running

    @cached_property
    def startable(self) -> list[int]:
        """The tasks that a new pod may be created for."""
        held = self.succeeded.union(self.active, self.not_before, self.failed)
        return [index for index in range(self.stage.tasks) if index not in held]

    @cached_property
    def status(self) -> StageStatus:
        """The stage's status, without its estimate."""
        count, succeeded, failed = self.stage.tasks, len(self.succeeded), len(self.failed)
        by_failures: dict[int, list[int]] = {}
        for index, times in self.failures.items():
            by_failures.setdefault(times, []).append(index)
        return StageStatus(
            self.stage.name,
            waiting=count - succeeded - failed - self.running,
            running=self.running,
            succeeded=succeeded,
            failed=failed,
            retried=sum(min(times, self.stage.retries) for times in self.failures.values()),
            completed_indexes=indexes_text(self.succeeded),
            failed_tasks=tuple(
                FailedTasks(times, indexes_text(found)) for times, found in sorted(by_failures.items())
            ),
            run_seconds=self.run_seconds,
            outputs=self.outputs,
        )


TasksByStage = Mapping[str, Tasks]
"""By the name of the stage."""


def assess_job(
    job: DagJob,
    order: Sequence[Stage],
    recorded: Iterable[StageStatus],
    pods: Iterable[TaskPod],
    now: float,
    *,
    may_copy: bool = False,
) -> dict[str, Tasks]:
    """The tasks of each stage, children first: whether they have finished decides what parents must keep.

    `order`: the stages, parents first; `recorded`: what is known of them; `may_copy`: whether the operator
    may make copies in the job's namespace.
    """
    known, by_stage = {each.name: each for each in recorded}, dict[str, list[TaskPod]]()
    start = job.status.start_time
    began = now if start is None else time_seconds(start)
    for pod in pods:
        by_stage.setdefault(pod.stage, []).append(pod)
    found, readers = dict[str, Tasks](), _readers(job)
    for stage in reversed(order):
        needed = any(not found[reader].is_complete for reader in readers.get(stage.name, ()))
        status, own = known.get(stage.name, StageStatus(stage.name)), by_stage.get(stage.name, ())
        rules = CopyRules(may_copy and job.spec.is_speculative(stage), not job.spec.suspend)
        found[stage.name] = assess(stage, status, own, now, outputs_needed=needed, rules=rules, began=began)
    return found


def assess(
    stage: Stage,
    recorded: StageStatus,
    pods: Iterable[TaskPod],
    now: float,
    *,
    outputs_needed: bool = False,
    rules: CopyRules = CopyRules(),
    began: float = 0.0,
) -> Tasks:
    """The tasks of a stage; `pods`: of this stage.

    `outputs_needed`: a stage that has not finished reads what the pods of this one have left on their
    nodes, so that a task whose pod is gone has not succeeded any more. `began`: when the job was started, or
    started again after it had failed.
    """
    by_task: dict[int, list[TaskPod]] = {}
    for pod in pods:
        by_task.setdefault(pod.index, []).append(pod)
    failures = _failures(stage, recorded, by_task)
    seen = {index for index, own in by_task.items() if any(pod.has_succeeded for pod in own)}
    completed = parse_indexes(recorded.completed_indexes, stage.tasks)
    succeeded = frozenset(seen if outputs_needed else completed | seen)
    found = _Found(began)
    for index, own in by_task.items():
        found.add(index, own, failures.get(index, 0), rules, now, has_succeeded=index in succeeded)
    run = _median_run(by_task.values()) or recorded.run_seconds
    every = {index: tuple(own) for index, own in by_task.items()}
    return Tasks(
        stage,
        succeeded,
        failures,
        found.active,
        found.not_before,
        tuple(found.obsolete),
        every,
        found.copies,
        run,
        _outputs(stage, recorded, succeeded, every),
        unended=sum(_may_run(pod, now) for own in every.values() for pod in own),
    )


@dataclass(frozen=True)
class _Found:
    """What `Tasks` has of each task."""

    began: float
    active: dict[int, TaskPod] = field(default_factory=dict)
    obsolete: list[TaskPod] = field(default_factory=list)
    not_before: dict[int, float] = field(default_factory=dict)
    copies: dict[int, Race[TaskPod]] = field(default_factory=dict)

    def add(
        self,
        index: int,
        own: Sequence[TaskPod],
        failures: int,
        rules: CopyRules,
        now: float,
        *,
        has_succeeded: bool,
    ) -> None:
        """Note what the pods of a task are; `failures`: how often it has failed."""
        originals = [pod for pod in own if not pod.copy_of]
        late = [pod for pod in originals if pod.stage_until and pod.has_not_started(now)]
        in_time = [pod for pod in originals if pod not in late]
        first, others = _active(in_time, failures, has_succeeded=has_succeeded)
        others += late
        race = _race(own, first, failures, rules, now, has_succeeded=has_succeeded)
        if race is not None:
            self.copies[index] = race
            if race.step is Step.TAKE_OVER and first is None:
                first = race.copy
            elif race.step is Step.WIN:  # it is marked before it is deleted
                others = [pod for pod in others if pod is not race.original]
        refused = [pod for pod in originals if pod.is_refused and pod.deletion is None]
        refused.sort(key=lambda pod: (pod.created, pod.name))
        self.obsolete.extend([*others, *refused[:-MOST_REFUSED]])  # the last ones tell how long to wait
        if first is not None:
            self.active[index] = first
        elif not has_succeeded and (until := _not_before(own, now, self.began)) > now:
            self.not_before[index] = until


def _race(
    own: Iterable[TaskPod],
    active: TaskPod | None,
    failures: int,
    rules: CopyRules,
    now: float,
    *,
    has_succeeded: bool,
) -> Race[TaskPod] | None:
    """The race of a task; None if there is no copy and none is to be made. `active`: its pod that goes on."""
    by_uid = {pod.uid: pod for pod in own}
    copy = min((pod for pod in own if pod.copy_of), key=_precedence, default=None)
    original = active if copy is None else by_uid.get(copy.copy_of)
    is_overdue = copy is not None and copy.is_late(now)
    step = next_step(
        attempt_of(original),
        attempt_of(copy),
        is_straggling=original is not None and original.is_straggling and rules.may_start,
        is_wanted=rules.is_wanted,
        is_overdue=is_overdue,
    )
    if copy is None:
        return Race[TaskPod](original, None, step) if step is Step.CREATE else None
    if not copy.has_ended and copy.deletion is None:
        if has_succeeded:  # by whatever pod, which may be gone
            step = Step.LOSE
        elif copy.attempt < failures or (active is not None and active is not original):
            step = Step.WITHDRAW  # the task has failed and runs again
    return Race[TaskPod](original, copy, step, is_overdue)


def attempt_of(pod: TaskPod | None) -> Attempt:
    """A pod, as the table of steps takes it."""
    if pod is None:
        return NO_POD
    finished = float("inf") if pod.finished is None else pod.finished
    return Attempt(_doing(pod), pod.name, finished)


def _doing(pod: TaskPod) -> Doing:
    if pod.has_succeeded:
        return Doing.SUCCEEDED
    if pod.deletion is not None:
        return Doing.LEAVING
    if pod.has_ended:
        return Doing.FAILED
    return Doing.RUNS if pod.phase == "Running" else Doing.WAITS


def _precedence(pod: TaskPod) -> tuple[bool, bool, float, str]:
    """Of several copies of a task the one that has succeeded counts, or one that goes on, or the first."""
    return not pod.has_succeeded, pod.has_ended or pod.deletion is not None, pod.created, pod.name


@dataclass(frozen=True)
class Steps:
    """The pods of a job to delete and to create now."""

    delete: list[TaskPod]
    create: list[NewPod]


def next_steps(
    job: DagJob,
    tasks: TasksByStage,
    most_waiting: int,
    most_kept: int,
    blocked: Collection[str] = (),
    *,
    first_pods: int | None = None,
) -> Steps:
    """What to do next for a job whose status is written; `blocked`: stages whose pods are refused.

    `first_pods`: of a stage, how many may wait in a pool whatever it holds; None: there are no pools.
    """
    delete = [pod for each in tasks.values() for pod in each.obsolete]
    if job.spec.suspend:
        delete += [pod for each in tasks.values() for pod in each.active.values()]
    readers = _readers(job)
    ended = [
        pod
        for recorded in job.status.stages
        if recorded.name in tasks
        and all(tasks[reader].is_complete for reader in readers.get(recorded.name, ()))
        for pod in _recorded_pods(tasks[recorded.name], recorded)
    ]
    surplus = max(0, min(len(ended) - most_kept, MOST_WRITES))
    delete += nsmallest(surplus, ended, key=lambda pod: (pod.ended or 0.0, pod.name))  # the oldest
    if job.spec.suspend:
        return Steps(delete, [])
    return Steps(delete, _next_pods(job, tasks, most_waiting, blocked, first_pods))


def _next_pods(
    job: DagJob, tasks: TasksByStage, most_waiting: int, blocked: Collection[str], first_pods: int | None
) -> list[NewPod]:
    ready = [
        each
        for each in tasks.values()
        if each.stage.name not in blocked
        and not each.is_complete
        and all(tasks[parent].is_complete for parent in each.stage.depends_on)
    ]
    if not ready:
        return []
    gangs = {each.stage.name for each in ready if is_gang(each.stage)}
    share = max(1, most_waiting // max(1, len(ready) - len(gangs)))
    asked = []
    for each in ready:
        lacking = len(each.startable)
        if each.stage.name in gangs:
            asked.append(parallel.Asked(each.stage.name, each.unended, lacking, is_gang=True))
        else:
            pods = min(share - each.not_started, _quota(each, first_pods), lacking)
            asked.append(parallel.Asked(each.stage.name, each.unended, max(0, pods)))
    allowed = parallel.allowed(job, tasks, asked)
    found: list[NewPod] = []
    for each in sorted(ready, key=lambda tasks: tasks.stage.name in gangs):
        room = min(allowed[each.stage.name], MOST_WRITES - len(found))
        for index in each.startable[: max(0, room)]:
            failures, others = each.failures.get(index, 0), each.pods.get(index, ())
            found.append(NewPod(job, each.stage, index, failures, others))
    return found


def _quota(tasks: Tasks, first_pods: int | None) -> int:
    """How many more pods of a stage may wait for room in its pool: a start doubles how many there are."""
    waiting = len(tasks.active) - tasks.held
    if tasks.is_held_back:
        return max(1, tasks.held) - waiting
    if first_pods is None or any(pod.waits_for for pod in tasks.active.values()):
        return MOST_WAITING  # it is the cluster that has no room, and what a pool needs is known by its pods
    return max(first_pods, tasks.held) - waiting


def is_gang(stage: Stage) -> bool:
    """Whether its pods name a PodGroup, of Kubernetes or of coscheduling."""
    labels = (stage.template.get("metadata") or {}).get("labels") or {}
    return COSCHEDULING_LABEL in labels or bool(stage.template["spec"].get("schedulingGroup"))


def _readers(job: DagJob) -> dict[str, list[str]]:
    """Stage -> the stages that read what its pods leave on their nodes."""
    found: dict[str, list[str]] = {}
    for stage in job.spec.stages:
        for each in stage.inputs:
            if each.lost_with_node:
                found.setdefault(each.stage, []).append(stage.name)
    return found


def _recorded_pods(tasks: Tasks, recorded: StageStatus) -> Iterator[TaskPod]:
    """The ended pods that nothing needs: their task has succeeded, or has failed again after them."""
    completed = parse_indexes(recorded.completed_indexes, tasks.stage.tasks)
    failures = _recorded_failures(recorded, tasks.stage)
    for index, own in tasks.pods.items():
        for pod in own:
            is_past = index in completed or pod.attempt + 1 < failures.get(index, 0)
            if is_past and pod.has_ended and pod.deletion is None:
                yield pod


def _recorded_failures(recorded: StageStatus, stage: Stage) -> dict[int, int]:
    """How often each task has failed that has, as the status says."""
    return {
        index: each.failures
        for each in recorded.failed_tasks
        for index in parse_indexes(each.indexes, stage.tasks)
    }


def _failures(stage: Stage, recorded: StageStatus, by_task: Mapping[int, list[TaskPod]]) -> dict[int, int]:
    known = _recorded_failures(recorded, stage)
    for index, own in by_task.items():
        shown = max(pod.attempt + (pod.has_failed and _counts(pod, own)) for pod in own)
        if shown > known.get(index, 0):
            known[index] = shown
    return known


def _counts(pod: TaskPod, own: Iterable[TaskPod]) -> bool:
    """Whether its failure is one of its task: neither that of a copy, nor while its copy may do the work."""
    return not pod.copy_of and not any(
        each.copy_of == pod.uid and each.deletion is None and (each.has_succeeded or not each.has_ended)
        for each in own
    )


def _may_run(pod: TaskPod, now: float) -> bool:
    """Whether it has not ended, as far as that is known; of one on a silent node that is given up."""
    return not pod.has_ended and (pod.deletion is None or now < pod.deletion + OVERDUE_SECONDS)


def _active(
    own: Iterable[TaskPod], failures: int, *, has_succeeded: bool
) -> tuple[TaskPod | None, list[TaskPod]]:
    """The pod of a task that goes on, and those that still wait or run and are obsolete."""
    alive = [pod for pod in own if not pod.has_ended and pod.deletion is None]
    alive.sort(key=lambda pod: (-pod.attempt, pod.created, pod.name))
    goes_on = bool(alive) and not has_succeeded and alive[0].attempt >= failures
    return (alive[0], alive[1:]) if goes_on else (None, alive)


def _not_before(own: Sequence[TaskPod], now: float, began: float) -> float:
    """When a task without an active pod may run again. What ended before its job began has no back-off."""
    until, refusals = 0.0, sum(pod.is_refused for pod in own if not pod.copy_of)
    for pod in own:
        if not pod.has_ended:
            until = max(until, (now if pod.deletion is None else pod.deletion) + OVERDUE_SECONDS)
        if pod.ended is None or pod.ended < began or pod.copy_of:
            continue
        if pod.has_failed or pod.is_refused:
            times = pod.attempt if pod.has_failed else refusals - 1
            until = max(until, pod.ended + min(BACKOFF_SECONDS * 2.0**times, MOST_BACKOFF_SECONDS))
    return until


def _median_run(by_task: Iterable[list[TaskPod]]) -> float | None:
    """The median run time of the pods that have succeeded, one a task, to a thousandth of a second."""
    winners = (winner(own) for own in by_task)
    runs = [pod.run_seconds for pod in winners if pod is not None and pod.run_seconds is not None]
    return round(median(runs), 3) if runs else None


def winner(own: Iterable[TaskPod]) -> TaskPod | None:
    """The first of a task's pods that have succeeded."""
    ended = (pod for pod in own if pod.has_succeeded)
    return min(ended, key=lambda pod: (attempt_of(pod).finished_at, pod.name), default=None)


def _outputs(
    stage: Stage, recorded: StageStatus, succeeded: frozenset[int], pods: Mapping[int, Sequence[TaskPod]]
) -> tuple[TaskOutput, ...]:
    """What is handed on: recorded, or said by the pods by which tasks have succeeded."""
    made = ((index, winner(own)) for index, own in pods.items())
    said = {index: pod.output for index, pod in made if pod is not None and pod.output}
    return outputs.outputs(stage, recorded, succeeded, said) if said or recorded.outputs else ()


def second_successes(pods: Iterable[TaskPod]) -> list[TaskPod]:
    """The pods that have succeeded after another one of their task: nothing needs them."""
    by_task: dict[tuple[str, int], list[TaskPod]] = {}
    for pod in pods:
        by_task.setdefault((pod.stage, pod.index), []).append(pod)
    return [
        pod
        for own in by_task.values()
        if any(each.copy_of for each in own)
        for pod in own
        if pod.has_succeeded and pod.deletion is None and pod is not winner(own)
    ]


def parse_indexes(text: str, count: int) -> frozenset[int]:
    """The numbers below `count` of a text as the status of an Indexed Job has it: `0-5,7`.

    What is no number or range is left out: a user may have written it.
    """
    matches = (_RANGE.fullmatch(part) for part in text.split(","))
    return frozenset(
        number
        for match in matches
        if match
        for number in range(int(match[1]), min(int(match[2] or match[1]) + 1, count))
    )


def indexes_text(numbers: Iterable[int]) -> str:
    """The numbers as such a text, in increasing order."""
    parts = []
    # Of consecutive numbers the distance to their place is the same.
    for _, each in groupby(enumerate(sorted(numbers)), lambda placed: placed[1] - placed[0]):
        run = [number for _, number in each]
        parts.append(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ",".join(parts)
