"""DagJob: a job of stages, each of equal pods that may start when all pods of its parents have succeeded.

The types follow the definition in the chart's files/crds field by field, in camel case there. The operator
makes the pods and writes the status, but for `plan`, which the scheduler alone writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from eclectus.api.common import Condition, ObjectMeta

MAX_STAGES = 200
MAX_TASKS = 10_000  # of a stage
MAX_TASKS_OF_JOB = 100_000  # at most that many numbers in a status, so that it fits into etcd's 1.5 MB
MAX_RETRIES = 20
MAX_RETRY = 20  # of a job
MAX_PARAMETERS, MAX_PARAMETER_CHARACTERS = 64, 8192  # of a job; characters of all names and values
VALUE_CHARACTERS = 4096
MAX_OUTPUTS = 256  # tasks of a stage that hand on their outputs
PARAMETER_PREFIX = "PARAM_"  # of the environment variable, before the parameter's name
JOB_NAME_CHARACTERS, STAGE_NAME_CHARACTERS = 63, 40  # both are label values and part of the pods' names

EstimateSource = Literal["declared", "history", "unknown"]
Phase = Literal["Pending", "Running", "Suspended", "Succeeded", "Failed"]
"""`Pending` until the first pods of a job may be created."""


class DagJobMeta(ObjectMeta, frozen=True, rename="camel"):
    """The metadata of a DagJob that Eclectus reads."""

    namespace: str = ""
    generate_name: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] = {}


class Estimate(Struct, frozen=True):
    """The run time of a task at mean speed, and where that is from. `seconds` None: unknown."""

    seconds: float | None = None
    source: EstimateSource = "declared"


class StageInput(Struct, frozen=True, rename="camel"):
    """A parent whose results are read. `lost_with_node`: they are gone with their pod or its node.

    `output`: what its tasks have handed on is given to the containers.
    """

    stage: str
    lost_with_node: bool = False
    output: bool = False


class Stage(Struct, frozen=True, rename="camel"):
    """Equal tasks. `template`: the pod template of each; `retries`: how often each may fail and run again.

    `speculative`: whether tasks that straggle may get a copy; None: as the job says. `max_parallel`: how many
    pods there are at most at a time that have not ended; None: no limit.
    """

    name: str
    template: dict[str, Any]
    tasks: int = 1
    depends_on: tuple[str, ...] = ()
    estimate: Estimate = Estimate()
    retries: int = 3
    inputs: tuple[StageInput, ...] = ()
    speculative: bool | None = None
    max_parallel: int | None = None

    @property
    def reads_outputs_of(self) -> tuple[str, ...]:
        """The stages whose outputs its containers are given."""
        return tuple(each.stage for each in self.inputs if each.output)


class PodDeadlines(Struct, frozen=True, rename="camel"):
    """The longest time of each stage of a pod but its run; None: as long as it takes.

    `creating_seconds`: while the API server refuses it; `scheduling_seconds`: until it has a node.
    """

    creating_seconds: float | None = None
    scheduling_seconds: float | None = None
    pulling_seconds: float = 600
    starting_seconds: float = 1800
    deleting_seconds: float = 120


class Parameter(Struct, frozen=True):
    """A value that each container of the job has in a variable."""

    name: str
    value: str


class DagJobSpec(Struct, frozen=True, rename="camel"):
    """What to run, with which share of which pool.

    `retry`: how often the job as a whole may fail and run again, which its user asks for each time.
    `max_parallel`: as that of a stage, over all stages.
    """

    stages: tuple[Stage, ...]
    pool: str = ""
    weight: float = 1.0
    altruism: float = 1.0
    deadline_seconds: int | None = None
    suspend: bool = False
    ttl_seconds_after_finished: int | None = None
    speculative: bool = False
    pod_deadlines: PodDeadlines = PodDeadlines()
    retry: int = 0
    max_parallel: int | None = None
    parameters: tuple[Parameter, ...] = ()

    @property
    def with_retry(self) -> DagJobSpec:
        """The same with as many retries of each task as it has with those of the job, each as at first."""
        times = self.retry + 1
        stages = (replace(each, retries=(each.retries + 1) * times - 1) for each in self.stages)
        return replace(self, stages=tuple(stages)) if self.retry else self

    @property
    def with_output(self) -> frozenset[str]:
        """The stages whose outputs others read: of all others nothing is recorded."""
        return frozenset(name for stage in self.stages for name in stage.reads_outputs_of)

    def is_speculative(self, stage: Stage) -> bool:
        """Whether tasks of the stage that straggle may get a copy."""
        return self.speculative if stage.speculative is None else stage.speculative

    def find_stage(self, name: str) -> Stage | None:
        """The stage of that name; None if there is none."""
        return next((each for each in self.stages if each.name == name), None)


class FailedTasks(Struct, frozen=True):
    """The tasks that have failed so often and have not succeeded: `indexes` as `completed_indexes`."""

    failures: int
    indexes: str


class TaskOutput(Struct, frozen=True, omit_defaults=True):
    """What a task that has succeeded hands on. `problem`: why that is nothing, where it has said some."""

    task: int
    text: str = ""
    problem: str = ""


class StageStatus(Struct, frozen=True, rename="camel"):
    """What has become of a stage."""

    name: str
    waiting: int = 0  # tasks without a running pod that have neither succeeded nor failed for good
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    completed_indexes: str = ""  # the tasks that have succeeded, as an Indexed Job writes them: `0-5,7`
    failed_tasks: tuple[FailedTasks, ...] = ()
    estimate_seconds: float | None = None
    estimate_source: EstimateSource = "unknown"
    run_seconds: float | None = None  # the median of its tasks that have succeeded
    outputs: tuple[TaskOutput, ...] = ()  # by task


class PlanStatus(Struct, frozen=True, rename="camel"):
    """What the scheduler plans for the job: amounts by resource, as Kubernetes writes quantities."""

    share: Mapping[str, str | int] = {}
    finish_seconds: float | None = None
    deadline: str | None = None
    slips: int = 0
    slip_seconds: float = 0.0
    lent: Mapping[str, str | int] = {}
    borrowed: Mapping[str, str | int] = {}
    reserved_node: str | None = None
    lent_seconds: Mapping[str, float] = {}  # in all: cores, bytes or devices, times seconds; so is the next
    borrowed_seconds: Mapping[str, float] = {}


class DagJobStatus(Struct, frozen=True, rename="camel"):
    """The operator's record of the job, and the scheduler's plan."""

    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    # Of how many stages, in their order, the API server has accepted a pod in a dry run; None for a job that
    # started in its first sync.
    checked_stages: int | None = None
    retry: int = 0  # that of the spec which was taken up last
    tasks: str = ""  # succeeded and all, as `12/40`
    stages: tuple[StageStatus, ...] = ()
    plan: PlanStatus | None = None

    def condition(self, kind: str) -> Condition | None:
        """Its condition of this type."""
        return next((each for each in self.conditions if each.type == kind), None)

    @property
    def has_finished(self) -> bool:
        """Whether the job has succeeded or failed: only a retry takes a failure back."""
        return any(each.type in FINISHED and each.status == "True" for each in self.conditions)


class DagJob(Struct, frozen=True):
    """A DagJob."""

    metadata: DagJobMeta
    spec: DagJobSpec
    status: DagJobStatus = DagJobStatus()

    @property
    def is_retried(self) -> bool:
        """Whether it has failed and is to run again."""
        failed = self.status.condition(FAILED)
        return failed is not None and failed.status == "True" and self.spec.retry > self.status.retry

    @property
    def phase(self) -> Phase:
        """In which phase it is."""
        if self.status.has_finished:
            succeeded = self.status.condition(SUCCEEDED)
            return "Succeeded" if succeeded is not None and succeeded.status == "True" else "Failed"
        if self.spec.suspend:
            return "Suspended"
        return "Running" if self.status.start_time else "Pending"


READY, SUCCEEDED, FAILED, SUSPENDED = "Ready", "Succeeded", "Failed", "Suspended"  # types of conditions
POOL_REFUSED = "PoolRefused"  # likewise; there only while it holds
FINISHED = (SUCCEEDED, FAILED)
INVALID_SPEC = "InvalidSpec"  # a reason of Failed: the job could never run, and its stages cannot be changed
