"""The plan of jobs that are on record: what they bring is counted, and they come as they stand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import inf

from eclectus.sim.base.work import Arrival, Kind, Plan


class _Sum:
    """Tasks and their sizes; those that never end have none."""

    def __init__(self) -> None:
        self.tasks = self.ending = 0
        self.work = 0.0  # seconds at speed 1

    def add(self, sizes: tuple[float, ...]) -> None:
        ending = [size for size in sizes if size < inf]
        self.tasks += len(sizes)
        self.ending += len(ending)
        self.work += sum(ending)

    @property
    def mean(self) -> float:
        return self.work / self.ending if self.ending else 1.0  # where nothing ends nothing asks for it


def recorded(jobs: Iterable[Arrival], arrivals: Callable[[int], Iterator[Arrival]]) -> Plan:
    """Count the jobs, in order of time; `arrivals` gives them again, whatever the seed.

    Kinds of one name have one mean size, for a learner cannot tell them apart. Where all jobs come at
    once, rates are inf; without a job, the plan has no task.
    """
    by_kind: dict[Kind, _Sum] = defaultdict(_Sum)
    by_name: dict[str, _Sum] = defaultdict(_Sum)
    last = 0.0
    for job in jobs:
        last = job.at
        by_kind[job.kind].add(job.sizes)
        by_name[job.kind.name].add(job.sizes)
    tasks = sum(each.tasks for each in by_kind.values())
    return Plan(
        mean_sizes={kind: by_name[kind.name].mean for kind in by_kind},
        work_rates={kind: each.work / last if last else inf for kind, each in by_kind.items()},
        tasks_a_second=tasks / last if last else inf,
        tasks=tasks,
        arrivals=arrivals,
    )
