"""The interface of all workloads, which are settings classes; and the arrival plan of recorded jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from pathlib import Path

from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.world.cluster import ClusterSettings


class Workload(ABC):
    """Settings of a workload, from which its arrival plan is made."""

    def with_speeds(self, cluster: ClusterSettings, folder: Path) -> ClusterSettings:
        """The cluster with the speeds that the workload's data gives, if any; by default unchanged.

        Raises SettingsError like `plan`.
        """
        del folder
        return cluster

    @abstractmethod
    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """The arrival plan for these machines; paths in the settings are relative to `folder`.

        Raises SettingsError, its path relative to the workload's own settings.
        """


# -- recorded jobs ----------------------------------------------------------------------------------


class _Sum:
    """Number and total size of tasks; tasks that never end add no size."""

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
        return self.work / self.ending if self.ending else 1.0  # not used if no task ends


def recorded_plan(jobs: Iterable[Arrival], arrivals: Callable[[int], Iterator[Arrival]]) -> ArrivalPlan:
    """The plan of recorded jobs, in order of time; `arrivals` yields the same jobs for every seed.

    Classes with the same name get one mean size, because a learner cannot distinguish them. If all jobs
    arrive at once, rates are inf; without a job, the plan has no task.
    """
    by_class: dict[WorkClass, _Sum] = defaultdict(_Sum)
    by_name: dict[str, _Sum] = defaultdict(_Sum)
    last = 0.0
    for job in jobs:
        last = job.at
        by_class[job.work_class].add(job.sizes)
        by_name[job.work_class.name].add(job.sizes)
    tasks = sum(each.tasks for each in by_class.values())
    return ArrivalPlan(
        mean_sizes={work_class: by_name[work_class.name].mean for work_class in by_class},
        work_rates={work_class: each.work / last if last else inf for work_class, each in by_class.items()},
        tasks_a_second=tasks / last if last else inf,
        tasks=tasks,
        arrivals=arrivals,
    )
