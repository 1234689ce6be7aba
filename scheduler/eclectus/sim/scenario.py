"""A scenario is a cluster, a workload, profiles to compare, and what to measure.

Its file is found, changed by `--set path=value`, and validated before anything runs. The scenarios shipped
with Eclectus are next to the sources in a checkout, else inside the package.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import Any, TypeVar

import yaml

import eclectus
from eclectus.api.names import API_VERSION, SCHEDULER_CONFIGURATION
from eclectus.config.configuration import parse as parse_configuration
from eclectus.config.settings_reading import (
    join,
    read,
    read_file,
    read_list,
    read_mapping,
    read_yaml,
)
from eclectus.model.errors import SettingsError, errors_below
from eclectus.model.pool import Pool
from eclectus.model.printed import nearest
from eclectus.model.settings import setting
from eclectus.sim.base.results import DIMENSIONS, Grouping, dimensions_of
from eclectus.sim.base.work import Arrival, ArrivalPlan
from eclectus.sim.workloads import WORKLOADS
from eclectus.sim.workloads.workload import capacity
from eclectus.sim.workloads.workload import load as load_of
from eclectus.sim.world.cluster import ClusterSettings, Perturbation, PerturbationSettings
from eclectus.sim.world.copies import Straggling
from eclectus.sim.world.data import DataSettings
from eclectus.sim.world.dispatchers import Dispatchers
from eclectus.sim.world.learning import OracleSettings
from eclectus.sim.world.pools import PoolChange, PoolField, check_asked, check_tree
from eclectus.sim.world.probes import ProbeSettings
from eclectus.sim.world.run_record import Window

TASKS = 20_000  # default number of tasks per run of an endless workload


@dataclass(frozen=True)
class Measure:
    """When arrivals end, what is measured, and how results are grouped."""

    warm_up: float = setting(
        0.3, "share of the run before measuring starts", why="queues start empty", least=0, most=0.95
    )
    tasks: int | None = setting(None, "arrivals end after so many tasks", least=1)
    horizon: float | None = setting(None, "arrivals end at this time", unit="s", least=1e-9)
    groups: tuple[str, ...] = setting(
        ("class",), "groupings of results: class, length, constrained, set, or several crossed by a +"
    )
    cut_off: float | None = setting(
        None, "length: jobs with a smaller mean task size are short; not shown to policies", unit="s", least=0
    )

    def __post_init__(self) -> None:
        if self.tasks is not None and self.horizon is not None:
            raise SettingsError("horizon", "give either tasks or horizon")
        for at, name in enumerate(self.groups):
            for dimension in dimensions_of(name):
                if dimension not in DIMENSIONS:
                    problem = f"{dimension!r} is unknown; {nearest(dimension, list(DIMENSIONS))}"
                    raise SettingsError(f"groups[{at}]", problem)
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
        settings = {key: value for key, value in self.learn.items() if key != "policy"}
        return read(OracleSettings, settings, "learn")

    def configuration(self, seed: int) -> str:
        """The SchedulerConfiguration of one run, without the learner if an oracle replaces it."""
        learn = {} if self.oracle is not None else {"learn": self.learn}
        document = {"apiVersion": API_VERSION, "kind": SCHEDULER_CONFIGURATION, "seed": seed, **learn}
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
    pools: tuple[Pool, ...] = ()
    pool_changes: tuple[PoolChange, ...] = ()
    stragglers: Straggling | None = None
    data: DataSettings | None = None

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

    def window(self) -> Window:
        """The measured window."""
        measured = self.plan.measured
        if measured is not None:
            return Window(measured.start, 0.0, measured.stop / self.plan.tasks_a_second, measured.stop)
        share, horizon = self.measure.warm_up, self.measure.horizon
        if horizon is not None:
            return Window(0, share * horizon, horizon)
        return Window(int(share * self.tasks), 0.0, self.tasks / self.plan.tasks_a_second)

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The jobs of one run with this seed."""
        horizon = self.measure.horizon
        limit = self.measure.tasks or (TASKS if self.plan.tasks is None else inf)
        left = inf if self.plan.measured is not None else limit  # tasks until arrivals end
        for job in self.plan.arrivals(seed):
            if job.at > horizon if horizon is not None else left <= 0:
                return
            yield job
            left -= len(job.sizes)


_PACKAGE = Path(eclectus.__file__).parent
_PLACES = (_PACKAGE / "scenarios", _PACKAGE.parent.parent / "scenarios")


