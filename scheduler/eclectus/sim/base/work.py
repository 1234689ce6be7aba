"""Work consists of classes of tasks, jobs as graphs of stages, and the arrivals that a workload produces.

Graphs are validated, sorted topologically and given their critical paths (Kelley, Walker, 1959).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from math import inf
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from eclectus.model.objects import Amounts, Spec
from eclectus.model.printed import nearest

ONE_POD = ("pods", 1)  # every task occupies one pod slot


class WorkClass(Struct, frozen=True, cache_hash=True):
    """Tasks that look alike to the scheduler and are reported together."""

    name: str  # becomes Task.workload, as the pod's class label does on a cluster
    spec: Spec
    priority: int = 0
    namespace: str = "default"
    pool: str = ""  # the name of the Pool that its pods ask for
    gang: int = 0  # tasks of a job that start together, as the pods of a PodGroup; 0: each by itself
    speculative: bool = False  # its pods may have copies
    restartable: bool = False  # its pods may be ended for others
    demand: Amounts = ()  # set from spec: its requests and one pod slot

    def __post_init__(self) -> None:
        force_setattr(self, "demand", (ONE_POD, *self.spec.requests))


class Gain(Struct, frozen=True):
    """How much faster tasks of one class run on the nodes that meet all preferences of their spec."""

    workload: str  # the class's name
    spec: Spec
    factor: float


class Stage(Struct, frozen=True):
    """Identical tasks that may start when all tasks of all parent stages have ended.

    Parents and children are indices into `Dag.stages`.
    """

    name: str
    work_class: WorkClass
    tasks: int
    seconds: float  # mean size of a task, at speed 1
    parents: tuple[int, ...]
    children: tuple[int, ...]
    path: float  # critical path from the start of this stage to the end of the job, seconds at speed 1


class Dag(Struct, frozen=True):
    """A job whose stages are in topological order."""

    name: str
    stages: tuple[Stage, ...]
    arrival: float | None = None  # recorded arrival time, seconds

    @property
    def tasks(self) -> int:
        """Number of tasks in all stages."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def work(self) -> float:
        """Total size of all tasks, in seconds at speed 1."""
        return sum(stage.tasks * stage.seconds for stage in self.stages)

    @property
    def path(self) -> float:
        """Length of the critical path, in seconds at speed 1."""
        return max(stage.path for stage in self.stages)


class Arrival(Struct, frozen=True, gc=False):
    """The arrival of a job: one task for each of `sizes`, all of one class; sizes in seconds at speed 1.

    A task of size inf never ends, and the run does not wait for it. With a `dag` the sizes are those of
    its stages in order, and `work_class`, `estimate`, `patience` and `parallelism` are ignored.
    """

    at: float
    work_class: WorkClass
    sizes: tuple[float, ...]
    estimate: float | None = None  # duration of a task at speed 1 as shown to the scheduler, seconds
    patience: float = inf  # a task that has not started by then is withdrawn, seconds after arrival
    dag: Dag | None = None
    parallelism: int | None = None  # tasks submitted at a time, as in a Job; None: all
    estimates: tuple[float | None, ...] | None = None  # with a dag: of each stage; None: its true mean


WINDOW_SECONDS = 60.0  # as in Carbyne's evaluation (OSDI 2016)


@dataclass(frozen=True, slots=True)
class StageRules:
    """What happens to tasks of stages beside their work, where estimates come from, what is measured."""

    history_runs: int = 0  # estimates are medians of so many last runs of the stage; 0: of the arrival
    failure_probability: float = 0.0  # of each attempt of a task
    window_seconds: float = WINDOW_SECONDS  # of Jain's index


@dataclass(frozen=True, slots=True)
class ArrivalPlan:
    """A validated workload: its totals, and a function that yields its arrivals for a seed."""

    mean_sizes: dict[WorkClass, float]  # seconds at speed 1
    work_rates: dict[WorkClass, float]  # seconds at speed 1 that arrive a second; inf if all at once
    tasks_a_second: float
    tasks: int | None  # None: endless
    arrivals: Callable[[int], Iterator[Arrival]]
    measured: range | None = None  # numbers of the tasks that are measured; None: as `measure` says
    stages: StageRules = StageRules()
    allocated_resource: str = ""  # resource whose allocation curve is the result; empty: none


class StageDraft(Struct, frozen=True):
    """A stage as read from a file: parents by name, in any order."""

    name: str
    work_class: WorkClass
    tasks: int
    seconds: float
    parents: tuple[str, ...] = ()


Classes = Literal["job", "stage", "all"]
"""What the tasks of a class have in common."""


def class_name(job: str, stage: str, classes: Classes) -> str:
    """The default class of a stage's tasks."""
    return {"job": job, "stage": f"{job}-{stage}", "all": "work"}[classes]


def build_dag(name: str, drafts: Sequence[StageDraft], arrival: float | None = None) -> Dag:
    """Check and sort the stages of a job. Raises ValueError naming the stage that is wrong."""
    by_name = {draft.name: draft for draft in drafts}
    if not drafts:
        raise ValueError(f"job {name!r} has no stage")
    for draft in drafts:
        if by_name[draft.name] is not draft:
            raise ValueError(f"job {name!r} has two stages {draft.name!r}")
        for parent in draft.parents:
            if parent not in by_name:
                what = f"stage {draft.name!r} has a parent {parent!r} that is not a stage"
                raise ValueError(f"job {name!r}: {what}; {nearest(parent, list(by_name))}")
    try:
        order = tuple(TopologicalSorter({draft.name: draft.parents for draft in drafts}).static_order())
    except CycleError as error:
        cycle = " -> ".join(reversed(error.args[1]))
        raise ValueError(f"job {name!r}: its stages form a cycle: {cycle}") from None
    return Dag(name, _stages([by_name[each] for each in order]), arrival)


def shrunk(dag: Dag, divisor: int) -> Dag:
    """The job with so many times fewer tasks in each stage, rounded, at least one."""
    stages = (replace(stage, tasks=max(round(stage.tasks / divisor), 1)) for stage in dag.stages)
    return replace(dag, stages=tuple(stages))


def _stages(drafts: Sequence[StageDraft]) -> tuple[Stage, ...]:
    place = {draft.name: at for at, draft in enumerate(drafts)}
    parents = [tuple(sorted({place[parent] for parent in draft.parents})) for draft in drafts]
    children: list[list[int]] = [[] for _ in drafts]
    for at, above in enumerate(parents):
        for parent in above:
            children[parent].append(at)
    paths = [0.0] * len(drafts)
    for at in reversed(range(len(drafts))):
        paths[at] = drafts[at].seconds + max((paths[child] for child in children[at]), default=0.0)
    return tuple(
        Stage(draft.name, draft.work_class, draft.tasks, draft.seconds, above, tuple(below), path)
        for draft, above, below, path in zip(drafts, parents, children, paths, strict=True)
    )
