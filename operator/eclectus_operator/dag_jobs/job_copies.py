"""The copies of a DagJob's tasks that straggle: made, and settled when one of the two has ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from eclectus.api.dag_job import DagJob, Stage
from eclectus.kubeclient.api_errors import ApiError
from eclectus.kubeclient.client import Object
from eclectus.maths.copies import Step
from eclectus_operator import copied_pods
from eclectus_operator.dag_jobs.parallel import Rooms
from eclectus_operator.dag_jobs.task_pods import NewPod, TaskPod
from eclectus_operator.dag_jobs.tasks import Tasks, parse_indexes
from eclectus_operator.operator_context import NotLeadingError, Sync
from eclectus_operator.races import Pauses, Race, RaceSync

MOST_STARTS = 10  # copies made in one sync of a job: the scheduler's caps allow few


@dataclass
class JobCopies(Sync):
    """The races of one job in one sync. `may_copy`: the operator has the permissions for copies there."""

    job: DagJob
    pauses: Pauses
    may_copy: bool
    _problems: dict[str, str] = field(default_factory=dict)  # why the pods of a stage get no copies

    def __post_init__(self) -> None:
        path = f"/api/v1/namespaces/{self.job.metadata.namespace}/pods"
        self._races = RaceSync(self.context, path, self.pauses, may_mark=self.may_copy)

    async def settle(self, tasks: Mapping[str, Tasks]) -> None:
        """End the pods that have lost, and copies that are late or not needed."""
        for each in tasks.values():
            for index, race in each.copies.items():
                # One that is not gone in time is forced with the other pods of its job (late_pods.py).
                if race.step not in (Step.CREATE, Step.FORCE) and self._is_due(each, index, race):
                    await self._races.take(self.job.metadata, race, _task(each.stage, index))
                self._races.is_overdue(race.copy)  # if it is not, the next sync is due when it will be
        self.wake_by(self._races.wake_at)

    def _is_due(self, tasks: Tasks, index: int, race: Race[TaskPod]) -> bool:
        """Whether the pod may be ended now: of one that has succeeded, its status has the task before."""
        loser = race.original if race.step is Step.WIN else race.copy
        if loser is None or not loser.has_succeeded:
            return True
        recorded = next((each for each in self.job.status.stages if each.name == tasks.stage.name), None)
        return recorded is not None and index in parse_indexes(recorded.completed_indexes, tasks.stage.tasks)

    async def start(
        self, tasks: Mapping[str, Tasks], hints: Mapping[str, Mapping[str, str]], rooms: Rooms
    ) -> None:
        """Make the copies that are asked for. `hints`: annotations by stage; `rooms`: what limits leave."""
        self.pauses.forget_but(pod.uid for each in tasks.values() for pod in each.active.values())
        starts = [
            (each.stage, index, race.original)
            for each in tasks.values()
            for index, race in each.copies.items()
            if race.step is Step.CREATE and race.original is not None
        ]
        asked = [one for one in starts if not self.pauses.holds(one[2].uid, self.now)]
        asked = [one for one in asked if rooms.take(one[0].name)]  # others when a pod has ended
        for stage, index, original in asked[:MOST_STARTS]:
            await self._start(stage, index, original, hints[stage.name])
        if len(asked) > MOST_STARTS:
            self.wake_by(self.now)
        self.wake_by(self._races.wake_at)

    async def _start(self, stage: Stage, index: int, original: TaskPod, hints: Mapping[str, str]) -> None:
        about, task = self.job.metadata, _task(stage, index)
        problem = await self._problem(stage)
        if problem:
            await self._races.refuse(about, original, problem, task)
            return
        new = NewPod(
            self.job,
            stage,
            index,
            original.attempt,
            (original,),
            original,
            has_no_requests=self.context.settings.copy_requests == "none",
        )
        race = Race[TaskPod](original, None, Step.CREATE)
        await self._races.start(about, race, new.body(hints), task)

    async def _problem(self, stage: Stage) -> str:
        """Why the pods of a stage get no copies now; empty if they may have them."""
        if stage.name not in self._problems:
            metadata, spec = stage.template.get("metadata") or {}, stage.template["spec"]
            found = copied_pods.why_not({**spec, "restartPolicy": "Never"}, metadata.get("labels") or {})
            self._problems[stage.name] = found or await self._claim_problem(spec)
        return self._problems[stage.name]

    async def _claim_problem(self, spec: Object) -> str:
        try:
            return await copied_pods.claim_problem(self.context, self.job.metadata.namespace, spec)
        except NotLeadingError:
            raise
        except ApiError as error:
            return f"its claims could not be read: {error.message}"


def _task(stage: Stage, index: int) -> str:
    return f"{stage.name}[{index}]: "
