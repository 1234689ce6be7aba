"""DAG jobs on an engine: pods are created when their stage is ready, run for their true time, and end.

The smallest world in which shares and plans mean something: only this file moves the clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush

from msgspec.structs import replace

from builders import make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, Fault, RecordPlan, Report
from eclectus.model.events import (
    BindConfirmed,
    Event,
    JobGone,
    JobSeen,
    NodeGone,
    NodeSeen,
    PoolSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.job import Job, JobPlan, JobStage
from eclectus.model.objects import Node, Spec, Task
from eclectus.model.pool import Pool


def stage(
    name: str, tasks: int, demand: int, seconds: float | None, *parents: int, **fields: object
) -> JobStage:
    """A stage whose tasks demand so many thousandths of a core."""
    return JobStage(
        name, tasks, Spec(requests=(("cpu", demand),)), seconds=seconds, parents=parents, **fields
    )  # type: ignore[arg-type]


def job(name: str, *stages: JobStage, **fields: object) -> Job:
    """A job of namespace `default`, unless it is given."""
    return Job(f"uid-{name}", **{"namespace": "default", "name": name, "stages": stages} | fields)  # type: ignore[arg-type]


@dataclass
class DagWorld:
    """Jobs, their pods, and the commands of the engine.

    `pools`: that a process sees at first. `true_seconds`: where not as estimated.
    """

    engine: Engine
    nodes: list[Node]
    true_seconds: dict[tuple[str, str], float] = field(default_factory=dict)  # by job and stage
    fails_once: set[tuple[str, str]] = field(default_factory=set)  # stages whose first task fails
    pools: list[Pool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = 0.0
        self.jobs: dict[str, Job] = {}
        self.tasks: dict[str, Task] = {}  # by uid, that have not ended
        self.created: dict[tuple[str, str], int] = {}
        self.done: dict[tuple[str, str], int] = {}
        self.starts: list[tuple[float, str, str]] = []  # when, job, stage
        self.ends: dict[str, float] = {}  # by job
        self.plans: dict[str, list[JobPlan]] = {}
        self.reports: list[Report] = []
        self.commands: list[Command] = []
        self._started: dict[str, float] = {}  # by uid of a task
        self._succeeded: list[TaskSeen] = []  # as they ended; such pods stay until their job is deleted
        self._ending: list[tuple[float, int, str]] = []
        self._serial = 0
        self.step(Resumed(), *map(NodeSeen, self.nodes), *map(PoolSeen, self.pools))

    # -- what happens ------------------------------------------------------------------------------

    def submit(self, *jobs: Job) -> None:
        """The jobs, and the pods of their first stages, in one step."""
        self.jobs |= {each.name: each for each in jobs}
        self.step(*map(JobSeen, jobs), *(event for each in jobs for event in self._create(each)))

    def run(self, until: float = 1e6) -> DagWorld:
        """Let time pass until every job has ended, or until this time."""
        while self.jobs.keys() - self.ends.keys() and self._next() <= until:
            self.advance()
        return self

    def advance(self) -> None:
        """Let time pass until a pod ends or the engine wants to be asked."""
        self.now = max(self.now, self._next())
        self.step(*self._ended())

    def _next(self) -> float:
        at = self.engine.next_step_at()
        end = self._ending[0][0] if self._ending else None
        times = [each for each in (at, end) if each is not None]
        assert times, f"nothing runs and the engine waits for nothing at {self.now}"
        return min(times)

    def drop_node(self, name: str) -> None:
        """The node is gone, and the pods on it."""
        lost = [task for task in self.tasks.values() if task.node == name]
        for task in lost:
            self._forget(task)
        events = [TaskGone(task.uid) for task in lost]
        self.step(
            NodeGone(name), *events, *(event for each in self.jobs.values() for event in self._create(each))
        )

    def restart(self, engine: Engine) -> None:
        """Another process takes over. It sees nodes, jobs with what was written to them, and pods."""
        self.engine = engine
        jobs = [JobSeen(self._written(each)) for each in self.jobs.values() if each.name not in self.ends]
        pods = *self._succeeded, *map(self._as_listed, self.tasks.values())
        self.step(Resumed(), *map(NodeSeen, self.nodes), *map(PoolSeen, self.pools), *jobs, *pods)

    def _written(self, each: Job) -> Job:
        """The job with the status that its controller and the process before have written."""
        stages = tuple(replace(of, succeeded=self.done.get((each.name, of.name), 0)) for of in each.stages)
        each = replace(each, stages=stages)
        if each.name not in self.plans:
            return each
        plan = self.plans[each.name][-1]
        return replace(each, deadline=plan.deadline, slips=plan.slips, slip_seconds=plan.slip_seconds)

    def _as_listed(self, task: Task) -> TaskSeen:
        if not task.node:
            return TaskSeen(task)
        return TaskSeen(replace(task, phase="Running", started=self._started[task.uid]))

    def step(self, *events: Event) -> None:
        """One step, and those by which its binds are answered."""
        given = list(events)
        while True:
            commands = self.engine.step(given, self.now)
            self.commands += commands
            given = [event for command in commands for event in self._answer(command)]
            if not given:
                return

    # -- how it goes on ----------------------------------------------------------------------------

    def _answer(self, command: Command) -> list[Event]:
        match command:
            case Bind(uid=uid, node=node):
                task = self.tasks[uid] = replace(self.tasks[uid], node=node)
                owner = self._job_of(task)
                self.starts.append((self.now, owner.name, task.stage))
                self._started[uid] = self.now
                self._serial += 1
                heappush(self._ending, (self.now + self._seconds(owner, task.stage), self._serial, uid))
                return [BindConfirmed(uid, node), TaskSeen(task)]
            case RecordPlan(name=name, plan=plan):
                self.plans.setdefault(name, []).append(plan)
            case Report():
                self.reports.append(command)
            case Fault():
                raise AssertionError(f"{command} at {self.now}")
        return []

    def _ended(self) -> list[Event]:
        events: list[Event] = []
        owners: dict[str, Job] = {}
        while self._ending and self._ending[0][0] <= self.now:
            at, _, uid = heappop(self._ending)
            if uid not in self.tasks:
                continue
            task, key = self.tasks[uid], ()
            owner = self._job_of(task)
            key = (owner.name, task.stage)
            owners[owner.name] = owner
            if key in self.fails_once:
                self.fails_once.discard(key)
                self._forget(task)
                events.append(TaskSeen(replace(task, phase="Failed")))
                continue
            del self.tasks[uid]
            self.done[key] = self.done.get(key, 0) + 1
            started = at - self._seconds(owner, task.stage)
            self._succeeded.append(TaskSeen(replace(task, phase="Succeeded", started=started, finished=at)))
            events.append(self._succeeded[-1])
        for owner in owners.values():
            events += self._create(owner)
            if all(self.done.get((owner.name, each.name), 0) == each.tasks for each in owner.stages):
                self.ends[owner.name] = self.now
                events.append(JobGone(owner.uid))
        return events

    def _create(self, owner: Job) -> list[Event]:
        events: list[Event] = []
        for each in owner.stages:
            parents = [owner.stages[at] for at in each.parents]
            if all(self.done.get((owner.name, parent.name), 0) == parent.tasks for parent in parents):
                key = (owner.name, each.name)
                while self.created.get(key, 0) < each.tasks and self._may_create(owner, each):
                    self.created[key] = self.created.get(key, 0) + 1
                    self._serial += 1
                    task = make_task(
                        f"{owner.name}-{each.name}-{self._serial}", spec=each.spec, job=owner.uid,
                        stage=each.name, created=self.now, estimate=each.seconds,
                        asked_pool=each.asked_pool or owner.pool,
                    )  # fmt: skip
                    task = self.tasks[task.uid] = replace(task, namespace=owner.namespace)
                    events.append(TaskSeen(task))
        return events

    def _may_create(self, owner: Job, of: JobStage) -> bool:
        pods = [task.stage for task in self.tasks.values() if task.job == owner.uid]
        limits = (owner.max_parallel, len(pods)), (of.max_parallel, pods.count(of.name))
        return all(most is None or there < most for most, there in limits)

    def _forget(self, task: Task) -> None:
        """A task has been lost: another one is created."""
        del self.tasks[task.uid]
        self.created[self._job_of(task).name, task.stage] -= 1

    def _job_of(self, task: Task) -> Job:
        return next(each for each in self.jobs.values() if each.uid == task.job)

    def _seconds(self, owner: Job, name: str) -> float:
        estimated = next(each.seconds for each in owner.stages if each.name == name)
        found = self.true_seconds.get((owner.name, name), estimated)
        assert found is not None
        return found
