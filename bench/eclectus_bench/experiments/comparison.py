"""The comparison of five schedulers on sixty nodes, where one class ranks the nodes differently.

Each scheduler gets the same stream at three loads and starts with nothing learned. Every pod is measured,
also those that arrive before any speed is known. The table also has the ratios without the first 15 s: in
so short a stream the pods that were placed without knowledge alone make up the slowest hundredth.

A load is a share of what the nodes complete when each runs the same mix, which is the capacity for a
scheduler that knows no speeds, so every scheduler is stable at each load. The lower the load, the longer
the stream, so that each has the same number of pods: learning and the 99th percentile depend on that number.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from rich.table import Table

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.schedulers import COMPARED_SCHEDULERS, ECLECTUS
from eclectus_e2e.demo.stream.experiment import streams
from eclectus_e2e.demo.stream.plan import LoadLevel, StreamPlan
from eclectus_e2e.demo.stream.plots import draw
from eclectus_e2e.demo.stream.report import Report, Run, Summary, stream_report
from eclectus_e2e.demo.tables import judged, table_of
from eclectus_e2e.demo.workload.mixed import best_capacity, mix, mixed_nodes
from eclectus_e2e.errors import UsageError

# Load: targets for mean and 99th percentile of Eclectus' response times, as shares of kube-scheduler's.
TARGETS = {0.5: (0.55, 0.35), 0.8: (0.75, 0.55), 0.9: (0.95, 0.75)}
LOADS = sorted(TARGETS)
NODES_PER_GROUP, QUICK_NODES_PER_GROUP = 15, 2
WORK_SCALE, QUICK_WORK_SCALE = 1.7, 0.4  # of mixed.py's work: 29 pods a second at load 0.9; 9 at load 0.5
LEARNING_SECONDS, QUICK_LEARNING_SECONDS = 15.0, 4.0


def comparison_plan(
    *, seconds: float, seed: int, schedulers: Sequence[str], loads: Sequence[float], quick: bool = False
) -> StreamPlan:
    """`seconds` at the highest of LOADS; `quick`: eight nodes with short work."""
    nodes = mixed_nodes(QUICK_NODES_PER_GROUP if quick else NODES_PER_GROUP, seed)
    levels = [LoadLevel(load, seconds * LOADS[-1] / load, 0.0, schedulers) for load in loads]
    return StreamPlan("Comparison", nodes, levels, seed, mix(QUICK_WORK_SCALE if quick else WORK_SCALE))


def experiment(options: argparse.Namespace) -> Experiment[StreamPlan, Environment, list[Run], Report]:
    """The comparison, held to TARGETS. Raises UsageError for a load without targets."""
    if not set(options.loads) <= set(LOADS):
        known, given = (", ".join(f"{one:g}" for one in each) for each in (LOADS, options.loads))
        raise UsageError(f"the comparison has targets for loads {known} only; it was given {given}")
    plan = comparison_plan(
        seconds=options.seconds,
        seed=options.seed,
        schedulers=options.schedulers or COMPARED_SCHEDULERS,
        loads=options.loads,
        quick=options.quick,
    )
    return comparison_experiment(plan, quick=options.quick)


def comparison_experiment(
    plan: StreamPlan, *, quick: bool = False
) -> Experiment[StreamPlan, Environment, list[Run], Report]:
    """The experiment that carries out a plan."""
    return streams(
        plan,
        "comparison",
        report=stream_report,
        draw=lambda plan, runs, report, file: draw(report, runs, plan.nodes, file),
        tables=partial(tables, QUICK_LEARNING_SECONDS if quick else LEARNING_SECONDS),
    )


def tables(
    learning_seconds: float, plan: StreamPlan, runs: Sequence[Run], report: Report
) -> Iterator[Table | str]:
    """Response times and their ratios, of all pods and of those after the first seconds."""
    later = [replace(run, warm_seconds=learning_seconds) for run in runs]
    head = f"\n[bold]Response time[/] on {len(plan.nodes)} nodes, seed {plan.seed}; lower is better"
    yield f"{head}. Ratios: mean and p99 over kube-scheduler's"
    yield _table(report, stream_report(plan, later), learning_seconds)
    yield (
        f"load 1 is {plan.capacity:.1f} pods a second, with the same mix on every node; with each class "
        f"where it is fastest, {best_capacity(plan.nodes, plan.mix):.1f} would be possible"
    )


def _table(report: Report, later: Report, learning_seconds: float) -> Table:
    """Response times; mean and 99th percentile as shares of kube-scheduler's, of all and of later pods."""
    table = table_of(
        ["load", "scheduler"], ("mean", "p99", "ratios", "target", "", f"ratios after {learning_seconds:g} s")
    )
    for level in report.loads.values():
        for name, result in level.schedulers.items():
            times = (f"{result.response_seconds.mean:.2f} s", f"{result.response_seconds.p99:.2f} s")
            judged = _judged(level.ratios.get(name), level.load, name)
            ratio = later.loads[f"{level.load:g}"].ratios.get(name)
            table.add_row(f"{level.load:g}", name, *times, *judged, _shares(ratio))
        table.add_section()
    return table


def _judged(ratio: Summary | None, load: float, name: str) -> tuple[str, str, str]:
    """The shares, and for Eclectus the targets and whether they were met."""
    if ratio is None or name != ECLECTUS:
        return _shares(ratio), "", ""
    mean, p99 = TARGETS[load]
    met = ratio.mean <= mean and ratio.p99 <= p99
    return _shares(ratio), f"{mean:.2f}, {p99:.2f}", judged(met)


def _shares(ratio: Summary | None) -> str:
    return f"{ratio.mean:.2f}, {ratio.p99:.2f}" if ratio else ""