def shipped_scenarios() -> dict[str, Path]:
    """Name -> path, by name."""
    folder = next((place for place in _PLACES if place.is_dir()), None)
    return {} if folder is None else {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def about(path: Path) -> str:
    """The `about` sentence of a scenario."""
    return str(yaml.safe_load(path.read_text(encoding="utf-8")).get("about", ""))


def apply_override(document: Any, change: str) -> None:
    """`a.b[0].c=value`: set one field in place; list items may be named as well. Raises SettingsError."""
    where, equals, text = change.partition("=")
    steps = where.replace("[", ".").replace("]", "").split(".")
    if not equals or not all(steps):
        raise SettingsError(change, "write it as path=value, such as workload.poisson.load=0.8")
    at = document
    for step in steps[:-1]:
        key = _key(at, step, where)
        if isinstance(at, dict) and at.get(key) is None:
            at[key] = {}
        at = at[key]
    at[_key(at, steps[-1], where)] = yaml.safe_load(text)


def _key(at: Any, step: str, where: str) -> str | int:
    if isinstance(at, dict):
        return step
    if isinstance(at, list):
        if step.isdigit() and int(step) < len(at):
            return int(step)
        for number, each in enumerate(at):
            if isinstance(each, dict) and step in (each.get("schedulerName"), each.get("name")):
                return number
    raise SettingsError(where, f"there is no {step!r}")


Part = TypeVar("Part")
SCENARIO_KIND = "Scenario"
_SCALARS = ["about", "seeds", "allowUnstable"]
_SECTIONS = [
    "apiVersion", "kind", "cluster", "pools", "workload", "events", "stragglers", "data", "profiles", "learn",
    "probes", "measure",
]  # fmt: skip


@dataclass(frozen=True)
class _TopLevelFields:
    """The scalar fields at the top level of a scenario."""

    about: str = setting("", "one sentence on what the scenario shows")
    seeds: int = setting(5, "runs of each profile", "an interval needs several runs", least=1, most=10_000)
    allow_unstable: bool = setting(False, "allow a load of 1 or more")


def load(path: Path, changes: tuple[str, ...] = ()) -> Scenario:
    """Read a file, apply changes (`path=value`), validate. Raises SettingsError naming file and field."""
    try:
        return parse(read_file(path), path.parent, changes)
    except SettingsError as error:
        raise error.in_file(path) from None


def parse(text: str, folder: Path = Path(), changes: tuple[str, ...] = ()) -> Scenario:
    """Validate the text of a scenario; paths in it are relative to `folder`. Raises SettingsError."""
    mapping = _document(text, changes)
    scalars = read(_TopLevelFields, {key: mapping[key] for key in _SCALARS if key in mapping}, "")
    cluster = read(ClusterSettings, mapping.get("cluster"), "cluster")
    with errors_below("cluster"):
        cluster = cluster.with_node_list(folder)
    pools, pool_changes = _read_pools(mapping.get("pools")), dict(_read_pool_changes(mapping.get("events")))
    check_tree(pools, list(pool_changes.items()))
    changed = (change.pool for change in pool_changes.values() if change.pool is not None)
    names = [each.name for each in (*pools, *changed)]
    cluster, plan = _read_workload(mapping.get("workload"), cluster, folder, names)
    measure = read_mapping(mapping.get("measure"), "measure")
    _check_plan(plan, cluster, measure)
    ratio, exact = load_of(plan.work_rates, cluster.machines())
    if isfinite(ratio) and ratio >= 1 and not scalars.allow_unstable:
        advice = "queues would grow without bound; lower it, or set allowUnstable: true"
        raise SettingsError("workload", f"the load is {ratio:.3g}: {advice}")
    return Scenario(
        about=scalars.about,
        cluster=cluster,
        plan=plan,
        perturbations=tuple(_read_perturbations(mapping.get("events"), cluster)),
        profiles=_read_profiles(mapping, plan),
        measure=read(Measure, measure, "measure"),
        seeds=scalars.seeds,
        load=ratio if isfinite(ratio) else None,
        load_is_exact=exact,
        pools=tuple(each.pool() for each in pools),
        pool_changes=tuple(pool_changes.values()),
        stragglers=_read_part(Straggling, mapping, "stragglers"),
        data=_read_part(DataSettings, mapping, "data"),
    )


def _document(text: str, changes: tuple[str, ...]) -> dict[str, Any]:
    mapping = read_mapping(read_yaml(text), "")
    for change in changes:
        apply_override(mapping, change)
    for key, wanted in (("apiVersion", API_VERSION), ("kind", SCENARIO_KIND)):
        if mapping.get(key) != wanted:
            raise SettingsError(key, f"must be {wanted}, not {mapping.get(key)!r}")
    fields = [*_SECTIONS, *_SCALARS]
    for key in mapping:
        if key not in fields:
            raise SettingsError(key, f"unknown field; {nearest(key, fields)}")
    return mapping


def _read_workload(
    values: object, cluster: ClusterSettings, folder: Path, pools: Sequence[str]
) -> tuple[ClusterSettings, ArrivalPlan]:
    """The cluster, with speeds from the workload's data if it has any, and the arrival plan.

    `pools`: the names of those that its classes may ask for.
    """
    mapping = read_mapping(values, "workload")
    unknown = next((key for key in mapping if key not in WORKLOADS), "")
    if len(mapping) != 1 or unknown:
        hint = nearest(unknown, list(WORKLOADS))
        where = join("workload", unknown) if unknown else "workload"
        raise SettingsError(where, f"must have exactly one workload; {hint}")
    name, settings = next(iter(mapping.items()))
    path = join("workload", name)
    workload = read(WORKLOADS[name], settings, path)
    with errors_below(path):
        check_asked(workload.asked_pools(), pools)
        with_speeds = workload.with_speeds(cluster, folder)
        return with_speeds, workload.plan(with_speeds.machines(), folder)


def _check_plan(plan: ArrivalPlan, cluster: ClusterSettings, measure: dict[str, Any]) -> None:
    for key in ("warmUp", "tasks", "horizon") if plan.measured is not None else ():
        if key in measure:
            what = "is not allowed here: the workload itself defines which jobs are measured"
            raise SettingsError(join("measure", key), what)
    machines = cluster.machines().values()
    for work_class in plan.mean_sizes:
        if not capacity(work_class, machines):
            raise SettingsError("workload", f"class {work_class.name!r} can run on no machine of the cluster")


def _read_pools(values: object) -> list[PoolField]:
    return [read(PoolField, each, join("pools", at)) for at, each in enumerate(read_list(values, "pools"))]


def _read_part(kind: type[Part], mapping: dict[str, Any], key: str) -> Part | None:
    """A section that may be left out, and means nothing then."""
    return None if mapping.get(key) is None else read(kind, mapping[key], key)


def _is_of_pool(event: object) -> bool:
    return isinstance(event, dict) and not event.keys().isdisjoint(("pool", "removePool"))


def _read_pool_changes(values: object) -> Iterator[tuple[str, PoolChange]]:
    """Those events that change pools, with their paths."""
    for at, each in enumerate(read_list(values, "events")):
        if _is_of_pool(each):
            path = join("events", at)
            yield path, read(PoolChange, each, path)


def _read_perturbations(values: object, cluster: ClusterSettings) -> Iterator[Perturbation]:
    for at, each in enumerate(read_list(values, "events")):
        if _is_of_pool(each):
            continue
        path = join("events", at)
        settings = read(PerturbationSettings, each, path)
        with errors_below(path):
            yield settings.perturbation(cluster)


def _read_profiles(mapping: dict[str, Any], plan: ArrivalPlan) -> tuple[ComparedProfile, ...]:
    """The profiles, each validated as it will run. Its own `learn` and `probes` override the scenario's."""
    profiles: dict[str, ComparedProfile] = {}
    learn, common = mapping.get("learn"), _read_probes(mapping.get("probes"), "probes", plan)
    for at, each in enumerate(read_list(mapping.get("profiles"), "profiles")):
        path = join("profiles", at)
        profile = dict(read_mapping(each, path))
        own = "learn" in profile
        settings = read_mapping(profile.pop("learn", learn), join(path, "learn")) or {"policy": "rosella"}
        dispatchers = read(Dispatchers, profile.pop("dispatchers", None), join(path, "dispatchers"))
        where = join(path, "probes")
        probes = _read_probes(profile.pop("probes"), where, plan) if "probes" in profile else common
        compared = ComparedProfile(str(profile.get("schedulerName")), profile, settings, dispatchers, probes)
        try:
            _ = compared.oracle
            parse_configuration(compared.configuration(0))
        except SettingsError as error:
            raise error.moved(partial(_path_in_scenario, path, own)) from None
        if compared.name in profiles:
            raise SettingsError(join(path, "schedulerName"), f"{compared.name!r} is used twice")
        profiles[compared.name] = compared
    if not profiles:
        raise SettingsError("profiles", "must be a list of at least one profile")
    return tuple(profiles.values())


def _path_in_scenario(profile: str, has_learner: bool, path: str) -> str:
    """The path of a field of a profile's own configuration, whose only profile it is."""
    if has_learner and path.startswith("learn"):
        return join(profile, path)
    return path.replace("profiles[0]", profile)


def _read_probes(values: object, path: str, plan: ArrivalPlan) -> ProbeSettings | None:
    if values is None:
        return None
    if not plan.mean_sizes:
        raise SettingsError(path, "this workload has no classes of known size, which probes need")
    return read(ProbeSettings, values, path)
