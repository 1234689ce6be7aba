"""The experiment on DAG jobs: the operator runs them, one scheduler after another places their pods."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from rich.table import Table

from eclectus_e2e.demo.dags.plan import DagPlans, dag_plans
from eclectus_e2e.demo.dags.report import MUCH_SLOWER, DagReport, Result, make_report, succeeded
from eclectus_e2e.demo.dags.run import DagRun, run_pairs
from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.pictures import COLOURS, draw_grid, picture
from eclectus_e2e.demo.schedulers import CARBYNE, SCHEDULERS
from eclectus_e2e.demo.tables import faults_heading, lateness_warning, table_of
from eclectus_e2e.demo.workload.queries import KINDS
from eclectus_e2e.pairs import mean_interval, verdict

COLUMNS = 2
PANEL_WIDTH, PANEL_HEIGHT = 6.5, 3.6  # inches
WAITING_COLOUR = "#dddddd"


def draw(report: DagReport, runs: Sequence[DagRun], file: Path) -> None:
    """Write the picture of the first pair as PNG."""
    results = report.pairs[0].schedulers
    title = (
        "The same DAG jobs to each scheduler, one after another: when each ran, and how long it took\n"
        f"{report.jobs} jobs on {report.nodes} nodes of hidden speeds, seed {report.seed}"
    )
    names = [*results, "times"]
    rows = [names[at : at + COLUMNS] for at in range(0, len(names), COLUMNS)]
    rows[-1] += ["times"] * (COLUMNS - len(rows[-1]))
    with picture(file, COLUMNS * PANEL_WIDTH, len(rows) * PANEL_HEIGHT, title) as figure:
        panels = figure.subplot_mosaic([list(row) for row in rows])
        longest = max(one.makespan for one in results.values())
        for run in runs[: len(results)]:
            _gantt(panels[run.scheduler], run, results[run.scheduler], longest)
        _draw_times(panels["times"], results)


def _gantt(axes: Axes, run: DagRun, result: Result, longest: float) -> None:
    """A line for each job: grey from its creation to its end, coloured while tasks of it run."""
    first, done = min(run.sent.values()), succeeded(run.entries)
    for line, job in enumerate(result.jobs):
        end = longest if job.ended is None else job.ended
        axes.barh(line, end - job.created, left=job.created, height=0.8, color=WAITING_COLOUR)
        spans = [
            (entry.started - first, entry.finished - first)
            for task, entry in done.items()
            if task.job == job.name
        ]
        bars = [(begin, end - begin) for begin, end in merged(spans)]
        axes.broken_barh(bars, (line - 0.4, 0.8), color=COLOURS[run.scheduler])
    axes.set(
        title=f"{run.scheduler}: mean {result.job_seconds.mean:.1f} s (grey: no task runs; short is better)",
        xlabel="seconds since the first job was created",
        ylabel="jobs, by arrival",
        xlim=(0, longest),
    )
    axes.invert_yaxis()
    axes.set_yticks([])


def merged(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The union of intervals (begin, end), as disjoint ones in order."""
    begin = end = None
    for one in sorted(spans):
        if begin is None or end is None:
            begin, end = one
        elif one[0] <= end:
            end = max(end, one[1])
        else:
            yield begin, end
            begin, end = one
    if begin is not None and end is not None:
        yield begin, end


def _draw_times(axes: Axes, results: Mapping[str, Result]) -> None:
    for name, one in results.items():
        seconds = sorted(job.seconds for job in one.jobs if job.seconds is not None)
        shares = np.arange(1, len(seconds) + 1) / len(one.jobs)
        axes.step(seconds, shares, where="post", color=COLOURS[name], label=name)
    axes.set(
        title="Job completion time: a curve further left is better",
        xlabel="seconds from a job's creation to the end of its last task",
        ylabel="share of jobs",
    )
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    draw_grid(axes)
    axes.legend(frameon=False)


def tables(report: DagReport) -> Iterator[Table | str]:
    """Headings and tables, as rich renders them."""
    count = len(report.pairs)
    several = f", {count} pairs with 95 % intervals" if count > 1 else ""
    yield (
        f"\n[bold]Job completion time[/] of {report.jobs} DAG jobs on {report.nodes} nodes, seed "
        f"{report.seed}{several}: seconds from a job's creation to the end of its last task; lower is better"
    )
    yield _times(report)
    if report.compared:
        yield (
            "\n[bold]Factors[/]: time under the other scheduler over that under Carbyne, of the same jobs; "
            "above 1 Carbyne is faster"
        )
        yield _factors(report)
    late = max(one.late_seconds.p99 for pair in report.pairs for one in pair.schedulers.values())
    yield from lateness_warning(late, "jobs were created")
    yield faults_heading(report.sound)
    yield _faults(report)


def _times(report: DagReport) -> Table:
    table = table_of(["scheduler"], ("mean", "median", "p95", "makespan"))
    for name in report.pairs[0].schedulers:
        times = [
            (one.job_seconds.mean, one.job_seconds.p50, one.job_seconds.p95, one.makespan)
            for one in report.results_of(name)
        ]
        table.add_row(name, *(mean_interval(figures).text(1) for figures in zip(*times, strict=True)))
    return table


def _factors(report: DagReport) -> Table:
    table = table_of(["against"], ("of the means", "median of jobs", f"jobs below {MUCH_SLOWER:g}", ""))
    for name, one in report.compared.items():
        said = verdict(one.mean, more_is_better=True)
        table.add_row(name, one.mean.text(), one.median.text(), one.much_slower.text(), said)
    return table


def _faults(report: DagReport) -> Table:
    table = table_of(
        ["scheduler"],
        ("tasks", "lost", "ran twice", "over-committed", "before a parent", "created late, p99"),
    )
    for name in report.pairs[0].schedulers:
        runs = report.results_of(name)
        counts = [
            sum(each)
            for each in zip(
                *((one.tasks, one.lost, one.doubled, one.overcommitted, one.early) for one in runs),
                strict=True,
            )
        ]
        late = f"{max(one.late_seconds.p99 for one in runs) * 1000:.0f} ms"
        style = "" if all(one.sound for one in runs) else "red"
        table.add_row(name, *map(str, counts), late, style=style)
    return table


def experiment(options: argparse.Namespace) -> Experiment[DagPlans, Environment, list[DagRun], DagReport]:
    """The same DAG jobs to every scheduler. In the full demo --schedulers are those of the stream."""
    schedulers = options.schedulers if options.experiment == "dags" else None
    return dag_experiment(dag_plans(options.seed, options.pairs, schedulers, quick=options.quick))


def dag_experiment(plans: DagPlans) -> Experiment[DagPlans, Environment, list[DagRun], DagReport]:
    """The experiment that carries out the plans, with the chart's operator."""
    return Experiment(
        plans,
        "dags.json",
        "dags.png",
        lambda plans, directory: started(directory, plans.pairs[0].nodes, values=_values()),
        lambda environment, plans, screen: run_pairs(environment, plans.pairs, screen),
        make_report,
        lambda _plans, runs, report, file: draw(report, runs, file),
        lambda _plans, _runs, report: tables(report),
    )


def _values() -> dict[str, Any]:
    """The chart's values: the operator, and a profile for which the chart grants the rights on DagJobs."""
    profile = {"schedulerName": "eclectus", **(SCHEDULERS[CARBYNE].profile or {})}
    shared = {"sharedWorkloads": [kind.name for kind in KINDS]}
    operator = {"enabled": True, "dagJobs": {"enabled": True}}
    return {"operator": operator, "config": {"profiles": [profile], "tenancy": shared}}
