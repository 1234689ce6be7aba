"""A scenario: a cluster, a workload, profiles to compare, and what to measure. Read by reading.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any

import yaml

from eclectus.api.names import API_VERSION
from eclectus.config.configuration import KIND
from eclectus.config.reading import nearest, read
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.result_labels import WAYS, Groups, parts
from eclectus.sim.base.work import Arrival, Plan
from eclectus.sim.world.cluster import Cluster
from eclectus.sim.world.dispatchers import Dispatchers
from eclectus.sim.world.ledger import Window
from eclectus.sim.world.oracle_learner import Truth
from eclectus.sim.world.perturbations import Shock
from eclectus.sim.world.probes import Probes

TASKS = 20_000  # tasks a run where a generated workload is given no end


@dataclass(frozen=True)
class Measure:
    """When a run ends, and what of it counts."""

    warm_up: Annotated[
        float,
        Setting("share of the run that is not measured", why="rosella.md 8.4", least=0, most=0.95),
    ] = 0.3
    tasks: Annotated[int | None, Setting("arrivals end after so many tasks", least=1)] = None
    horizon: Annotated[float | None, Setting("arrivals end at this time", unit="s", least=1e-9)] = None
    groups: Annotated[
        tuple[str, ...],
        Setting("by what results are told apart: class, length, constrained, or some crossed by a +"),
    ] = ("class",)
    cut_off: Annotated[
        float | None,
        Setting(
            "length: jobs whose tasks take less in the mean are short; shown to no policy", unit="s", least=0
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.tasks is not None and self.horizon is not None:
            raise SettingsError("horizon", "give either tasks or horizon")
        for at, name in enumerate(self.groups):
            for way in parts(name):
                if way not in WAYS:
                    raise SettingsError(f"groups[{at}]", f"{way!r} is unknown; {nearest(way, list(WAYS))}")
        if ("length" in Groups(self.groups).ways) != (self.cut_off is not None):
            raise SettingsError("cutOff", "belongs to groups by length, and they need it")


@dataclass(frozen=True)
class Contestant:
    """One profile, as text: every run builds policies of its own from it, since policies keep state."""

    name: str
    profile: dict[str, Any]
    learn: dict[str, Any]
    dispatchers: Dispatchers = field(default_factory=Dispatchers)
    probes: Probes | None = None

    @property
    def truth(self) -> Truth | None:
        """What the learner is told, if it learns nothing by itself."""
        if self.learn.get("policy") != "truth":
            return None
        return read(Truth, {key: value for key, value in self.learn.items() if key != "policy"}, "learn")

    def configuration(self, seed: int) -> str:
        """The SchedulerConfiguration of one run; without the learner where that is told the truth."""
        learn = {} if self.truth is not None else {"learn": self.learn}
        document = {"apiVersion": API_VERSION, "kind": KIND, "seed": seed, **learn}
        named = [{"schedulerName": name} for name in self.dispatchers.names(self.name)]
        profiles = [self.profile | name for name in named] if len(named) > 1 else [self.profile]
        return yaml.safe_dump({**document, "profiles": profiles}, sort_keys=False)


@dataclass(frozen=True)
class Scenario:
    """All that a file says, checked."""

    about: str
    cluster: Cluster
    plan: Plan
    shocks: tuple[Shock, ...]
    contestants: tuple[Contestant, ...]
    measure: Measure
    seeds: int
    load: float | None  # work that arrives over work that can be done; None where all arrives at once
    load_is_exact: bool  # else a lower bound

    @property
    def tasks(self) -> int:
        """About how many tasks a run has; no more than `measure.tasks`."""
        if self.plan.measured is not None:
            return self.plan.measured.stop
        if self.measure.horizon is None:
            ends = (self.plan.tasks, self.measure.tasks)
            return min((end for end in ends if end is not None), default=TASKS)
        by_rate = self.plan.tasks_a_second * self.measure.horizon
        return int(min(by_rate, self.plan.tasks or by_rate))

    @property
    def _most(self) -> float:
        """After how many tasks arrivals end, if the workload has not ended by itself before."""
        if self.measure.tasks is not None:
            return self.measure.tasks
        return TASKS if self.plan.tasks is None else inf

    def window(self) -> Window:
        """What counts."""
        measured = self.plan.measured
        if measured is not None:
            end = measured.stop / self.plan.tasks_a_second
            return Window(measured.start, 0.0, end, measured.stop)
        share, horizon = self.measure.warm_up, self.measure.horizon
        if horizon is not None:
            return Window(0, share * horizon, horizon)
        return Window(int(share * self.tasks), 0.0, self.tasks / self.plan.tasks_a_second)

    def groups(self) -> Groups:
        """By what results are told apart."""
        return Groups(self.measure.groups, self.measure.cut_off or 0.0)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The jobs of one run."""
        horizon = self.measure.horizon
        left = inf if self.plan.measured is not None else self._most
        for job in self.plan.arrivals(seed):
            if job.at > horizon if horizon is not None else left <= 0:
                return
            yield job
            left -= len(job.sizes)
