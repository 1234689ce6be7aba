"""Runs of a scenario: one, with a profile and a seed, and batches of them in one process or several.

Results are in the order of the run specs, so the number of processes changes nothing but the time. A run that
fails does not stop the others.
"""

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from msgspec.structs import asdict

from eclectus import __version__
from eclectus.config.configuration import parse as parse_configuration
from eclectus.engine.engine import Engine
from eclectus.model.commands import Command
from eclectus.model.errors import EclectusError
from eclectus.model.events import Event
from eclectus.sim.base import results
from eclectus.sim.base.random_draws import engine_seed
from eclectus.sim.scenario import ComparedProfile, Scenario, parse
from eclectus.sim.workloads.workload import slots
from eclectus.sim.world.learning import LearningErrorRecorder, OracleLearner
from eclectus.sim.world.probes import ProbeStream
from eclectus.sim.world.run_record import (
    AllocationCurve,
    Histogram,
    Integrals,
    RunRecord,
    Tally,
    times_of,
)
from eclectus.sim.world.world import World
from eclectus.tape import Header, TapeWriter


def run(
    scenario: Scenario,
    profile: ComparedProfile,
    seed: int,
    *,
    go_on: Callable[[RunRecord], bool] = lambda record: True,
    tape: Path | None = None,
) -> results.RunResult:
    """Run to the end, or until `go_on` returns False; records the engine's steps if `tape` is given.

    Equal scenario, profile and seed give an equal result. Raises InvariantError, StuckError.
    """
    world = build_world(scenario, profile, seed)
    resource = scenario.plan.allocated_resource
    allocation = AllocationCurve(resource, world.machines) if resource else None
    observers = [allocation.record_step] if allocation is not None else []
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


def build_world(scenario: Scenario, profile: ComparedProfile, seed: int) -> World:
    """A world that has not started; an oracle, if it has one, is notified of perturbations."""
    machines = scenario.cluster.machines()
    configuration = parse_configuration(profile.configuration(engine_seed(seed)))
    oracle: OracleLearner | None = None
    if profile.oracle is not None:
        turnaround = 2.0 * scenario.cluster.network_delay  # the bind to the node, the end from it
        oracle = OracleLearner(profile.oracle, machines, _mean_sizes(scenario), turnaround)
    profiles = profile.dispatchers.profiles(configuration.profiles)
    engine = Engine(profiles, oracle or configuration.learn, configuration.seed)
    probes: ProbeStream | None = None
    if profile.probes is not None:
        sizes, shadows = scenario.plan.mean_sizes, scenario.cluster.machines()
        probes = ProbeStream(profile.probes, engine.learn.learned_load, sizes, shadows, seed)
    grouping = results.Grouping(scenario.measure.groups, scenario.measure.cut_off or 0.0)
    world = World(
        engine,
        machines,
        scenario.arrivals(seed),
        RunRecord(scenario.window(), grouping),
        profiles=profile.dispatchers.names(profile.name),
        perturbations=scenario.perturbations,
        hop_seconds=scenario.cluster.network_delay,
        termination_seconds=scenario.cluster.termination_period,
        probes=probes,
        stages=scenario.plan.stages,
        seed=seed,
        pools=scenario.pools,
        pool_changes=scenario.pool_changes,
        stragglers=scenario.stragglers,
        data=scenario.data,
    )
    if oracle is not None:
        world.on_perturbation = oracle.speeds_changed
    return world


