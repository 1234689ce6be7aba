"""The experiment on stragglers: jobs of ten tasks on 30 nodes of which one is four times slower.

One attempt in twenty takes five times as long, copies included. The same jobs go to Eclectus with and without
`speculate: late`, in alternating pairs; pods say no progress, so what is late is judged by learned speeds and
run times. The same is simulated, as the scenario `stragglers` with tasks of this length.
"""

import argparse
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path

import msgspec
import numpy as np
from rich.table import Table

from eclectus.api.names import STRAGGLERS
from eclectus.maths.copies import SUFFIX
from eclectus.sim.base.results import RunResult
from eclectus_bench.profiles import Part, measure
from eclectus_bench.stragglers import NONE, SCENARIO, STRAGGLING
from eclectus_e2e.demo.dags.plan import DagPlan, Json, dag_job, mean_gap
from eclectus_e2e.demo.dags.report import Result, make_result
from eclectus_e2e.demo.dags.run import DagRun, run_pairs
from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.pictures import COLOURS, draw_grid, picture
from eclectus_e2e.demo.schedulers import COPIES, COPIES_SCHEDULERS, NO_COPIES, SCHEDULERS
from eclectus_e2e.demo.stream.report import Summary, summarise
from eclectus_e2e.demo.tables import faults_heading, lateness_warning, table_of
from eclectus_e2e.demo.workload.pods import NAMESPACE
from eclectus_e2e.demo.workload.queries import Query, Stage, StageKind, arrival_times
from eclectus_e2e.pairs import LEAST_PAIRS, Interval, ratio_interval
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

NODES, SLOWEST = 30, 0.25
CORES = "2"  # of a node; a task takes one
JOBS, QUICK_JOBS, TASKS = 50, 6, 10
WORK = StageKind("work", 1000, 256, (TASKS, TASKS), (4.0, 4.0))
LOAD = 0.5  # what stragglers take is counted in it
SHARE, FACTOR = 0.05, 5.0  # of the attempts, and how much longer they take
UNTIMED = 5  # one job of so many, the first ones, is not timed: nothing is learned yet
RUN_SECONDS = 150.0  # about, of each half of a pair
FIGURES: Mapping[str, Callable[[Summary], float]] = {
    "mean": lambda times: times.mean,
    "p95": lambda times: times.p95,
    "p99": lambda times: times.p99,
}


@dataclass(frozen=True)
class StragglerPlan(DagPlan):
    """The jobs of all pairs. `of` is what each half of one pair gets."""

    pairs: int = LEAST_PAIRS

    def of(self, pair: int) -> DagPlan:
        """The jobs of one pair, which has its own seed."""
        return straggler_plan(self.seed + pair, 1, len(self.jobs))

    @property
    def plans(self) -> list[DagPlan]:
        """The plans of all pairs."""
        return [self.of(pair) for pair in range(self.pairs)]

    def job_object(self, job: Query, scheduler: str) -> Json:
        """The DagJob, whose tasks may have copies and straggle."""
        found = dag_job(job, scheduler, 1.0)
        found["spec"]["speculative"] = True
        for stage in found["spec"]["stages"]:
            stage["template"]["metadata"]["annotations"][STRAGGLERS] = f"{SHARE} {FACTOR} {self.seed}"
        return found

    def __str__(self) -> str:
        minutes = 2 * self.pairs * RUN_SECONDS / 60
        return (
            f"Stragglers: about {minutes:.0f} min\n"
            f"  {NODES} nodes, one of speed {SLOWEST}; jobs of {TASKS} tasks of {WORK.work_seconds[0]:g} s; "
            f"one attempt in {1 / SHARE:.0f} takes {FACTOR:g} times as long\n"
            f"  {len(self.jobs)} jobs at load {LOAD}, the same to {' and '.join(self.schedulers)}; "
            f"{self.pairs} pairs, seeds from {self.seed} on"
        )


def straggler_plan(seed: int, pairs: int, jobs: int = JOBS) -> StragglerPlan:
    """Jobs at a Poisson process's times."""
    nodes = [
        NodeSpec(
            name=name,
            group="all",
            speed=SLOWEST if number == 0 else 1.0,
            labels={"kubernetes.io/hostname": name},
            allocatable={"cpu": CORES, "memory": "16Gi", "pods": "110"},
        )
        for number, name in enumerate(f"node-{each:02d}" for each in range(1, NODES + 1))
    ]
    stages = (Stage("part-0", WORK, TASKS, WORK.work_seconds[0], ()),)
    gap = mean_gap([Query("", 0.0, stages)], nodes, LOAD / STRAGGLING)
    times = arrival_times(seed, jobs, gap)
    drawn = [Query(f"query-{number:02d}", at, stages) for number, at in enumerate(times)]
    return StragglerPlan(nodes, drawn, COPIES_SCHEDULERS, seed, pairs)


class Half(msgspec.Struct, frozen=True):
    """One run: times of the timed jobs, and what became of attempts."""

    scheduler: str
    pair: int
    job_seconds: Summary
    copies: int  # that started
    won: int  # of them, that did the work of their task
    lost: int  # tasks that never completed their work
    overcommitted: int
    late_seconds: float  # of creations, 99th percentile


class StragglerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file build/demo/stragglers.json. Ratios are with copies over without, of the same jobs."""

    seed: int
    jobs: int
    halves: list[Half]
    ratios: dict[str, Interval]
    simulated: dict[str, Interval]
    sound: bool


def straggler_report(plan: StragglerPlan, runs: Sequence[DagRun]) -> StragglerReport:
    """The report of all runs, and the same jobs simulated."""
    halves = [_half(plan.of(at // 2), at // 2, run) for at, run in enumerate(runs)]
    of = {(half.scheduler, half.pair): half.job_seconds for half in halves}
    pairs = [(of[COPIES, pair], of[NO_COPIES, pair]) for pair in range(len(runs) // 2)]
    return StragglerReport(
        seed=plan.seed,
        jobs=len(plan.jobs),
        halves=halves,
        ratios={
            name: ratio_interval([read(copies) / read(none) for copies, none in pairs])
            for name, read in FIGURES.items()
        },
        simulated=simulated(plan, len(pairs)),
        sound=not any(half.lost or half.overcommitted for half in halves),
    )


def _half(plan: DagPlan, pair: int, run: DagRun) -> Half:
    found: Result = make_result(run, plan.jobs, plan.nodes)
    timed = found.jobs[len(found.jobs) // UNTIMED :]
    copies = [entry for entry in run.entries if entry.name.endswith(SUFFIX) and entry.started]
    return Half(
        run.scheduler,
        pair,
        summarise([nan if job.seconds is None else job.seconds for job in timed]),
        len(copies),
        sum(entry.outcome == "succeeded" for entry in copies),
        found.lost,
        found.overcommitted,
        found.late_seconds.p99,
    )


def simulated(plan: StragglerPlan, seeds: int) -> dict[str, Interval]:
    """The ratios of mean and p99 in the simulator, of as many runs of as many jobs."""
    changes = (
        f"measure.tasks={len(plan.jobs) * TASKS}",
        f"measure.warmUp={1 / UNTIMED}",
        f"workload.poisson.load={LOAD / STRAGGLING}",
        "workload.poisson.classes.work.size.law=deterministic",
        f"workload.poisson.classes.work.size.mean={WORK.work_seconds[0]:g}s",
    )
    part = Part(changes, seeds, (NONE, "late-speeds"))
    (found,) = measure(SCENARIO, [part], os.cpu_count() or 1, lambda _: None)
    read: dict[str, Callable[[RunResult], float]] = {
        "mean": lambda run: run.jobs.mean,
        "p99": lambda run: run.jobs.p99,
    }
    both = list(zip(found["late-speeds"], found[NONE], strict=True))
    return {
        name: ratio_interval([figure(copies) / figure(none) for copies, none in both])
        for name, figure in read.items()
    }


def tables(report: StragglerReport) -> Iterator[Table | str]:
    """Ratios, the halves of the pairs, and what must not happen."""
    yield (
        f"\n[bold]Stragglers[/], load {LOAD}: time of jobs with copies over without, "
        f"{report.ratios['mean'].pairs} pairs with 95 % intervals"
    )
    table = table_of(["figure"], ("here", "simulated"))
    for name, found in report.ratios.items():
        table.add_row(name, found.text(), report.simulated[name].text() if name in report.simulated else "-")
    yield table
    table = table_of(["pair", "scheduler"], ("mean, s", "p95", "p99", "copies", "won"))
    for half in report.halves:
        times = (f"{read(half.job_seconds):.1f}" for read in FIGURES.values())
        table.add_row(str(half.pair + 1), half.scheduler, *times, str(half.copies), str(half.won))
    yield table
    yield from lateness_warning(max(half.late_seconds for half in report.halves), "jobs were created")
    yield faults_heading(report.sound)
    counts = (sum(half.lost for half in report.halves), sum(half.overcommitted for half in report.halves))
    yield "{} tasks lost, {} pods over-committed".format(*counts)


def draw(plan: StragglerPlan, runs: Sequence[DagRun], file: Path) -> None:
    """Write the picture as PNG: a line for each run, the times of its jobs."""
    title = f"Jobs of {TASKS} tasks, one attempt in {1 / SHARE:.0f} straggles, load {LOAD}"
    with picture(file, 8, 4.5, title) as figure:
        axes = figure.subplots()
        for at, run in enumerate(runs):
            found = make_result(run, plan.of(at // 2).jobs, plan.nodes)
            times = sorted(job.seconds for job in found.jobs if job.seconds is not None)
            shares = np.arange(1, len(times) + 1) / len(found.jobs)
            label = run.scheduler if at < len(plan.schedulers) else None
            axes.plot(times, shares, color=COLOURS[run.scheduler], linewidth=1.1, label=label)
        axes.set(title="Further left is better", xlabel="seconds of a job", ylabel="share of the jobs")
        draw_grid(axes)
        axes.legend(frameon=False)


def experiment(
    options: argparse.Namespace,
) -> Experiment[StragglerPlan, Environment, list[DagRun], StragglerReport]:
    """Jobs with and without copies, in pairs."""
    jobs = QUICK_JOBS if options.quick else JOBS
    return straggler_experiment(straggler_plan(options.seed, options.pairs, jobs))


def straggler_experiment(
    plan: StragglerPlan,
) -> Experiment[StragglerPlan, Environment, list[DagRun], StragglerReport]:
    """The experiment that carries out a plan, with the chart's operator."""
    profile = {"schedulerName": "eclectus", **(SCHEDULERS[COPIES].profile or {})}
    copies = {"enabled": True, "dagJobs": {"enabled": True}, "copies": {"namespaces": [NAMESPACE]}}
    shared = {"sharedWorkloads": [WORK.name]}
    values = {"operator": copies, "config": {"profiles": [profile], "tenancy": shared}}
    return Experiment(
        plan,
        "stragglers.json",
        "stragglers.png",
        lambda plan, directory: started(directory, plan.nodes, values=values),
        lambda environment, plan, screen: run_pairs(environment, plan.plans, screen),
        straggler_report,
        lambda plan, runs, _report, file: draw(plan, runs, file),
        lambda _plan, _runs, report: tables(report),
    )
