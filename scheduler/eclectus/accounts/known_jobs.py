"""The DAG jobs and how far they are. Kept only if a policy needs `jobs`.

A pod belongs to a job if the job's uid is that of its controlling owner and both are in one namespace, and to
a stage if it names one of the job's: anything may stand in labels. A job exists until its event
says otherwise, also while none of its pods do, and pods may be seen before their job.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import Struct

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.memo import unfile
from eclectus.model.job import Job, JobStage
from eclectus.model.objects import Task

MAX_CHANGES = 8192  # of jobs that are remembered
TOMBSTONES_MOST = 1000  # jobs that are gone: events are late by seconds


class StageCounts(NamedTuple):
    """Tasks of a stage.

    `to_start`: have neither succeeded nor a node, whether they have pods yet or not. `succeeded`: as the
    job's status says or as was seen of its pods, if that is more. `lost`: how often a pod has lost its node
    without that; a refused bind, or a reservation that is given up, is no loss.
    """

    to_start: int
    on_nodes: int
    succeeded: int
    lost: int
    is_done: bool  # all have succeeded


@dataclass(slots=True, eq=False)
class KnownStage:
    """A stage of a job: which of its pods wait, run and have succeeded. Changed by `KnownJobs` only."""

    stage: JobStage
    waiting: dict[str, None] = field(default_factory=dict)  # uids of pods, in order of arrival
    on_nodes: dict[str, None] = field(default_factory=dict)  # likewise, those bound, assumed or nominated
    _succeeded: set[str] = field(default_factory=set)  # uids of the pods that were seen to succeed
    counts: StageCounts = field(init=False)  # kept, because a job may have many stages: one changes at a time
    _lost: int = 0

    def __post_init__(self) -> None:
        self._recount()

    def _recount(self) -> None:
        tasks, on_nodes = self.stage.tasks, len(self.on_nodes)
        done = min(max(self.stage.succeeded, len(self._succeeded)), tasks)
        self.counts = StageCounts(max(tasks - done - on_nodes, 0), on_nodes, done, self._lost, done >= tasks)

    def count(self, uid: str, *, waits: bool, holds: bool) -> None:
        """The pod waits for a node, holds room on one, or neither."""
        if uid in self.on_nodes and not (holds or waits or uid in self._succeeded):
            self._lost += 1
        for uids, is_in in ((self.waiting, waits and not holds), (self.on_nodes, holds)):
            if is_in:
                uids[uid] = None
            else:
                uids.pop(uid, None)
        self._recount()

    def succeed(self, uid: str) -> None:
        """The pod has succeeded."""
        self._succeeded.add(uid)
        self._recount()

    def take_over(self, stage: JobStage) -> None:
        """Another version of the stage."""
        if stage.succeeded < self.stage.succeeded:  # finished tasks were opened again
            self._succeeded.clear()
        self.stage = stage
        self._recount()


class KnownJob:
    """A job with its stages. Changed by `KnownJobs` only."""

    __slots__ = ("_by_name", "job", "stages")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stages = tuple(KnownStage(stage) for stage in job.stages)
        self._by_name = {each.stage.name: each for each in self.stages}

    def stage(self, name: str) -> KnownStage | None:
        """The stage of this name; None if the job has none."""
        return self._by_name.get(name)

    @property
    def is_done(self) -> bool:
        """Whether all tasks of all stages have succeeded."""
        return all(each.counts.is_done for each in self.stages)

    def is_ready(self, stage: KnownStage) -> bool:
        """Whether all tasks of the stage's parents have succeeded."""
        return all(self.stages[at].counts.is_done for at in stage.stage.parents)

    def take_over(self, job: Job) -> bool:
        """Another version of the job; False, and no change, if its stages are other ones."""
        if [each.name for each in job.stages] != [each.stage.name for each in self.stages]:
            return False
        for known, stage in zip(self.stages, job.stages, strict=True):
            known.take_over(stage)
        self.job = job
        return True


class _Pod(Struct):
    key: tuple[str, str]  # uid and namespace of the job of which it says that it is
    stage: str
    waits: bool = False
    holds: bool = False


