"""The experiment on scarce nodes: batches that few of them may run, beside pods that any may run.

All nodes are equally fast, so what differs between schedulers is what they do about constraints. Eight of the
twenty nodes are scarce: arm64, GPU, or a NIC of 100 Gbit/s. Single pods may run everywhere and need most of
the cores; a scheduler that spreads them over all nodes lets the batches wait for nodes that others could
have left free.

Each kind of scarce node has a Poisson stream of batches of its own, as of jobs that bring all their pods at
once. The pods of a batch are of one class and have the same hard constraint. Single pods are one Poisson
stream; some of them prefer nodes.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from rich.table import Table

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL, NIC_GBPS_LABEL
from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.pictures import COLOURS, draw_grid, picture
from eclectus_e2e.demo.schedulers import KUBE_SCHEDULER, SCARCE_SCHEDULERS
from eclectus_e2e.demo.stream.experiment import streams
from eclectus_e2e.demo.stream.plan import LoadLevel, StreamPlan
from eclectus_e2e.demo.stream.plots import draw_waiting
from eclectus_e2e.demo.stream.report import (
    CONSTRAINED,
    FREE,
    PREFERRING,
    LoadReport,
    Report,
    Result,
    Run,
    group,
    stream_report,
)
from eclectus_e2e.demo.stream.tables import busy_warning, faults_table, groups_heading, groups_table
from eclectus_e2e.demo.tables import faults_heading, table_of
from eclectus_e2e.demo.workload.arrivals import Arrival, Mix, NodeConstraint, WorkClass, poisson_arrivals
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec


@dataclass(frozen=True)
class ScarceKind:
    """What the pods of a batch demand, and the share of all pods that come in such batches."""

    constraint: NodeConstraint
    share: float
    gpus: int = 0  # of each pod


@dataclass(frozen=True)
class BatchMix:
    """`free` are the single pods' classes and preferences; batches have its classes in the same shares."""

    free: Mix
    scarce: Sequence[ScarceKind]
    batch: int  # pods


def batch_arrivals(seed: int, per_second: float, seconds: float, mix: BatchMix) -> list[Arrival]:
    """Every arrival of the first `seconds`, in order; `per_second` counts the pods of batches too."""
    free_share = 1.0 - sum(kind.share for kind in mix.scarce)
    found = poisson_arrivals(seed, free_share * per_second, seconds, mix.free)
    for kind in mix.scarce:
        found += _batches(seed, kind.share * per_second / mix.batch, seconds, mix, kind)
    found.sort(key=lambda one: one.at_seconds)
    return [replace(one, number=number) for number, one in enumerate(found)]


def _batches(seed: int, per_second: float, seconds: float, mix: BatchMix, kind: ScarceKind) -> list[Arrival]:
    """The batches of one kind, with random numbers of its own: another kind's rate does not change them."""
    rng = random.Random(f"{seed} {kind.constraint.text}")
    shares = [each.share for each in mix.free.classes]
    found: list[Arrival] = []
    at = rng.expovariate(per_second)
    while at < seconds:
        (drawn,) = rng.choices(mix.free.classes, shares)
        found += [_pod(rng, at, replace(drawn, gpus=kind.gpus), kind.constraint) for _ in range(mix.batch)]
        at += rng.expovariate(per_second)
    return found


def _pod(rng: random.Random, at_seconds: float, kind: WorkClass, constraint: NodeConstraint) -> Arrival:
    """A pod of a batch; its number is given once all pods are sorted."""
    work = rng.gammavariate(kind.shape, kind.work_seconds / kind.shape)
    return Arrival(0, at_seconds, kind, work, constraint)


