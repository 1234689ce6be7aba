"""`workload: {poisson: …}`: jobs arrive as a Poisson process, with task sizes from a distribution.

Jobs may draw constraint sets (`constraints.py`), in addition to what their class states.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path

from eclectus.model.errors import SettingsError, errors_below
from eclectus.model.settings import setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.random_draws import endless_draws, stream
from eclectus.sim.base.work import Arrival, ArrivalPlan, Gain, WorkClass
from eclectus.sim.workloads.constraints import Constraints, Variants, drawn_classes, draws
from eclectus.sim.workloads.workload import GeneratedClass, Workload, load_of_cluster
from eclectus.sim.world.cluster import ClusterSettings, check_distinct


@dataclass(frozen=True)
class Poisson(Workload):
    """Settings of the workload."""

    rate: float | None = setting(None, "tasks that arrive per second", unit="tasks/s", least=1e-9)
    load: float | None = setting(None, "instead of rate: arriving work over capacity", least=1e-6)
    classes: tuple[GeneratedClass, ...] = (GeneratedClass(),)
    constraints: Constraints | None = setting(
        None, "constraint sets that jobs draw, in addition to what their class states"
    )

    def __post_init__(self) -> None:
        if (self.rate is None) == (self.load is None):
            raise SettingsError("rate", "give either rate or load")
        if not self.classes:
            raise SettingsError("classes", "is empty; leave it out for one default class")
        check_distinct((each.name for each in self.classes), "classes")
        # Classes that share a workload have the same mean size, and are not alike in all they need.
        first: dict[str, int] = {}
        alike: dict[WorkClass, int] = {}
        for at, each in enumerate(self.classes):
            same, other = alike.setdefault(each.generated, at), first.setdefault(each.generated.name, at)
            if same != at:
                raise SettingsError(f"classes[{at}]", f"needs and workload are those of classes[{same}]")
            if each.size.mean != self.classes[other].size.mean:
                problem = f"differs from that of classes[{other}] of the same workload"
                raise SettingsError(f"classes[{at}].size.mean", problem)

    def with_speeds(self, cluster: ClusterSettings, folder: Path) -> ClusterSettings:
        """The cluster with the gains of classes whose preferences a machine meets."""
        gaining = (each for each in self.classes if each.gain != 1.0)
        return cluster.with_gains([Gain(each.name, each.generated.spec, each.gain) for each in gaining])

    def asked_pools(self) -> Iterator[tuple[str, str]]:
        """Of classes."""
        return ((f"classes[{at}].pool", each.pool) for at, each in enumerate(self.classes) if each.pool)

    def plan(self, machines: Mapping[str, Machine], folder: Path) -> ArrivalPlan:
        """The arrival plan.

        Raises SettingsError if `load` has no exact meaning, a file of sizes is invalid, or a constraint set
        is satisfied by no machine or by all.
        """
        if self.constraints is not None:
            with errors_below("constraints"):
                self.constraints.check([each.name for each in self.classes], machines)
        if any(each.size.file for each in self.classes):
            return self._with_file_values(folder).plan(machines, folder)
        per_task = self._work_per_task()
        rate = self.rate
        if rate is None:
            load_at_one = load_of_cluster(per_task, machines)
            if load_at_one is None:
                problem = "is ambiguous if classes have different capacity on a machine; give rate"
                raise SettingsError("load", problem)
            rate = (self.load or 0.0) / load_at_one
        return ArrivalPlan(
            mean_sizes={
                of: each.size.mean_seconds for each in self.classes for _, of in self._variants(each)
            },
            work_rates={work_class: rate * work for work_class, work in per_task.items()},
            tasks_a_second=rate,
            tasks=None,
            arrivals=partial(self._arrivals, rate / self._tasks_a_job()),
        )

    def _with_file_values(self, folder: Path) -> Poisson:
        """A copy with the sizes from files."""
        classes = []
        for at, each in enumerate(self.classes):
            with errors_below(f"classes[{at}].size"):
                classes.append(replace(each, size=each.size.with_file_values(folder)))
        return replace(self, classes=tuple(classes))

    def _arrivals(self, jobs_a_second: float, seed: int) -> Iterator[Arrival]:
        """Endless arrivals; those of a class before it begins are left out."""
        rng = stream(seed, "arrivals")
        moments = accumulate(endless_draws(lambda count: rng.exponential(1.0, count) / jobs_a_second))
        bounds = list(accumulate(self._shares()))[:-1]  # upper bounds of all classes but the last
        which = map(partial(bisect, bounds), endless_draws(stream(seed, "classes").random))
        classes = [
            (
                drawn_classes(self._variants(each), draws(seed, each.name)),
                endless_draws(each.size.sampler(stream(seed, f"sizes of {each.name}"))),
                each.tasks_per_job,
                each.estimate,
                each.begins,
                each.parallelism,
            )
            for each in self.classes
        ]
        for now, at in zip(moments, which, strict=True):
            work_classes, sizes, tasks, estimate, begins, parallelism = classes[at]
            if now < begins:
                continue
            drawn = tuple(islice(sizes, tasks))
            yield Arrival(now, next(work_classes), drawn, estimate=estimate, parallelism=parallelism)

    def _variants(self, each: GeneratedClass) -> Variants:
        """Probability and class of work for none and each of the constraint sets of jobs of the class."""
        if self.constraints is None:
            return [(1.0, each.generated)]
        return self.constraints.variants(each.name, each.generated)

    def _shares(self) -> list[float]:
        total = sum(each.share for each in self.classes)
        return [each.share / total for each in self.classes]

    def _tasks_a_job(self) -> float:
        shares = zip(self._shares(), self.classes, strict=True)
        return sum(share * each.tasks_per_job for share, each in shares)

    def _work_per_task(self) -> dict[WorkClass, float]:
        """Mean work per task of the whole workload that is due to each class, in seconds at speed 1."""
        tasks = self._tasks_a_job()
        work: dict[WorkClass, float] = defaultdict(float)
        for share, each in zip(self._shares(), self.classes, strict=True):
            for probability, work_class in self._variants(each):
                part = share * each.tasks_per_job / tasks * probability
                work[work_class] += part * each.size.mean_seconds
        return work
