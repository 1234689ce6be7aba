"""The nouns of work: kinds of tasks, and jobs that arrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from msgspec import Struct

from eclectus.core.model import Spec


@dataclass(frozen=True, slots=True)
class Kind:
    """Tasks that are told apart in reports, and by what the scheduler may see of them."""

    name: str  # becomes Task.workload: what a user would write on the pod as its class
    spec: Spec
    priority: int = 0


class Arrival(Struct, frozen=True, gc=False):
    """A job arrives: so many tasks of one kind, each of a true size in seconds at speed 1.

    A task of size inf never ends, and the run does not wait for it.
    """

    at: float
    kind: Kind
    sizes: tuple[float, ...]
    estimate: float | None = None  # how long a task lasts at speed 1, as the scheduler is told
    patience: float = inf  # a task that has not started so long after its arrival goes away, seconds


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