OVERHEAD_SECONDS = 35.0  # of a run: the scheduler's start, and the end of the last long pods
ARCH, ZONE = "kubernetes.io/arch", "topology.kubernetes.io/zone"
GPU = "h100"
# Number, architecture, NIC and GPU of each machine type: labels drawn one by one would make machines that
# nobody builds.
TYPES: tuple[tuple[int, str, str, str], ...] = (
    (12, "amd64", "10", ""),
    (3, "arm64", "10", ""),
    (2, "amd64", "25", GPU),
    (2, "amd64", "100", ""),
    (1, "amd64", "100", GPU),
)
# Nine of ten pods are short: what a pod waits is mostly what long ones before it take.
CLASSES = (WorkClass("short", 0.9, 1000, 2.5, 4.0), WorkClass("long", 0.1, 1000, 12.0, 9.0))
# A fifth of the single pods prefer something: a kernel that half of the nodes have, or a third's zone.
PREFERENCES = (
    (NodeConstraint(KERNEL_LABEL, ("6.12",), is_hard=False), 0.1),
    (NodeConstraint(ZONE, ("zone-a",), is_hard=False), 0.1),
)
# Of all pods, for each kind. At load 0.8 the batches of a kind then need half of the cores of their nodes.
SHARE = 0.09
MIX = BatchMix(
    Mix(CLASSES, PREFERENCES),
    (
        ScarceKind(NodeConstraint(ARCH, ("arm64",), is_hard=True), SHARE),
        ScarceKind(NodeConstraint(GPU_MODEL_LABEL, (GPU,), is_hard=True), SHARE, gpus=1),
        ScarceKind(NodeConstraint(NIC_GBPS_LABEL, ("100",), is_hard=True), SHARE),
    ),
    batch=8,
)


@dataclass(frozen=True)
class ScarcePlan(StreamPlan):
    """The plan of batches."""

    def arrivals(self, level: LoadLevel, pair: int) -> list[Arrival]:
        """Single pods and batches."""
        return batch_arrivals(self.seed + pair, level.load * self.capacity, level.stream_seconds, MIX)

    @property
    def about_nodes(self) -> str:
        """What is scarce, and who needs it."""
        scarce = ", ".join(one.constraint.text for one in MIX.scarce)
        share = f"{SHARE * len(MIX.scarce):.0%} of the pods come in batches of {MIX.batch}"
        return (
            f"{len(self.nodes)} equally fast nodes, few of each of: {scarce}\n"
            f"  {share} that only one of these kinds of nodes may run"
        )


def scarce_plan(
    loads: Sequence[float], seconds: float, seed: int = 1, schedulers: Sequence[str] | None = None
) -> ScarcePlan:
    """`seconds` for each scheduler at each load; every pod is timed."""
    names = schedulers or SCARCE_SCHEDULERS
    levels = [LoadLevel(load, seconds, 0.0, names, OVERHEAD_SECONDS) for load in loads]
    return ScarcePlan("Batches on scarce nodes", scarce_nodes(), levels, seed, MIX.free)


def scarce_nodes() -> list[NodeSpec]:
    """The nodes of TYPES; zones and kernels are spread over each type."""
    return [
        _node(number, arch, nic, gpu)
        for number, (arch, nic, gpu) in enumerate(
            (each[1:] for each in TYPES for _ in range(each[0])), start=1
        )
    ]


def _node(number: int, arch: str, nic_gbps: str, gpu: str) -> NodeSpec:
    name = f"node-{number:02d}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        ARCH: arch,
        NIC_GBPS_LABEL: nic_gbps,
        ZONE: f"zone-{'abc'[number % 3]}",
        KERNEL_LABEL: ("6.1", "6.12")[number % 2],
    }
    allocatable = dict(ALLOCATABLE)
    if gpu:  # as many GPUs as cores, so that cores alone limit what runs there
        labels[GPU_MODEL_LABEL] = gpu
        allocatable["nvidia.com/gpu"] = allocatable["cpu"]
    return NodeSpec(name=name, group="all", speed=1.0, labels=labels, allocatable=allocatable)


PANELS: list[Any] = [["waits", "responses"], [CONSTRAINED, FREE]]


def draw(report: Report, runs: Sequence[Run], file: Path) -> None:
    """Write the picture as PNG."""
    title = (
        "Batches that few nodes may run, beside pods that any node may run: who waits\n"
        f"{report.nodes} equally fast nodes, load {report.load:g}, seed {report.seed}, the same pods to each"
    )
    with picture(file, 13, 8.5, title) as figure:
        panels = figure.subplot_mosaic(PANELS)
        _bars(panels["waits"], report, "wait_seconds", "wait from creation to start")
        _bars(panels["responses"], report, "response_seconds", "response time, from creation to end")
        for name in (CONSTRAINED, FREE):
            draw_waiting(panels[name], [_only(run, name) for run in runs if run.load == report.load])
            panels[name].set_title(f"Pods waiting that are {name}: lower is better")


