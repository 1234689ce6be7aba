"""`workload: {poisson: …}`: jobs arrive as a Poisson process, with task sizes from a distribution."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import Annotated

from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_streams import endless_draws, stream
from eclectus.sim.base.work import Arrival, ArrivalPlan, WorkClass
from eclectus.sim.workloads.work_classes import GeneratedClass, load
from eclectus.sim.workloads.workload import Workload


@dataclass(frozen=True)
class Poisson(Workload):
    """Settings of the workload."""

    rate: Annotated[float | None, Setting("tasks that arrive per second", unit="tasks/s", least=1e-9)] = None
    load: Annotated[float | None, Setting("instead of rate: arriving work over capacity", least=1e-6)] = None
    classes: tuple[GeneratedClass, ...] = (GeneratedClass(),)

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.load is None):
            raise SettingsError("rate", "give either rate or load")
        if not self.classes:
            raise SettingsError("classes", "is empty; leave it out for one default class")
        names = [each.name for each in self.classes]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise SettingsError(
                    f"classes[{at}].name", f"{name!r} is already used by classes[{names.index(name)}]"
                )
        self._check_workloads()

    def _check_workloads(self) -> None:
        """Classes that share a workload have the same mean size, and are not alike in all they need."""
        first: dict[str, int] = {}
        alike: dict[WorkClass, int] = {}
        for at, each in enumerate(self.classes):
            same, other = alike.setdefault(each.generated, at), first.setdefault(each.generated.name, at)
            if same != at:
                raise SettingsError(f"classes[{at}]", f"needs and workload are those of classes[{same}]")
            if each.size.mean != self.classes[other].size.mean:
                raise SettingsError(
                    f"classes[{at}].size.mean", f"differs from that of classes[{other}] of the same workload"
                )

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """The arrival plan.

        Raises SettingsError if `load` has no exact meaning, or a file of sizes is invalid.
        """
        if any(each.size.file for each in self.classes):
            return self._with_file_values(folder).plan(machines, folder)
        per_task = self._work_per_task()
        rate = self.rate
        if rate is None:
            load_at_one, exact = load(per_task, machines)
            if not exact:
                raise SettingsError(
                    "load", "is ambiguous if classes have different capacity on a machine; give rate"
                )
            rate = (self.load or 0.0) / load_at_one
        return ArrivalPlan(
            mean_sizes={each.generated: each.size.mean_seconds for each in self.classes},
            work_rates={work_class: rate * work for work_class, work in per_task.items()},
            tasks_a_second=rate,
            tasks=None,
            arrivals=partial(self._arrivals, rate / self._tasks_a_job()),
        )

    def _with_file_values(self, folder: Path) -> Poisson:
        """A copy with the sizes from files."""
        classes = []
        for at, each in enumerate(self.classes):
            try:
                classes.append(replace(each, size=each.size.with_file_values(folder)))
            except SettingsError as error:
                raise error.below(f"classes[{at}].size") from None
        return replace(self, classes=tuple(classes))

    def _arrivals(self, jobs_a_second: float, seed: int) -> Iterator[Arrival]:
        """Endless arrivals."""
        rng = stream(seed, "arrivals")
        moments = accumulate(endless_draws(lambda count: rng.exponential(1.0, count) / jobs_a_second))
        bounds = list(accumulate(self._shares()))[:-1]  # upper bounds of all classes but the last
        which = map(partial(bisect, bounds), endless_draws(stream(seed, "classes").random))
        classes = [
            (
                each.generated,
                endless_draws(each.size.sampler(stream(seed, f"sizes of {each.name}"))),
                each.tasks_per_job,
                each.estimate,
            )
            for each in self.classes
        ]
        for now, at in zip(moments, which, strict=True):
            work_class, sizes, tasks, estimate = classes[at]
            yield Arrival(now, work_class, tuple(islice(sizes, tasks)), estimate=estimate)

    def _shares(self) -> list[float]:
        total = sum(each.share for each in self.classes)
        return [each.share / total for each in self.classes]

    def _tasks_a_job(self) -> float:
        return sum(
            share * each.tasks_per_job for share, each in zip(self._shares(), self.classes, strict=True)
        )

    def _work_per_task(self) -> dict[WorkClass, float]:
        """Mean work per task of the whole workload that is due to each class, in seconds at speed 1."""
        tasks = self._tasks_a_job()
        return {
            each.generated: share * each.tasks_per_job / tasks * each.size.mean_seconds
            for share, each in zip(self._shares(), self.classes, strict=True)
        }
