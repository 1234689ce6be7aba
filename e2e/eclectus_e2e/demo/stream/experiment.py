"""The stream experiments: one seeded stream of pods to Eclectus and to its rivals, one after another."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.table import Table

from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.stream.plan import StreamPlan, short_plan, stream_plan
from eclectus_e2e.demo.stream.plots import draw, draw_short
from eclectus_e2e.demo.stream.report import Report, Run, ShortReport, make_short_report, stream_report
from eclectus_e2e.demo.stream.run import run_all
from eclectus_e2e.demo.stream.tables import short_tables, tables
from eclectus_e2e.paths import CLUSTER_DIRECTORY
from eclectus_e2e.testbed.command import ENVIRONMENT_FILE
from eclectus_e2e.testbed.controlplane.plane import environment_text

StreamReport = TypeVar("StreamReport", bound=Report)


def streams(
    plan: StreamPlan,
    name: str,
    *,
    report: Callable[[StreamPlan, Sequence[Run]], StreamReport],
    draw: Callable[[StreamPlan, list[Run], StreamReport, Path], None],
    tables: Callable[[StreamPlan, list[Run], StreamReport], Iterator[Table | str]],
    picture_file: str = "",
    keep: bool = False,
) -> Experiment[StreamPlan, Environment, list[Run], StreamReport]:
    """An experiment that carries out a stream plan; its files have this name.

    With `keep`, control plane and nodes go on running in the place of `make up`.
    """
    source = f"the cluster runs on: source {os.path.relpath(ENVIRONMENT_FILE)}; `make down` ends it"
    return Experiment(
        plan,
        f"{name}.json",
        picture_file or f"{name}.png",
        partial(_started, keep),
        run_all,
        report,
        draw,
        tables,
        note=source if keep else "",
    )


@contextmanager
def _started(keep: bool, plan: StreamPlan, directory: Path) -> Iterator[Environment]:
    """Control plane, the plan's fake nodes and the chart."""
    with started(CLUSTER_DIRECTORY if keep else directory, plan.nodes, keep=keep) as environment:
        yield environment
        if keep:
            ENVIRONMENT_FILE.write_text(environment_text(environment.plane.environment()))


def short(options: argparse.Namespace) -> Experiment[StreamPlan, Environment, list[Run], ShortReport]:
    """Pairs of Eclectus and kube-scheduler at each load; half-way the speeds change."""
    return streams(
        short_plan(options.loads, options.seconds, options.seed, options.pairs),
        "report",
        picture_file="demo.png",
        report=make_short_report,
        draw=draw_short,
        tables=lambda _plan, _runs, report: short_tables(report),
        keep=options.keep,
    )


def stream(options: argparse.Namespace) -> Experiment[StreamPlan, Environment, list[Run], Report]:
    """All pods at the first load to all schedulers, and shorter streams at the others."""
    return streams(
        stream_plan(options.loads, options.seconds, options.seed, options.schedulers),
        "stream",
        report=stream_report,
        draw=lambda plan, runs, report, file: draw(report, runs, plan.nodes, file),
        tables=lambda _plan, _runs, report: tables(report),
        keep=options.keep,
    )