def _bars(axes: Axes, report: Report, field: str, what: str) -> None:
    """The mean of each group, a bar for each scheduler."""
    names = list(dict.fromkeys(name for one in report.schedulers.values() for name in one.groups))
    width = 0.8 / len(report.schedulers)
    for number, (scheduler, result) in enumerate(report.schedulers.items()):
        means = [getattr(result.groups[name], field).mean if name in result.groups else 0.0 for name in names]
        places = np.arange(len(names)) - 0.4 + (number + 0.5) * width
        axes.barh(places, means, height=width, color=COLOURS[scheduler], label=scheduler)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(title=f"Mean {what}: lower is better", xlabel="seconds")
    draw_grid(axes)
    axes.legend(frameon=False)


def _only(run: Run, name: str) -> Run:
    """The run with the records of one group alone."""
    members = {pod_name(one) for one in run.arrivals if group(one) == name}
    return replace(run, entries=[entry for entry in run.entries if entry.name in members])


# Row: group and field of its times, both None for the response time of all pods.
ROWS = {
    "constrained pods: mean wait": (CONSTRAINED, "wait_seconds", "mean"),
    "constrained pods: p99 of the wait": (CONSTRAINED, "wait_seconds", "p99"),
    "constrained pods: mean response time": (CONSTRAINED, "response_seconds", "mean"),
    "free pods: mean wait": (FREE, "wait_seconds", "mean"),
    "free pods: mean response time": (FREE, "response_seconds", "mean"),
    "preferring pods: mean response time": (PREFERRING, "response_seconds", "mean"),
}


def tables(report: Report) -> Iterator[Table | str]:
    """For each load the summary and the groups; then what must not happen."""
    for level in report.loads.values():
        yield (
            f"\n[bold]Batches on scarce nodes[/], load {level.load:g}, seed {report.seed}: seconds, in "
            "brackets shares of kube-scheduler's; lower is better but for preferences"
        )
        yield _summary(level)
        yield groups_heading(level.load)
        yield groups_table(level)
    yield from busy_warning(report)
    yield faults_heading(report.sound)
    yield faults_table(report)


def _summary(level: LoadReport) -> Table:
    """A row for each figure, a column for each scheduler."""
    table = table_of(["figure"], level.schedulers)
    baseline = level.schedulers.get(KUBE_SCHEDULER)
    results = level.schedulers.values()
    for row, place in ROWS.items():
        table.add_row(row, *(_seconds(one, baseline, place) for one in results))
    table.add_row("all pods: mean response time", *(f"{one.response_seconds.mean:.2f}" for one in results))
    met = (one.preferences_met for one in results)
    table.add_row("preferences met", *("-" if share is None else f"{share:.0%}" for share in met))
    return table


def _seconds(result: Result, baseline: Result | None, place: tuple[str, str, str]) -> str:
    own = _figure(result, place)
    if own is None:
        return "-"
    other = _figure(baseline, place) if baseline and baseline is not result else None
    return f"{own:.2f} ({own / other:.2f})" if other and isfinite(other) else f"{own:.2f}"


def _figure(result: Result, place: tuple[str, str, str]) -> float | None:
    group, field, figure = place
    return getattr(getattr(result.groups[group], field), figure) if group in result.groups else None


def experiment(options: argparse.Namespace) -> Experiment[StreamPlan, Environment, list[Run], Report]:
    """Batches with hard constraints on few nodes, beside pods that may run anywhere."""
    plan = scarce_plan(options.loads, options.seconds, options.seed, options.schedulers)
    return scarce_experiment(plan, keep=options.keep)


def scarce_experiment(
    plan: ScarcePlan, *, keep: bool = False
) -> Experiment[StreamPlan, Environment, list[Run], Report]:
    """The experiment that carries out a plan."""
    return streams(
        plan,
        "scarce",
        report=stream_report,
        draw=lambda _plan, runs, report, file: draw(report, runs, file),
        tables=lambda _plan, _runs, report: tables(report),
        keep=keep,
    )
