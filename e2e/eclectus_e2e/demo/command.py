"""The command `demo`."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from eclectus_e2e.demo.dags.experiment import DagExperiment
from eclectus_e2e.demo.dags.plan import dag_plan
from eclectus_e2e.demo.experiment import Experiment, run_experiment
from eclectus_e2e.demo.options import (
    COMPARE,
    DAGS,
    FULL,
    PERTURBATIONS,
    REAL,
    SCARCE,
    SHORT,
    STREAM,
    other_commands,
    read_options,
)
from eclectus_e2e.demo.perturbations.experiment import PerturbationExperiment
from eclectus_e2e.demo.perturbations.plan import Settings, quick_settings
from eclectus_e2e.demo.real.experiment import RealExperiment
from eclectus_e2e.demo.scarce.experiment import ScarceExperiment
from eclectus_e2e.demo.scarce.plan import scarce_plan
from eclectus_e2e.demo.schedulers import COMPARED_SCHEDULERS
from eclectus_e2e.demo.short.experiment import ShortExperiment
from eclectus_e2e.demo.short.plan import short_plan
from eclectus_e2e.demo.stream.comparison import ComparisonExperiment, comparison_plan
from eclectus_e2e.demo.stream.experiment import StreamExperiment
from eclectus_e2e.demo.stream.plan import stream_plan
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT, CLUSTER_DIRECTORY
from eclectus_e2e.testbed.processes import recorded

FOLDER = CHECKOUT / "build" / "demo"
PLAIN_WIDTH = 120  # of tables in a file or pipe

AnyExperiment = Experiment[Any, Any, Any, Any]


def demo(arguments: list[str]) -> int:
    """Run the experiment that the arguments name, and return the exit code.

    Writes reports and pictures into build/demo. Exit code 1 if a pod was lost or ran twice, a node was
    over-committed, or a constraint violated.
    """
    options = read_options(arguments)
    if options.keep and any(process.alive for process in recorded(CLUSTER_DIRECTORY)):
        raise UsageError("--keep would replace the cluster that is running: end it with `make down` first")
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    sound = [run_experiment(experiment, FOLDER, console).sound for experiment in _experiments(options)]
    if options.experiment == SHORT:
        console.print(f"other commands:\n{other_commands()}", highlight=False)
    return 0 if all(sound) else 1


def _experiments(options: argparse.Namespace) -> Iterator[AnyExperiment]:
    """What the options ask for, in order."""
    name, seed = options.experiment, options.seed
    if name == SHORT:
        yield ShortExperiment(short_plan(options.load, options.seconds, seed), keep=options.keep)
    if name in (STREAM, FULL):
        yield _stream(options)
    if name in (PERTURBATIONS, FULL):
        yield PerturbationExperiment(quick_settings(seed) if options.quick else Settings(seed=seed))
    if name == COMPARE:
        yield _comparison(options)
    if name == SCARCE:
        plan = scarce_plan(options.load, options.seconds, seed, options.schedulers)
        yield ScarceExperiment(plan, keep=options.keep)
    if name in (DAGS, FULL):  # in the full demo --schedulers are those of the stream
        schedulers = options.schedulers if name == DAGS else None
        yield DagExperiment(dag_plan(seed, schedulers, quick=options.quick))
    if name == REAL:
        yield RealExperiment(seed, options.pairs, quick=options.quick)


def _stream(options: argparse.Namespace) -> StreamExperiment:
    plan = stream_plan(options.load, options.loads, options.seconds, options.seed, options.schedulers)
    return StreamExperiment(plan, keep=options.keep)


def _comparison(options: argparse.Namespace) -> ComparisonExperiment:
    plan = comparison_plan(
        seconds=options.seconds,
        seed=options.seed,
        schedulers=options.schedulers or COMPARED_SCHEDULERS,
        loads=options.loads,
        quick=options.quick,
    )
    return ComparisonExperiment(plan, quick=options.quick)
