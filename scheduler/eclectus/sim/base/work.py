"""The nouns of work: kinds of tasks, and jobs that arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from msgspec import Struct
from msgspec.structs import force_setattr

from eclectus.model.objects import Amounts, Spec

POD_PLACE = ("pods", 1)  # what every task asks for


class Kind(Struct, frozen=True, cache_hash=True):
    """Tasks that are told apart in reports, and by what the scheduler may see of them."""

    name: str  # becomes Task.workload: what a user would write on the pod as its class
    spec: Spec
    priority: int = 0
    takes: Amounts = ()  # of a machine: what is requested, and the pod's place

    def __post_init__(self) -> None:
        force_setattr(self, "takes", (POD_PLACE, *self.spec.requests))


class Stage(Struct, frozen=True):
    """Tasks that are alike, and may start when all tasks of the parents have ended.

    Parents and children by their places in the graph.
    """

    name: str
    kind: Kind
    tasks: int
    seconds: float  # mean size of a task, at speed 1
    parents: tuple[int, ...]
    children: tuple[int, ...]
    path: float  # critical path from its start to the end of the job, itself included, seconds at speed 1


class Dag(Struct, frozen=True):
    """One job. Parents stand before their children."""

    name: str
    stages: tuple[Stage, ...]
    arrival: float | None = None  # when it arrived on the record, seconds

    @property
    def tasks(self) -> int:
        """Of all stages."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def work(self) -> float:
        """Seconds at speed 1 in one slot."""
        return sum(stage.tasks * stage.seconds for stage in self.stages)

    @property
    def path(self) -> float:
        """Length of the critical path, seconds at speed 1."""
        return max(stage.path for stage in self.stages)


class Arrival(Struct, frozen=True, gc=False):
    """A job arrives: so many tasks of one kind, each of a true size in seconds at speed 1.

    A task of size inf never ends, and the run does not wait for it. With a `dag` the sizes are those of
    its stages one after the other, and `kind`, `estimate`, `patience` and `at_once` mean nothing.
    """

    at: float
    kind: Kind
    sizes: tuple[float, ...]
    estimate: float | None = None  # how long a task lasts at speed 1, as the scheduler is told
    patience: float = inf  # a task that has not started so long after its arrival goes away, seconds
    dag: Dag | None = None
    at_once: int | None = None  # of its tasks so many are there at a time; None: all


@dataclass(frozen=True, slots=True)
class Plan:
    """A workload that has been checked: what it brings, and the jobs themselves for any seed."""

    mean_sizes: dict[Kind, float]  # seconds at speed 1
    work_rates: dict[Kind, float]  # seconds at speed 1 that arrive a second; inf where all comes at once
    tasks_a_second: float
    tasks: int | None  # None: without end
    arrivals: Callable[[int], Iterator[Arrival]]
    measured: range | None = None  # tasks that count, by number; None: `measure` says so
    allocation_of: str = ""  # resource of which it is told how much is held, by how much was asked for
