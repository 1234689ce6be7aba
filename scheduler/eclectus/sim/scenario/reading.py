"""Scenario files, read and checked before anything runs.

Unknown fields are named back with the nearest spelling; absurd values are refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from eclectus.api.names import API_VERSION
from eclectus.config.configuration import MAX_BYTES
from eclectus.config.configuration import parse as parse_configuration
from eclectus.config.document import read_yaml
from eclectus.config.reading import join, nearest, read, read_list, read_mapping
from eclectus.model.errors import SettingsError
from eclectus.model.settings import Setting
from eclectus.sim.base.work import Plan
from eclectus.sim.scenario.overrides import apply_change
from eclectus.sim.scenario.scenario import Contestant, Measure, Scenario
from eclectus.sim.workloads.table import WORKLOADS
from eclectus.sim.workloads.work_classes import capacity
from eclectus.sim.workloads.work_classes import load as load_of
from eclectus.sim.world.cluster import Befalls, Cluster
from eclectus.sim.world.dispatchers import Dispatchers
from eclectus.sim.world.perturbations import Shock
from eclectus.sim.world.probes import Probes

KIND = "Scenario"
_PLAIN = ["about", "seeds", "allowUnstable"]
_FIELDS = [
    "apiVersion",
    "kind",
    "cluster",
    "workload",
    "events",
    "profiles",
    "learn",
    "probes",
    "measure",
    *_PLAIN,
]


@dataclass(frozen=True)
class _Plain:
    """The plain fields of a scenario."""

    about: Annotated[str, Setting("one sentence: what it shows")] = ""
    seeds: Annotated[
        int, Setting("runs of each profile", why="an interval needs a few", least=1, most=10_000)
    ] = 5
    allow_unstable: Annotated[bool, Setting("more work may arrive than can ever be done")] = False


def load(path: Path, changes: tuple[str, ...] = ()) -> Scenario:
    """Read, change (`path=value`) and check a file. Raises SettingsError naming file and field."""
    try:
        return parse(read_text(path), path.parent, changes)
    except SettingsError as error:
        raise SettingsError(str(path), str(error)) from None


def read_text(path: Path) -> str:
    """The text of a scenario file. Raises SettingsError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError("", f"is larger than {MAX_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("", f"cannot be read: {error}") from error


def parse(text: str, folder: Path = Path(), changes: tuple[str, ...] = ()) -> Scenario:
    """Check the text of a scenario; files it names are looked for in `folder`. Raises SettingsError."""
    mapping = _document(text, changes)
    plain = read(_Plain, {key: mapping[key] for key in _PLAIN if key in mapping}, "")
    cluster = _read_cluster(mapping.get("cluster"), folder)
    cluster, plan = _read_workload(mapping.get("workload"), cluster, folder)
    measure = read_mapping(mapping.get("measure"), "measure")
    if plan.measured is not None:
        _refuse_window(measure)
    _refuse_homeless(plan, cluster)
    ratio, exact = load_of(plan.work_rates, cluster.machines())
    if isfinite(ratio) and ratio >= 1 and not plain.allow_unstable:
        what = f"the load is {ratio:.3g}: queues would grow without end; lower it, or say allowUnstable: true"
        raise SettingsError("workload", what)
    return Scenario(
        about=plain.about,
        cluster=cluster,
        plan=plan,
        shocks=tuple(_read_shocks(mapping.get("events"), cluster)),
        contestants=_read_contestants(mapping, plan),
        measure=read(Measure, measure, "measure"),
        seeds=plain.seeds,
        load=ratio if isfinite(ratio) else None,
        load_is_exact=exact,
    )


def _document(text: str, changes: tuple[str, ...]) -> dict[str, Any]:
    mapping = read_mapping(read_yaml(text), "")
    for change in changes:
        apply_change(mapping, change)
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if mapping.get(key) != wanted:
            raise SettingsError(key, f"must be {wanted}, not {mapping.get(key)!r}")
    for key in mapping:
        if key not in _FIELDS:
            raise SettingsError(key, f"unknown field; {nearest(key, _FIELDS)}")
    return mapping


def _read_cluster(values: object, folder: Path) -> Cluster:
    cluster = read(Cluster, values, "cluster")
    with _within("cluster"):
        return cluster.within(folder)


def _read_workload(values: object, cluster: Cluster, folder: Path) -> tuple[Cluster, Plan]:
    """The plan, and the machines as the workload knows them."""
    mapping = read_mapping(values, "workload")
    unknown = next((key for key in mapping if key not in WORKLOADS), "")
    if len(mapping) != 1 or unknown:
        hint = nearest(unknown, list(WORKLOADS))
        where = join("workload", unknown) if unknown else "workload"
        raise SettingsError(where, f"must name exactly one kind of workload; {hint}")
    name, settings = next(iter(mapping.items()))
    path = join("workload", name)
    workload = read(WORKLOADS[name], settings, path)
    with _within(path):
        equipped = workload.equip(cluster, folder)
        return equipped, workload.plan(equipped.machines(), folder)


def _refuse_window(measure: dict[str, Any]) -> None:
    for key in ("warmUp", "tasks", "horizon"):
        if key in measure:
            what = "has no place here: the workload itself says which jobs are measured"
            raise SettingsError(join("measure", key), what)


def _refuse_homeless(plan: Plan, cluster: Cluster) -> None:
    machines = cluster.machines().values()
    for kind in plan.mean_sizes:
        if not capacity(kind, machines):
            raise SettingsError("workload", f"class {kind.name!r} can run on no machine of the cluster")


def _read_shocks(values: object, cluster: Cluster) -> Iterator[Shock]:
    for at, each in enumerate(read_list(values, "events")):
        path = join("events", at)
        befalls = read(Befalls, each, path)
        with _within(path):
            shock = befalls.shock(cluster)
        yield shock


def _read_contestants(mapping: dict[str, Any], plan: Plan) -> tuple[Contestant, ...]:
    """Profiles; each is checked alone, as it will run. What stands in one goes before what is common."""
    contestants: dict[str, Contestant] = {}
    learn, common = mapping.get("learn"), _read_probes(mapping.get("probes"), "probes", plan)
    for at, each in enumerate(read_list(mapping.get("profiles"), "profiles")):
        path = join("profiles", at)
        profile = dict(read_mapping(each, path))
        own = "learn" in profile
        settings = read_mapping(profile.pop("learn", learn), join(path, "learn")) or {"policy": "rosella"}
        dispatchers = read(Dispatchers, profile.pop("dispatchers", None), join(path, "dispatchers"))
        where = join(path, "probes")
        probes = _read_probes(profile.pop("probes"), where, plan) if "probes" in profile else common
        contestant = Contestant(str(profile.get("schedulerName")), profile, settings, dispatchers, probes)
        try:
            _ = contestant.truth
            parse_configuration(contestant.configuration(0))
        except SettingsError as error:
            where = error.path.replace("profiles[0]", path)
            raise SettingsError(
                join(path, where) if own and where[:5] == "learn" else where, error.problem
            ) from None
        if contestant.name in contestants:
            raise SettingsError(join(path, "schedulerName"), f"{contestant.name!r} is taken")
        contestants[contestant.name] = contestant
    if not contestants:
        raise SettingsError("profiles", "must be a list of at least one profile")
    return tuple(contestants.values())


def _read_probes(values: object, path: str, plan: Plan) -> Probes | None:
    """What is written there; null sends none."""
    if values is None:
        return None
    if not plan.mean_sizes:
        raise SettingsError(path, "this workload has no classes of known size, of which probes could be")
    return read(Probes, values, path)


@contextmanager
def _within(path: str) -> Iterator[None]:
    """Errors raised here are of fields below `path`."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(join(path, error.path) if error.path else path, error.problem) from None
