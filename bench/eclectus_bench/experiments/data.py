"""The experiment on data: pods whose input three of thirty nodes have, with and without delay scheduling.

All nodes are equally fast, so what differs between the two profiles of Eclectus is whether a pod waits some
seconds for a node that has its input. Two experiments follow each other: in one a pod takes twice as long
on any other node, in the other it takes as long everywhere, which Eclectus has to find out.
"""

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import asdict
from rich.table import Table

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.pictures import COLOURS, draw_grid, picture
from eclectus_e2e.demo.schedulers import DATA_SCHEDULERS, DELAY, NO_DELAY
from eclectus_e2e.demo.stream.experiment import streams
from eclectus_e2e.demo.stream.plan import SHORT_OVERHEAD_SECONDS, LoadLevel, StreamPlan
from eclectus_e2e.demo.stream.report import Report, Run, Summary, stream_report, summarise
from eclectus_e2e.demo.stream.tables import busy_warning, faults_table
from eclectus_e2e.demo.tables import faults_heading, judged, table_of
from eclectus_e2e.demo.workload.arrivals import Arrival, Mix, WorkClass
from eclectus_e2e.pairs import EQUAL, LEAST_PAIRS, WON, Interval, mean_interval, ratio_interval, verdict
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec

NODES, COPIES = 30, 3
TWICE = 2.0  # times as long a pod takes without its input beside it
MIX = Mix([WorkClass("scan", 1.0, 1000, 4.0, 9.0)])
LOCATED, SLOWER = 0.9, 1.05  # aims: at least so many starts at the data; at most so much of the mean without


@dataclass(frozen=True)
class DataPlan(StreamPlan):
    """The plan of pods with data; load 1 is what the nodes do if each pod runs beside its data."""

    remote: float = TWICE

    def arrivals(self, level: LoadLevel, pair: int) -> list[Arrival]:
        """The pods of one pair; each has its data on nodes drawn uniformly."""
        drawn = random.Random(f"{self.seed + pair} data")
        names = [node.name for node in self.nodes]
        return [
            replace(one, data=tuple(drawn.sample(names, COPIES)), remote=self.remote)
            for one in super().arrivals(level, pair)
        ]

    @property
    def about_nodes(self) -> str:
        """What is where, and what it costs to be elsewhere."""
        return (
            f"{len(self.nodes)} equally fast nodes; {COPIES} have the data of a pod, which takes "
            f"{self.remote:g} times as long on any other"
        )


def data_plan(options: argparse.Namespace, remote: float) -> DataPlan:
    """`seconds` for each profile in each pair; every pod is timed."""
    levels = [
        LoadLevel(load, options.seconds, 0.0, DATA_SCHEDULERS, SHORT_OVERHEAD_SECONDS)
        for load in options.loads
    ]
    title = f"Data, {remote:g} times as long elsewhere"
    return DataPlan(title, _nodes(), levels, options.seed, MIX, pairs=options.pairs, remote=remote)


def _nodes() -> list[NodeSpec]:
    return [
        NodeSpec(
            name=name,
            group="all",
            speed=1.0,
            labels={"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"},
            allocatable=dict(ALLOCATABLE),
        )
        for name in (f"node-{number:02d}" for number in range(1, NODES + 1))
    ]


class Compared(msgspec.Struct, frozen=True):
    """What delay scheduling brings at one load, means over the pairs with their intervals."""

    located: dict[str, Interval]  # by profile: share of the starts that are at the data
    mean: dict[str, Interval]  # response time, seconds
    p99: dict[str, Interval]
    wait: dict[str, Interval]  # from creation to start, mean, seconds
    ratio: Interval  # of the mean response times, with waits over without, within the pairs


class DataReport(Report, frozen=True, kw_only=True):
    """The file: what every stream experiment has, and the comparison at each load."""

    remote: float  # how many times as long a pod takes without its input
    compared: dict[str, Compared]


def located(run: Run) -> float:
    """The share of a run's starts that are on nodes with the data of the pod."""
    by_name = run.by_name
    starts = [entry.node in by_name[entry.name].data for entry in run.entries if entry.started]
    return sum(starts) / len(starts) if starts else nan


