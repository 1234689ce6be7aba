"""Work: classes of tasks, jobs as graphs of stages, and the arrivals that a workload produces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from msgspec import Struct
from msgspec.structs import force_setattr

from eclectus.model.objects import Amounts, Spec

ONE_POD = ("pods", 1)  # every task occupies one pod slot


class WorkClass(Struct, frozen=True, cache_hash=True):
    """Tasks that look alike to the scheduler and are reported together."""

    name: str  # becomes Task.workload, as the pod's class label does on a cluster
    spec: Spec
    priority: int = 0
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


@dataclass(frozen=True, slots=True)
class StageRules:
    """What happens to tasks of stages beside their work, and where their estimates come from."""

    history_runs: int = 0  # estimates are medians of so many last runs of the stage; 0: of the arrival
    failure_probability: float = 0.0  # of each attempt of a task


@dataclass(frozen=True, slots=True)
class ArrivalPlan:
    """A validated workload: its totals, and a function that yields its arrivals for a seed."""

    mean_sizes: dict[WorkClass, float]  # seconds at speed 1
    work_rates: dict[
        WorkClass, float
    ]  # seconds at speed 1 that arrive per second; inf if all arrives at once
    tasks_a_second: float
    tasks: int | None  # None: endless
    arrivals: Callable[[int], Iterator[Arrival]]
    measured: range | None = None  # numbers of the tasks that are measured; None: as `measure` says
    stages: StageRules = StageRules()
    allocated_resource: str = ""  # resource whose allocation curve is the result; empty: none