def _result(
    scenario: Scenario,
    profile: ComparedProfile,
    seed: int,
    world: World,
    complete: bool,
    *,
    allocation: dict[int, float],
    learning: LearningErrorRecorder,
) -> results.RunResult:
    record, slot_count = world.record, _slot_count(scenario)
    start = record.window_start or Integrals()
    end = record.window_end or start
    series = list(_points([Integrals(), *record.series.items], slot_count))
    window = list(_points([start, end], slot_count))
    total = _group_result(record.tallies.values())
    return results.RunResult(
        profile=profile.name,
        seed=seed,
        complete=complete,
        tasks=record.arrived,
        seconds=world.now,
        groups={name: _group_results(record, name) for name in record.grouping.requested},
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
        pools=None if world.pool_shares is None else world.pool_shares.result(),
        copies=None if world.copies is None else world.copies.result(),
        locality=None if world.data is None else world.data.locality,
        across_gigabytes=None if world.data is None else world.data.across_gigabytes,
        **asdict(total),
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


def slope(points: Sequence[results.SeriesPoint]) -> float:
    """Least-squares slope of the number in the system, in tasks per second."""
    if len(points) < 2:
        return 0.0
    mean_time = fmean(point.at for point in points)
    mean_number = fmean(point.in_system for point in points)
    variation = sum((point.at - mean_time) ** 2 for point in points)
    return sum((point.at - mean_time) * (point.in_system - mean_number) for point in points) / variation


def _points(samples: Sequence[Integrals], slot_count: float) -> Iterator[results.SeriesPoint]:
    """Means over the interval between each two samples of the integrals."""
    for before, after in pairwise(samples):
        seconds = after.at - before.at
        if seconds:
            number = (after.system_seconds - before.system_seconds) / seconds
            running = (after.busy_seconds - before.busy_seconds) / seconds
            yield results.SeriesPoint(after.at, number, number - running, running / slot_count)


def _group_results(record: RunRecord, name: str) -> dict[str, results.GroupResult]:
    """The groups of one grouping, each merged from all tallies that belong to it."""
    found: dict[str, list[Tally]] = {}
    for labels, tally in record.tallies.items():
        if (group := record.grouping.group_of(name, labels)) is not None:
            found.setdefault(group, []).append(tally)
    return {group: _group_result(found[group]) for group in results.sorted_groups(found)}


def _group_result(tallies: Collection[Tally]) -> results.GroupResult:
    response = _merge(tally.response for tally in tallies)
    slowdown = sum(tally.slowdown for tally in tallies) / max(response.count, 1)
    wait, jobs = _merge(tally.wait for tally in tallies), _merge(tally.jobs for tally in tallies)
    preferring = sum(tally.preferring for tally in tallies)
    met = sum(tally.met for tally in tallies) / preferring if preferring else None
    return results.GroupResult(times_of(response), times_of(wait), times_of(jobs), slowdown, met)


def _merge(parts: Iterable[Histogram]) -> Histogram:
    merged = Histogram()
    for part in parts:
        merged.merge(part)
    return merged


def _mean_sizes(scenario: Scenario) -> dict[str, float]:
    """Mean task sizes by class name, in seconds at speed 1."""
    return {work_class.name: mean for work_class, mean in scenario.plan.mean_sizes.items()}


def _slot_count(scenario: Scenario) -> float:
    """Number of tasks of the smallest class that fill all machines; one per machine if no class is known."""
    machines = scenario.cluster.machines().values()
    counts = (sum(slots(each, machine) for machine in machines) for each in scenario.plan.mean_sizes)
    return float(max(counts, default=len(machines)))


POLL_SECONDS = 0.2  # interval of progress reports

Outcome = results.RunResult | results.RunFailure
Progress = Callable[[int], None]
"""Called with the number of tasks that have ended in all runs together."""


@dataclass(frozen=True)
class RunSpec:
    """One run to make, as plain data that can be sent to any process."""

    text: str  # of the scenario file
    folder: Path
    changes: tuple[str, ...]
    profile: str
    seed: int
    tape: Path | None = None


class StopRequest:
    """Whether a stop has been requested. The first Ctrl-C requests it, the second ends the process."""

    def __init__(self) -> None:
        self.requested = False

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Handles SIGINT within the block."""

        def request(*_: object) -> None:
            self.requested = True
            signal.signal(signal.SIGINT, before)

        before = signal.signal(signal.SIGINT, request)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def run_batch(specs: Sequence[RunSpec], jobs: int, progress: Progress, stop: StopRequest) -> list[Outcome]:
    """The results in the order of the specs, without those that had not begun when a stop was requested."""
    if jobs == 1 or len(specs) == 1:
        return list(_run_in_this_process(specs, progress, stop))
    return _run_in_processes(specs, jobs, progress, stop)


def _run_in_this_process(
    specs: Sequence[RunSpec], progress: Progress, stop: StopRequest
) -> Iterator[Outcome]:
    before = 0
    for spec in specs:
        if stop.requested:
            return

        def go_on(record: RunRecord, before: int = before) -> bool:
            progress(before + record.settled)
            return not stop.requested

        result = _execute(spec, go_on)
        before += result.tasks if isinstance(result, results.RunResult) else 0
        yield result


def _execute(spec: RunSpec, go_on: Callable[[RunRecord], bool]) -> Outcome:
    """The result of the run, or why it failed; a third-party policy may raise anything."""
    scenario = parse(spec.text, spec.folder, spec.changes)
    profile = next(each for each in scenario.profiles if each.name == spec.profile)
    try:
        return run(scenario, profile, spec.seed, go_on=go_on, tape=spec.tape)
    except EclectusError as error:
        return results.RunFailure(spec.profile, spec.seed, str(error))
    except Exception as error:
        where = "".join(traceback.format_exception(error))
        return results.RunFailure(
            spec.profile, spec.seed, f"a defect: {type(error).__name__}: {error}", where
        )


# In a worker: ended tasks by run, and in the last item whether to stop.
_shared: list[MutableSequence[int]] = []


def _run_in_processes(
    specs: Sequence[RunSpec], jobs: int, progress: Progress, stop: StopRequest
) -> list[Outcome]:
    context = multiprocessing.get_context("spawn")  # a new process inherits no state
    counters = cast(MutableSequence[int], context.Array("q", len(specs) + 1))
    count = min(jobs, len(specs))
    with ProcessPoolExecutor(count, context, initializer=_init_worker, initargs=(counters,)) as pool:
        with _sigint_blocked():
            futures = [pool.submit(_run_in_worker, at, spec) for at, spec in enumerate(specs)]
        left: set[Future[Outcome | None]] = set(futures)
        while left:
            done, left = wait(left, POLL_SECONDS, FIRST_COMPLETED)
            if stop.requested or any(future.exception() is not None for future in done):
                counters[-1] = 1
            progress(sum(counters[:-1]))
    try:
        return [found for future in futures if (found := future.result()) is not None]
    except BrokenProcessPool as error:
        raise EclectusError("a process has died, perhaps out of memory: try a smaller --jobs") from error


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Processes started in the block ignore Ctrl-C, which a terminal sends to all."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _init_worker(counters: MutableSequence[int]) -> None:
    _shared.append(counters)


def _run_in_worker(at: int, spec: RunSpec) -> Outcome | None:
    counters = _shared[0]
    if counters[-1]:
        return None

    def go_on(record: RunRecord) -> bool:
        counters[at] = record.settled
        return not counters[-1]

    result = _execute(spec, go_on)
    if isinstance(result, results.RunResult):
        counters[at] = result.tasks  # a short run reports nothing before its end
    return result
