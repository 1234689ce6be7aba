"""One run: a scenario, a profile, a seed; and what it told."""

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
from eclectus.sim.base.histogram import Histogram
from eclectus.sim.base.random_streams import engine_seed
from eclectus.sim.base.result_labels import Cell as GroupCell
from eclectus.sim.base.result_labels import Groups, in_order
from eclectus.sim.base.results import Group, Point, Run, Times
from eclectus.sim.scenario.scenario import Contestant, Scenario
from eclectus.sim.workloads.work_classes import slots
from eclectus.sim.world.allocation import Allocation
from eclectus.sim.world.learning_error import Lessons
from eclectus.sim.world.ledger import Ledger, Mark, Tally
from eclectus.sim.world.oracle_learner import OracleLearner
from eclectus.sim.world.probes import Probing
from eclectus.sim.world.world import World
from eclectus.tape import Header, TapeWriter


def run(
    scenario: Scenario,
    contestant: Contestant,
    seed: int,
    *,
    go_on: Callable[[Ledger], bool] = lambda ledger: True,
    tape: Path | None = None,
    checked: bool = False,
) -> Run:
    """Equal scenario, contestant and seed give an equal Run. Raises InvariantError, StuckError."""
    world, told = build(scenario, contestant, seed, checked=checked)
    if told is not None:
        world.on_shock = told.look_again
    resource = scenario.plan.allocation_of
    allocation = Allocation(resource, world.machines) if resource else None
    ears = [] if allocation is None else [allocation.hear]
    with ExitStack() as opened:
        if tape is not None:
            header = Header(__version__, contestant.configuration(engine_seed(seed)), engine_seed(seed))
            ears.append(opened.enter_context(TapeWriter(tape, header)).step)

        def told_all(now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
            for hear in ears:
                hear(now, events, commands)

        world.told = told_all if ears else None
        lessons = Lessons(world, _means(scenario), scenario.window().expected_end)
        complete = world.run(go_on)
    curve = {} if allocation is None else allocation.curve
    return _told(scenario, contestant, seed, world, complete, allocation=curve, lessons=lessons)


def build(
    scenario: Scenario, contestant: Contestant, seed: int, *, checked: bool = False
) -> tuple[World, OracleLearner | None]:
    """A world that has not begun, and the learner that must hear of shocks, if there is one."""
    machines = scenario.cluster.machines()
    configuration = parse(contestant.configuration(engine_seed(seed)))
    told: OracleLearner | None = None
    if contestant.truth is not None:
        told = OracleLearner(contestant.truth, machines, _means(scenario))
    profiles = contestant.dispatchers.profiles(configuration.profiles)
    engine = Engine(profiles, told or configuration.learn, configuration.seed)
    world = World(
        engine,
        machines,
        scenario.arrivals(seed),
        Ledger(scenario.window(), scenario.groups()),
        profiles=contestant.dispatchers.names(contestant.name),
        shocks=scenario.shocks,
        hop_seconds=scenario.cluster.network_delay,
        checked=checked,
        probing=_probing(scenario, contestant, engine, seed),
    )
    return world, told


def _probing(scenario: Scenario, contestant: Contestant, engine: Engine, seed: int) -> Probing | None:
    if contestant.probes is None:
        return None
    sizes, shadows = scenario.plan.mean_sizes, scenario.cluster.machines()
    return Probing(contestant.probes, engine.learned_load, sizes, shadows, seed)


def _told(
    scenario: Scenario,
    contestant: Contestant,
    seed: int,
    world: World,
    complete: bool,
    *,
    allocation: dict[int, float],
    lessons: Lessons,
) -> Run:
    ledger = world.ledger
    opened = ledger.opened or Mark()
    closed = ledger.closed or opened
    series = list(_points([Mark(), *ledger.series.items], _places(scenario)))
    window = list(_points([opened, closed], _places(scenario)))
    whole = _group(ledger.tallies.values())
    return Run(
        profile=contestant.name,
        seed=seed,
        complete=complete,
        tasks=ledger.arrived,
        seconds=world.now,
        response=whole.response,
        wait=whole.wait,
        jobs=whole.jobs,
        slowdown=whole.slowdown,
        groups={name: _groups(ledger.groups, name, ledger.tallies) for name in ledger.groups.asked},
        measured_from=opened.at,
        measured_until=closed.at,
        in_system_mean=window[0].in_system if window else 0.0,
        waiting_most=ledger.most_waiting,
        dropped=ledger.dropped,
        allocation=allocation,
        utilisation=window[0].utilisation if window else 0.0,
        growth=slope([point for point in series if opened.at < point.at <= closed.at]),
        series=series,
        learned=lessons.learned,
        lessons=lessons.told(),
        steps=world.steps,
        faults=world.fault_count,
        first_fault=world.first_fault,
        **_probed(world, scenario, closed.at),
    )


def _probed(world: World, scenario: Scenario, until: float) -> dict[str, Any]:
    """What probes were sent, and what they took of all slots, until nothing more arrived."""
    probing = world.probing
    if probing is None:
        return {}
    slot_seconds = until * _places(scenario)
    share = probing.seconds(world.now) / slot_seconds if slot_seconds else 0.0
    return {"probes": probing.ended, "probes_killed": probing.killed, "probe_share": share}


def slope(points: Sequence[Point]) -> float:
    """Least squares slope of the number in system, tasks a second."""
    if len(points) < 2:
        return 0.0
    mean = fmean(point.at for point in points)
    middle = fmean(point.in_system for point in points)
    spread = sum((point.at - mean) ** 2 for point in points)
    return sum((point.at - mean) * (point.in_system - middle) for point in points) / spread


def _points(marks: Sequence[Mark], places: float) -> Iterator[Point]:
    """Means between integrals."""
    for before, mark in pairwise(marks):
        seconds = mark.at - before.at
        if seconds:
            number = (mark.system_seconds - before.system_seconds) / seconds
            running = (mark.busy_seconds - before.busy_seconds) / seconds
            yield Point(mark.at, number, number - running, running / places)


def _groups(groups: Groups, name: str, tallies: Mapping[GroupCell, Tally]) -> dict[str, Group]:
    """The groups by one name, from cells, which are finer."""
    found: dict[str, list[Tally]] = {}
    for cell, tally in tallies.items():
        group = groups.group(name, cell)
        if group is not None:
            found.setdefault(group, []).append(tally)
    return {group: _group(found[group]) for group in in_order(found)}


def _group(tallies: Collection[Tally]) -> Group:
    response = _merged(tally.response for tally in tallies)
    slowdown = sum(tally.slowdown for tally in tallies) / max(response.count, 1)
    wait, jobs = (_merged(tally.wait for tally in tallies), _merged(tally.jobs for tally in tallies))
    return Group(_times(response), _times(wait), _times(jobs), slowdown)


def _merged(parts: Iterable[Histogram]) -> Histogram:
    whole = Histogram()
    for part in parts:
        whole.join(part)
    return whole


def _times(sample: Histogram) -> Times:
    p50, p90, p99, p999 = (sample.quantile(share) for share in (0.5, 0.9, 0.99, 0.999))
    buckets = dict(sorted(sample.buckets.items()))
    return Times(sample.count, sample.mean, p50, p90, p99, p999, sample.largest, buckets)


def _means(scenario: Scenario) -> dict[str, float]:
    """Mean sizes by workload."""
    return {kind.name: mean for kind, mean in scenario.plan.mean_sizes.items()}


def _places(scenario: Scenario) -> float:
    """Tasks that run at a time when all machines are full of the kind that fits them most often.

    One a machine where nothing is known of kinds.
    """
    machines = scenario.cluster.machines().values()
    kinds = scenario.plan.mean_sizes
    most = (sum(slots(kind.spec, machine) for machine in machines) for kind in kinds)
    return float(max(most, default=len(machines)))