class KnownJobs(Mapping[str, KnownJob]):
    """Every DAG job that exists, by uid, in the order in which they were first seen."""

    def __init__(self) -> None:
        self._jobs: dict[str, KnownJob] = {}
        self._pods: dict[str, _Pod] = {}
        self._pods_of: dict[tuple[str, str], dict[str, None]] = {}  # by the uid and namespace of their job
        self._gone: dict[str, None] = {}  # jobs that are gone, the last ones; a dict as an ordered set
        self.changes = ChangeLog[str](MAX_CHANGES)  # jobs that came, went or got on

    def __getitem__(self, uid: str) -> KnownJob:
        return self._jobs[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def of(self, task: Task) -> tuple[KnownJob, KnownStage] | None:
        """The job and the stage of a pod; None if it belongs to none."""
        known = self._jobs.get(task.job)
        if known is None or known.job.namespace != task.namespace:
            return None
        stage = known.stage(task.stage)
        return None if stage is None else (known, stage)

    def see(self, job: Job) -> None:
        """The job exists as given; no effect on one that is gone."""
        if job.uid in self._gone:
            return  # late: a uid is never used twice
        known = self._jobs.get(job.uid)
        if known is not None and known.job == job:
            return
        if known is None or known.job.namespace != job.namespace or not known.take_over(job):
            self._jobs[job.uid] = KnownJob(job)
            for uid in self._pods_of.get((job.uid, job.namespace), ()):
                self._count(uid, self._pods[uid])
        self.changes.record(job.uid)

    def drop(self, uid: str) -> None:
        """The job does not exist any more; no error if it was not known."""
        self._gone[uid] = None
        if len(self._gone) > TOMBSTONES_MOST:
            del self._gone[next(iter(self._gone))]
        if self._jobs.pop(uid, None) is not None:
            self.changes.record(uid)

    def wait(self, task: Task) -> None:
        """A pending pod that may run was seen."""
        pod = self._file(task)
        if pod is not None and not pod.waits:
            pod.waits = True
            self._count(task.uid, pod)

    def leave(self, uid: str) -> None:
        """The pod is not pending, or may not run now; no error if it did not wait."""
        pod = self._pods.get(uid)
        if pod is not None and pod.waits:
            pod.waits = False
            self._count(uid, pod)

    def hold(self, task: Task) -> None:
        """The pod holds room on a node from now on."""
        pod = self._file(task)
        if pod is not None:
            pod.holds = True
            self._count(task.uid, pod)

    def release(self, uid: str) -> None:
        """It holds none any more; no error if it belongs to no job."""
        pod = self._pods.get(uid)
        if pod is not None:
            pod.holds = False
            self._count(uid, pod)

    def regroup(self, task: Task) -> None:
        """It holds what it held; its labels or its owner may have changed."""
        known = self._pods.get(task.uid)
        if known is None or (known.key, known.stage) != ((task.job, task.namespace), task.stage):
            self.hold(task)

    def succeed(self, task: Task) -> None:
        """The pod has succeeded: once a task, whether itself or its copy has ended first."""
        found = self.of(task)
        if found is not None:
            found[1].succeed(task.copy_of or task.uid)
            self.changes.record(task.job)

    def _file(self, task: Task) -> _Pod | None:
        """The pod, under the job and the stage that it names now; None if it names none."""
        key, uid = (task.job, task.namespace), task.uid
        pod = self._pods.get(uid)
        if pod is not None and (pod.key, pod.stage) == (key, task.stage):
            return pod
        new = _Pod(key, task.stage)
        if pod is not None:
            new.waits, new.holds, pod.waits, pod.holds = pod.waits, pod.holds, False, False
            self._count(uid, pod)
        if not task.job or not task.stage or task.copy_of:  # a copy is no task that is started
            return None
        self._pods[uid] = new
        self._pods_of.setdefault(key, {})[uid] = None
        return new

    def _count(self, uid: str, pod: _Pod) -> None:
        """Count the pod where it is now; one that neither waits nor holds room is forgotten."""
        known = self._jobs.get(pod.key[0])
        stage = known.stage(pod.stage) if known is not None and known.job.namespace == pod.key[1] else None
        if stage is not None:
            stage.count(uid, waits=pod.waits, holds=pod.holds)
            self.changes.record(pod.key[0])
        if not pod.waits and not pod.holds:
            del self._pods[uid]
            unfile(self._pods_of, pod.key, uid)
