"""A scenario: a cluster, a workload, profiles to compare, and what to measure; `reading.py` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any

import yaml

from eclectus.api.names import API_VERSION
from eclectus.config.configuration import KIND
from eclectus.config.settings_reading import nearest, read
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.result_labels import DIMENSIONS, Grouping, dimensions_of
from eclectus.sim.base.work import Arrival, ArrivalPlan
from eclectus.sim.world.cluster import ClusterSettings
from eclectus.sim.world.dispatchers import Dispatchers
from eclectus.sim.world.oracle_learner import OracleSettings
from eclectus.sim.world.perturbations import Perturbation
from eclectus.sim.world.probes import ProbeSettings
from eclectus.sim.world.run_record import Window

TASKS = 20_000  # default number of tasks per run of an endless workload


@dataclass(frozen=True)
class Measure:
    """When arrivals end, what is measured, and how results are grouped."""

    warm_up: Annotated[
        float,
        Setting("share of the run before measuring starts", why="queues start empty", least=0, most=0.95),
    ] = 0.3
    tasks: Annotated[int | None, Setting("arrivals end after so many tasks", least=1)] = None
    horizon: Annotated[float | None, Setting("arrivals end at this time", unit="s", least=1e-9)] = None
    groups: Annotated[
        tuple[str, ...],
        Setting("groupings of results: class, length, constrained, set, or several crossed by a +"),
    ] = ("class",)
    cut_off: Annotated[
        float | None,
        Setting(
            "length: jobs with a smaller mean task size are short; not shown to policies", unit="s", least=0
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.tasks is not None and self.horizon is not None:
            raise SettingsError("horizon", "give either tasks or horizon")
        for at, name in enumerate(self.groups):
            for dimension in dimensions_of(name):
                if dimension not in DIMENSIONS:
                    raise SettingsError(
                        f"groups[{at}]", f"{dimension!r} is unknown; {nearest(dimension, list(DIMENSIONS))}"
                    )
        if ("length" in Grouping(self.groups).dimensions) != (self.cut_off is not None):
            raise SettingsError("cutOff", "is required by groups by length and valid only with them")


@dataclass(frozen=True)
class ComparedProfile:
    """One profile as plain data: each run builds new policies from it, because policies keep state."""

    name: str
    profile: dict[str, Any]
    learn: dict[str, Any]
    dispatchers: Dispatchers = field(default_factory=Dispatchers)
    probes: ProbeSettings | None = None

    @property
    def oracle(self) -> OracleSettings | None:
        """The settings of the oracle, if it replaces the learner."""
        if self.learn.get("policy") != "truth":
            return None
        return read(
            OracleSettings, {key: value for key, value in self.learn.items() if key != "policy"}, "learn"
        )

    def configuration(self, seed: int) -> str:
        """The SchedulerConfiguration of one run, without the learner if an oracle replaces it."""
        learn = {} if self.oracle is not None else {"learn": self.learn}
        document = {"apiVersion": API_VERSION, "kind": KIND, "seed": seed, **learn}
        named = [{"schedulerName": name} for name in self.dispatchers.names(self.name)]
        profiles = [self.profile | name for name in named] if len(named) > 1 else [self.profile]
        return yaml.safe_dump({**document, "profiles": profiles}, sort_keys=False)


@dataclass(frozen=True)
class Scenario:
    """A validated scenario file."""

    about: str
    cluster: ClusterSettings
    plan: ArrivalPlan
    perturbations: tuple[Perturbation, ...]
    profiles: tuple[ComparedProfile, ...]
    measure: Measure
    seeds: int
    load: float | None  # arriving work over capacity; None if there is no steady rate
    load_is_exact: bool  # False: `load` is a lower bound

    @property
    def tasks(self) -> int:
        """Expected number of tasks per run, at most `measure.tasks`."""
        if self.plan.measured is not None:
            return self.plan.measured.stop
        if self.measure.horizon is None:
            ends = (self.plan.tasks, self.measure.tasks)
            return min((end for end in ends if end is not None), default=TASKS)
        by_rate = self.plan.tasks_a_second * self.measure.horizon
        return int(min(by_rate, self.plan.tasks or by_rate))

    @property
    def _task_limit(self) -> float:
        """The number of tasks after which arrivals end, unless the workload ends before."""
        if self.measure.tasks is not None:
            return self.measure.tasks
        return TASKS if self.plan.tasks is None else inf

    def window(self) -> Window:
        """The measured window."""
        measured = self.plan.measured
        if measured is not None:
            end = measured.stop / self.plan.tasks_a_second
            return Window(measured.start, 0.0, end, measured.stop)
        share, horizon = self.measure.warm_up, self.measure.horizon
        if horizon is not None:
            return Window(0, share * horizon, horizon)
        return Window(int(share * self.tasks), 0.0, self.tasks / self.plan.tasks_a_second)

    def grouping(self) -> Grouping:
        """How results are grouped."""
        return Grouping(self.measure.groups, self.measure.cut_off or 0.0)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The jobs of one run with this seed."""
        horizon = self.measure.horizon
        left = inf if self.plan.measured is not None else self._task_limit
        for job in self.plan.arrivals(seed):
            if job.at > horizon if horizon is not None else left <= 0:
                return
            yield job
            left -= len(job.sizes)
