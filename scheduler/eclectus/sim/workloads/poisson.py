"""`workload: {poisson: …}`: jobs arrive at random at a steady rate, their tasks' sizes by a law."""

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
from eclectus.sim.base.random_streams import endless, stream
from eclectus.sim.base.work import Arrival, Kind, Plan
from eclectus.sim.workloads.work_classes import WorkClass, load
from eclectus.sim.workloads.workload import Workload


@dataclass(frozen=True)
class Poisson(Workload):
    """Settings, and the stream they make."""

    rate: Annotated[float | None, Setting("tasks that arrive a second", unit="tasks/s", least=1e-9)] = None
    load: Annotated[
        float | None, Setting("instead of rate: work that arrives over work that can be done", least=1e-6)
    ] = None
    classes: tuple[WorkClass, ...] = (WorkClass(),)

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.load is None):
            raise SettingsError("rate", "give either rate or load")
        if not self.classes:
            raise SettingsError("classes", "no class of work at all; leave it out for one plain class")
        names = [each.name for each in self.classes]
        for at, name in enumerate(names):
            if name in names[:at]:
                raise SettingsError(
                    f"classes[{at}].name", f"{name!r} is taken by classes[{names.index(name)}]"
                )

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> Plan:
        """What it brings to these machines.

        Raises SettingsError where `load` has no exact meaning, or a file of sizes is none.
        """
        if any(each.size.file for each in self.classes):
            return self._within(folder).plan(machines, folder)
        of_a_task = self._work_of_a_task()
        rate = self.rate
        if rate is None:
            load_at_one, exact = load(of_a_task, machines)
            if not exact:
                raise SettingsError(
                    "load", "has no one meaning where classes find different machines; give rate"
                )
            rate = (self.load or 0.0) / load_at_one
        return Plan(
            mean_sizes={each.kind(each.name): each.size.mean_seconds for each in self.classes},
            work_rates={kind: rate * work for kind, work in of_a_task.items()},
            tasks_a_second=rate,
            tasks=None,
            arrivals=partial(self._arrivals, rate / self._tasks_a_job()),
        )

    def _within(self, folder: Path) -> Poisson:
        """With the sizes that stand in files."""
        known = []
        for at, each in enumerate(self.classes):
            try:
                known.append(replace(each, size=each.size.within(folder)))
            except SettingsError as error:
                raise SettingsError(f"classes[{at}].size.{error.path}", error.problem) from None
        return replace(self, classes=tuple(known))

    def _arrivals(self, jobs_a_second: float, seed: int) -> Iterator[Arrival]:
        """Jobs without end."""
        chance = stream(seed, "arrivals")
        moments = accumulate(endless(lambda count: chance.exponential(1.0, count) / jobs_a_second))
        bounds = list(accumulate(self._shares()))[:-1]  # above the last of them lies the last class
        which = map(partial(bisect, bounds), endless(stream(seed, "classes").random))
        classes = [
            (
                each.kind(each.name),
                endless(each.size.drawing(stream(seed, f"sizes of {each.name}"))),
                each.tasks_per_job,
                each.estimate,
            )
            for each in self.classes
        ]
        for now, at in zip(moments, which, strict=True):
            kind, sizes, tasks, estimate = classes[at]
            yield Arrival(now, kind, tuple(islice(sizes, tasks)), estimate=estimate)

    def _shares(self) -> list[float]:
        total = sum(each.share for each in self.classes)
        return [each.share / total for each in self.classes]

    def _tasks_a_job(self) -> float:
        return sum(
            share * each.tasks_per_job for share, each in zip(self._shares(), self.classes, strict=True)
        )

    def _work_of_a_task(self) -> dict[Kind, float]:
        """Seconds at speed 1 that the average task brings, by kind."""
        tasks = self._tasks_a_job()
        return {
            each.kind(each.name): share * each.tasks_per_job / tasks * each.size.mean_seconds
            for share, each in zip(self._shares(), self.classes, strict=True)
        }