def compared(runs: Sequence[Run]) -> Compared:
    """The figures of runs at one load."""
    of = {name: [run for run in runs if run.scheduler == name] for name in DATA_SCHEDULERS}

    def figures(read: Callable[[Run], float]) -> dict[str, Interval]:
        return {name: mean_interval([read(run) for run in mine]) for name, mine in of.items()}

    halves = {(run.scheduler, run.pair): _responses(run).mean for run in runs}
    both = {pair for name, pair in halves if (DELAY, pair) in halves and (NO_DELAY, pair) in halves}
    return Compared(
        figures(located),
        figures(lambda run: _responses(run).mean),
        figures(lambda run: _responses(run).p99),
        figures(lambda run: summarise([pod.wait_seconds for pod in run.timed()]).mean),
        ratio_interval([halves[DELAY, pair] / halves[NO_DELAY, pair] for pair in sorted(both)]),
    )


def _responses(run: Run) -> Summary:
    return summarise([pod.response_seconds for pod in run.timed()])


def data_report(plan: DataPlan, runs: Sequence[Run]) -> DataReport:
    """The report of all runs of a plan."""
    by_load = {f"{load:g}": [run for run in runs if run.load == load] for load in {run.load for run in runs}}
    found = {load: compared(mine) for load, mine in sorted(by_load.items())}
    return DataReport(**asdict(stream_report(plan, runs)), remote=plan.remote, compared=found)


# -- what is shown ---------------------------------------------------------------------------------


def tables(report: DataReport) -> Iterator[Table | str]:
    """For each load the two profiles, then what must not happen."""
    for load, found in report.compared.items():
        yield (
            f"\n[bold]Data[/], {report.remote:g} times as long elsewhere, load {load}, "
            f"{found.ratio.pairs} pairs: means with their 95 % intervals; times in seconds"
        )
        table = table_of(["profile"], ("starts at the data", "response, mean", "p99", "wait, mean"))
        for name in DATA_SCHEDULERS:
            times = (each[name].text() for each in (found.mean, found.p99, found.wait))
            table.add_row(name, found.located[name].text(3), *times)
        yield table
        yield f"mean with waits over without: {found.ratio.text(3)}: {_aims(report.remote, found)}"
    yield from busy_warning(report)
    yield faults_heading(report.sound)
    yield faults_table(report)


def _aims(remote: float, found: Compared) -> str:
    """The aims and whether they are met; that is not said of few pairs."""
    if found.ratio.pairs < LEAST_PAIRS:
        return f"no verdict from {found.ratio.pairs} of at least {LEAST_PAIRS} pairs"
    if remote == 1.0:
        return f"equal is aimed at, {judged(verdict(found.ratio) in (EQUAL, WON))}"
    met = found.located[DELAY].mean >= LOCATED and found.ratio.mean <= SLOWER
    return f"at most {SLOWER:g} with {LOCATED:g} at the data are aimed at, {judged(met)}"


def draw(report: DataReport, runs: Sequence[Run], file: Path) -> None:
    """Write the picture as PNG: a line for each run, the response times of its pods."""
    title = (
        f"Pods that take {report.remote:g} times as long away from their data, load {report.load:g}\n"
        f"{report.nodes} equally fast nodes, of which {COPIES} have the data of a pod"
    )
    with picture(file, 8, 4.5, title) as figure:
        axes = figure.subplots()
        for run in (each for each in runs if each.load == report.load):
            times = sorted(pod.response_seconds for pod in run.timed())
            label = run.scheduler if run.pair == 0 else None
            shares = np.arange(1, len(times) + 1) / max(len(times), 1)
            axes.plot(times, shares, color=COLOURS[run.scheduler], linewidth=1.1, label=label)
        axes.set(title="Further left is better", xlabel="response time, s", ylabel="share of the pods")
        draw_grid(axes)
        axes.legend(frameon=False)


def slower_elsewhere(
    options: argparse.Namespace,
) -> Experiment[StreamPlan, Environment, list[Run], DataReport]:
    """A pod takes twice as long without its input beside it."""
    return data_experiment(data_plan(options, TWICE), "data", keep=False)


def equal_everywhere(
    options: argparse.Namespace,
) -> Experiment[StreamPlan, Environment, list[Run], DataReport]:
    """A pod takes as long everywhere: nothing is to be waited for."""
    return data_experiment(data_plan(options, 1.0), "data-equal", keep=options.keep)


def data_experiment(
    plan: DataPlan, name: str, *, keep: bool = False
) -> Experiment[StreamPlan, Environment, list[Run], DataReport]:
    """The experiment that carries out a plan."""
    return streams(
        plan,
        name,
        report=lambda _plan, runs: data_report(plan, runs),
        draw=lambda _plan, runs, report, file: draw(report, runs, file),
        tables=lambda _plan, _runs, report: tables(report),
        keep=keep,
    )
