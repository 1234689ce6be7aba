"""The command `demo`."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from eclectus_e2e.demo.experiment import Experiment, run_experiment
from eclectus_e2e.demo.perturbations.experiment import PerturbationExperiment
from eclectus_e2e.demo.perturbations.plan import Settings
from eclectus_e2e.demo.real.experiment import RealExperiment
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.demo.stream.comparison import LOADS as COMPARED_LOADS
from eclectus_e2e.demo.stream.comparison import SECONDS as COMPARED_SECONDS
from eclectus_e2e.demo.stream.comparison import ComparisonExperiment, comparison_plan
from eclectus_e2e.demo.stream.experiment import StreamExperiment
from eclectus_e2e.demo.stream.plan import stream_plan
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT, CLUSTER_DIRECTORY
from eclectus_e2e.testbed.command import REAL
from eclectus_e2e.testbed.processes import recorded

FOLDER = CHECKOUT / "build" / "demo"
ACTS = ("1", "2")  # names of the two experiments that run by default: stream, perturbations
PLAIN_WIDTH = 120  # of tables in a file or pipe
MAIN_SECONDS, QUICK_SECONDS, QUICK_COMPARED_SECONDS = 90.0, 12.0, 8.0
SIDE_LOADS = [0.5, 0.9]

AnyExperiment = Experiment[Any, Any, Any, Any]


def demo(arguments: list[str]) -> int:
    """Send the same stream of pods to Eclectus and its rivals; then change the cluster under Eclectus.

    Writes reports and pictures into build/demo. Exit code 1 if a pod was lost or ran twice, a node was
    over-committed, or a constraint violated.
    """
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    sound = [run_experiment(experiment, FOLDER, console).sound for experiment in _experiments(options)]
    console.print(f"reports and pictures are in {_shown(FOLDER)}", highlight=False)
    return 0 if all(sound) else 1


def _experiments(options: argparse.Namespace) -> Iterator[AnyExperiment]:
    """What the options ask for, in order."""
    if options.nodes == REAL:
        yield RealExperiment(options.seed)
    elif options.comparison:
        plan = comparison_plan(
            seconds=options.seconds,
            seed=options.seed,
            schedulers=options.schedulers or list(SCHEDULERS),
            loads=options.loads,
            quick=options.quick,
        )
        yield ComparisonExperiment(plan, quick=options.quick)
    else:
        for act in options.acts:
            yield _stream(options) if act == "1" else PerturbationExperiment(Settings(seed=options.seed))


def _stream(options: argparse.Namespace) -> StreamExperiment:
    plan = stream_plan(options.load, options.loads, options.seconds, options.seed, options.schedulers)
    return StreamExperiment(plan, keep=options.keep)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    options = _parser().parse_args(arguments)
    if options.quick:
        options.seconds = QUICK_COMPARED_SECONDS if options.comparison else QUICK_SECONDS
    elif options.seconds is None:
        options.seconds = COMPARED_SECONDS if options.comparison else MAIN_SECONDS
    if options.loads is None:
        loads, quick_loads = (COMPARED_LOADS, COMPARED_LOADS[:1]) if options.comparison else (SIDE_LOADS, [])
        options.loads = quick_loads if options.quick else loads
    if options.comparison and not (options.loads and set(options.loads) <= set(COMPARED_LOADS)):
        known, given = (", ".join(f"{one:g}" for one in loads) for loads in (COMPARED_LOADS, options.loads))
        raise UsageError(f"--comparison has targets for loads {known} only; it was given {given or 'none'}")
    options.acts = options.acts or (["1"] if options.quick else list(ACTS))
    if options.keep and any(process.alive for process in recorded(CLUSTER_DIRECTORY)):
        raise UsageError("--keep would replace the cluster that is running: end it with `make down` first")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("eclectus_e2e demo", description=demo.__doc__)
    parser.add_argument(
        "--load", type=_load, default=0.8, help="main load, of the nodes' true capacity (0.8)"
    )
    parser.add_argument(
        "--loads",
        type=_loads,
        help="more loads, with shorter streams (0.5,0.9); '' for none; with --comparison, "
        "which of its loads (all three)",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        help="length of the main stream after the warm-up (90); with --comparison, at load 0.9 (120)",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the stream (1)")
    names = ", ".join(SCHEDULERS)
    parser.add_argument("--schedulers", type=_names, help=f"some of {names} (the first three)")
    parser.add_argument(
        "--acts",
        type=_acts,
        help="which experiments, 1: the stream, 12 min; 2: the perturbations, 7 min (1,2; with --quick 1)",
    )
    parser.add_argument(
        "--comparison", action="store_true", help="instead: all schedulers on sixty nodes, 50 min"
    )
    parser.add_argument(
        "--nodes",
        choices=[REAL],
        help="instead: real kubelets and containers on this machine, as root, 10 min",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the stream's cluster running; `make down` ends it"
    )
    parser.add_argument(
        "--quick", action="store_true", help="12 s at one load, to check that everything works"
    )
    return parser


def _load(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"a load is between 0 and 1, not {text}: at 1 and above, queues grow without bound"
        )
    return value


def _loads(text: str) -> list[float]:
    return sorted({_load(part) for part in text.split(",") if part})


def _acts(text: str) -> list[str]:
    acts = text.split(",")
    if not set(acts) <= set(ACTS):
        raise argparse.ArgumentTypeError(f"the experiments are {' and '.join(ACTS)}, not {text!r}")
    return acts


def _seconds(text: str) -> float:
    value = float(text)
    if not 5 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"between 5 and 3600 seconds, not {text}")
    return value


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in SCHEDULERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is unknown; known are {', '.join(SCHEDULERS)}")
    return names


def _shown(path: Path) -> str:
    """The path relative to the working directory."""
    return os.path.relpath(path)
