"""One run of a scenario with one profile and one seed, and its result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from eclectus import __version__
from eclectus.config import parse
from eclectus.engine.engine import Engine
from eclectus.model.commands import Command
from eclectus.model.events import Event
from eclectus.sim.base.random_draws import engine_seed
from eclectus.sim.base.result_labels import Grouping, Labels, sorted_groups
from eclectus.sim.base.results import GroupResult, RunResult, SeriesPoint, Times
from eclectus.sim.base.samples import Histogram
from eclectus.sim.scenario.scenario import ComparedProfile, Scenario
from eclectus.sim.workloads.work_classes import slots
from eclectus.sim.world.allocation import AllocationCurve
from eclectus.sim.world.learning_error import LearningErrorRecorder
from eclectus.sim.world.oracle_learner import OracleLearner
from eclectus.sim.world.probes import ProbeStream
from eclectus.sim.world.run_record import Integrals, RunRecord, Tally
from eclectus.sim.world.world import World
from eclectus.tape import Header, TapeWriter


def run(
    scenario: Scenario,
    profile: ComparedProfile,
    seed: int,
    *,
    go_on: Callable[[RunRecord], bool] = lambda record: True,
    tape: Path | None = None,
    checked: bool = False,
) -> RunResult:
    """Run to the end, or until `go_on` returns False; records the engine's steps if `tape` is given.

    Equal scenario, profile and seed give an equal result. Raises InvariantError, StuckError.
    """
    world, oracle = build_world(scenario, profile, seed, checked=checked)
    if oracle is not None:
        world.on_perturbation = oracle.speeds_changed
    resource = scenario.plan.allocated_resource
    allocation = AllocationCurve(resource, world.machines) if resource else None
    observers = [] if allocation is None else [allocation.record_step]
    with ExitStack() as opened:
        if tape is not None:
            header = Header(__version__, profile.configuration(engine_seed(seed)), engine_seed(seed))
            observers.append(opened.enter_context(TapeWriter(tape, header)).step)

        def observe(now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
            for observer in observers:
                observer(now, events, commands)

        world.on_step = observe if observers else None
        learning = LearningErrorRecorder(world, _mean_sizes(scenario), scenario.window().expected_end)
        complete = world.run(go_on)
    curve = {} if allocation is None else allocation.curve
    return _result(scenario, profile, seed, world, complete, allocation=curve, learning=learning)


def build_world(
    scenario: Scenario, profile: ComparedProfile, seed: int, *, checked: bool = False
) -> tuple[World, OracleLearner | None]:
    """A world that has not started, and its oracle, if any, to be notified of perturbations."""
    machines = scenario.cluster.machines()
    configuration = parse(profile.configuration(engine_seed(seed)))
    oracle: OracleLearner | None = None
    if profile.oracle is not None:
        oracle = OracleLearner(profile.oracle, machines, _mean_sizes(scenario))
    profiles = profile.dispatchers.profiles(configuration.profiles)
    engine = Engine(profiles, oracle or configuration.learn, configuration.seed)
    world = World(
        engine,
        machines,
        scenario.arrivals(seed),
        RunRecord(scenario.window(), scenario.grouping()),
        profiles=profile.dispatchers.names(profile.name),
        perturbations=scenario.perturbations,
        hop_seconds=scenario.cluster.network_delay,
        termination_seconds=scenario.cluster.termination_period,
        checked=checked,
        probes=_probe_stream(scenario, profile, engine, seed),
        stages=scenario.plan.stages,
        seed=seed,
    )
    return world, oracle


def _probe_stream(
    scenario: Scenario, profile: ComparedProfile, engine: Engine, seed: int
) -> ProbeStream | None:
    if profile.probes is None:
        return None
    sizes, shadows = scenario.plan.mean_sizes, scenario.cluster.machines()
    return ProbeStream(profile.probes, engine.learned_load, sizes, shadows, seed)


# -- the result ------------------------------------------------------------------------------------


def _result(
    scenario: Scenario,
    profile: ComparedProfile,
    seed: int,
    world: World,
    complete: bool,
    *,
    allocation: dict[int, float],
    learning: LearningErrorRecorder,
) -> RunResult:
    record, slot_count = world.record, _slot_count(scenario)
    start = record.window_start or Integrals()
    end = record.window_end or start
    series = list(_points([Integrals(), *record.series.items], slot_count))
    window = list(_points([start, end], slot_count))
    total = _group_result(record.tallies.values())
    return RunResult(
        profile=profile.name,
        seed=seed,
        complete=complete,
        tasks=record.arrived,
        seconds=world.now,
        response=total.response,
        wait=total.wait,
        jobs=total.jobs,
        slowdown=total.slowdown,
        met=total.met,
        groups={
            name: _group_results(record.grouping, name, record.tallies) for name in record.grouping.requested
        },
        measured_from=start.at,
        measured_until=end.at,
        in_system_mean=window[0].in_system if window else 0.0,
        waiting_most=record.peak_waiting,
        evictions=record.evictions,
        dropped=record.dropped,
        allocation=allocation,
        utilisation=window[0].utilisation if window else 0.0,
        growth=slope([point for point in series if start.at < point.at <= end.at]),
        series=series,
        learned=learning.learned,
        learning_errors=learning.errors(),
        steps=world.steps,
        faults=world.fault_count,
        first_fault=world.first_fault,
        dags=world.dags.result() if world.dags.has_jobs else None,
        **_probe_results(world, slot_count, end.at),
    )


def _probe_results(world: World, slot_count: float, until: float) -> dict[str, Any]:
    """Numbers of probes, and their share of all slots until the last arrival."""
    probes = world.probes
    if probes is None:
        return {}
    slot_seconds = until * slot_count
    share = probes.slot_seconds(world.now) / slot_seconds if slot_seconds else 0.0
    return {"probes": probes.ended, "probes_killed": probes.killed, "probe_share": share}


def slope(points: Sequence[SeriesPoint]) -> float:
    """Least-squares slope of the number in the system, in tasks per second."""
    if len(points) < 2:
        return 0.0
    mean_time = fmean(point.at for point in points)
    mean_number = fmean(point.in_system for point in points)
    variation = sum((point.at - mean_time) ** 2 for point in points)
    return sum((point.at - mean_time) * (point.in_system - mean_number) for point in points) / variation


def _points(samples: Sequence[Integrals], slot_count: float) -> Iterator[SeriesPoint]:
    """Means over the interval between each two samples of the integrals."""
    for before, after in pairwise(samples):
        seconds = after.at - before.at
        if seconds:
            number = (after.system_seconds - before.system_seconds) / seconds
            running = (after.busy_seconds - before.busy_seconds) / seconds
            yield SeriesPoint(after.at, number, number - running, running / slot_count)


def _group_results(grouping: Grouping, name: str, tallies: Mapping[Labels, Tally]) -> dict[str, GroupResult]:
    """The groups of one grouping, each merged from all tallies that belong to it."""
    found: dict[str, list[Tally]] = {}
    for labels, tally in tallies.items():
        group = grouping.group_of(name, labels)
        if group is not None:
            found.setdefault(group, []).append(tally)
    return {group: _group_result(found[group]) for group in sorted_groups(found)}


def _group_result(tallies: Collection[Tally]) -> GroupResult:
    response = _merge(tally.response for tally in tallies)
    slowdown = sum(tally.slowdown for tally in tallies) / max(response.count, 1)
    wait, jobs = (_merge(tally.wait for tally in tallies), _merge(tally.jobs for tally in tallies))
    preferring = sum(tally.preferring for tally in tallies)
    met = sum(tally.met for tally in tallies) / preferring if preferring else None
    return GroupResult(_times(response), _times(wait), _times(jobs), slowdown, met)


def _merge(parts: Iterable[Histogram]) -> Histogram:
    merged = Histogram()
    for part in parts:
        merged.merge(part)
    return merged


def _times(sample: Histogram) -> Times:
    p50, p90, p99, p999 = (sample.quantile(share) for share in (0.5, 0.9, 0.99, 0.999))
    buckets = dict(sorted(sample.buckets.items()))
    return Times(sample.count, sample.mean, p50, p90, p99, p999, sample.largest, buckets)


def _mean_sizes(scenario: Scenario) -> dict[str, float]:
    """Mean task sizes by class name, in seconds at speed 1."""
    return {work_class.name: mean for work_class, mean in scenario.plan.mean_sizes.items()}


def _slot_count(scenario: Scenario) -> float:
    """Number of tasks of the smallest class that fill all machines; one per machine if no class is known."""
    machines = scenario.cluster.machines().values()
    work_classes = scenario.plan.mean_sizes
    counts = (sum(slots(work_class.spec, machine) for machine in machines) for work_class in work_classes)
    return float(max(counts, default=len(machines)))
