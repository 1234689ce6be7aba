"""The command `demo`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from eclectus_e2e.demo import screen
from eclectus_e2e.demo.environment import started
from eclectus_e2e.demo.perturbations.experiment import act_two
from eclectus_e2e.demo.perturbations.plan import Settings
from eclectus_e2e.demo.real.experiment import act_on_real_nodes
from eclectus_e2e.demo.real.plan import Plan as RealPlan
from eclectus_e2e.demo.schedulers import DEFAULT_SCHEDULERS, SCHEDULERS
from eclectus_e2e.demo.stream.comparison import LOADS as COMPARED_LOADS
from eclectus_e2e.demo.stream.comparison import SECONDS as COMPARED_SECONDS
from eclectus_e2e.demo.stream.comparison import comparison
from eclectus_e2e.demo.stream.plots import draw
from eclectus_e2e.demo.stream.report import ECLECTUS, KUBE_SCHEDULER, Run, report
from eclectus_e2e.demo.stream.run import LoadLevel, run_all
from eclectus_e2e.demo.stream.tables import tables
from eclectus_e2e.demo.workload.arrivals import capacity
from eclectus_e2e.errors import UsageError
from eclectus_e2e.paths import CHECKOUT, CLUSTER_DIRECTORY
from eclectus_e2e.testbed.controlplane import environment_text
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes
from eclectus_e2e.testbed.processes import recorded
from eclectus_e2e.testbed.up import ENVIRONMENT_FILE, REAL

FOLDER = CHECKOUT / "build" / "demo"
ACTS = ("1", "2")
PLAIN_WIDTH = 120  # of tables in a file or pipe
MAIN_SECONDS, QUICK_SECONDS, QUICK_COMPARED_SECONDS = 90.0, 12.0, 8.0
WARM_SECONDS = 15.0
SIDE_LOADS = [0.5, 0.9]
SIDE_SHARE = 0.45  # of the main load's length: enough to see the ratio, and the whole stays under 12 minutes


def demo(arguments: list[str]) -> int:
    """The same stream of pods to Eclectus and its rivals; then what it does when the cluster changes.

    Writes reports and pictures into build/demo. Exit code 1 if a pod was lost, ran twice, or a node was
    over-committed or a constraint violated.
    """
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH)
    if options.nodes == REAL:
        sound = [act_on_real_nodes(RealPlan(seed=options.seed), FOLDER, console).sound]
    elif options.comparison:
        names = options.schedulers or list(SCHEDULERS)
        found = comparison(
            FOLDER,
            console,
            seconds=options.seconds,
            seed=options.seed,
            schedulers=names,
            loads=options.loads,
            quick=options.quick,
        )
        sound = [found.sound]
    else:
        acts = {"1": lambda: _act_one(options, console), "2": lambda: _act_two(options, console)}
        sound = [acts[act]() for act in options.acts]
    console.print(f"{_shown(FOLDER)} has reports and pictures", highlight=False)
    return 0 if all(sound) else 1


def _act_one(options: argparse.Namespace, console: Console) -> bool:
    """One stream, three schedulers; whether nothing happened that must not."""
    legs, nodes = plan(options), default_nodes(DEFAULT_SEED)
    directory = CLUSTER_DIRECTORY if options.keep else FOLDER / "cluster"
    done: list[Run] = []
    with screen.opened(console) as shown:
        shown.say("starting a control plane, thirty nodes and the chart")
        with started(directory, nodes, keep=options.keep) as ground:
            done.extend(run_all(ground, legs, options.seed, shown))
            if options.keep:
                ENVIRONMENT_FILE.write_text(environment_text(ground.plane.environment()))
    found = report(done, nodes, seed=options.seed, main_load=options.load, capacity=capacity(nodes))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    draw(found, done, nodes, FOLDER / "demo.png")
    for table in tables(found):
        console.print(table)
    if options.keep:
        console.print(
            f"the cluster runs on: source {_shown(ENVIRONMENT_FILE)}; `make down` ends it", highlight=False
        )
    return found.sound


def _act_two(options: argparse.Namespace, console: Console) -> bool:
    """Shocks; whether nothing happened that must not."""
    return act_two(Settings(seed=options.seed), FOLDER, console).sound


def plan(options: argparse.Namespace) -> list[LoadLevel]:
    """The main load in full for every scheduler; each other load shorter, for Eclectus and its rival."""
    warm = min(WARM_SECONDS, options.seconds / 2)
    names = options.schedulers or DEFAULT_SCHEDULERS
    sides = [name for name in names if name in (ECLECTUS, KUBE_SCHEDULER)]
    others = [load for load in options.loads if load != options.load]
    main = LoadLevel(options.load, options.seconds, warm, names)
    return [main] + [LoadLevel(load, options.seconds * SIDE_SHARE, warm, sides) for load in others if sides]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("eclectus_e2e demo", description=demo.__doc__)
    parser.add_argument("--load", type=_load, default=0.8, help="of the nodes' true capacity (0.8)")
    parser.add_argument(
        "--loads",
        type=_loads,
        help="more loads, shorter (0.5,0.9); '' for none; with --comparison which of its own (all three)",
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        help="length of each stream, after the warm-up (90); with --comparison at load 0.9 (120)",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the stream (1)")
    parser.add_argument("--schedulers", type=_names, help=f"of {', '.join(SCHEDULERS)} (the first three)")
    parser.add_argument("--acts", type=_acts, help="1: the contest, 2: the shocks (1,2; with --quick 1)")
    parser.add_argument(
        "--comparison", action="store_true", help="instead: all schedulers on sixty nodes, 50 minutes"
    )
    parser.add_argument(
        "--nodes",
        choices=[REAL],
        help="instead: real kubelets and containers on this machine, as root, 10 minutes",
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the cluster running, for `make down` to end"
    )
    parser.add_argument("--quick", action="store_true", help="12 s at one load: to see that all works")
    options = parser.parse_args(arguments)
    if options.quick:
        options.seconds = QUICK_COMPARED_SECONDS if options.comparison else QUICK_SECONDS
    elif options.seconds is None:
        options.seconds = COMPARED_SECONDS if options.comparison else MAIN_SECONDS
    if options.loads is None:
        loads, quick_loads = (COMPARED_LOADS, COMPARED_LOADS[:1]) if options.comparison else (SIDE_LOADS, [])
        options.loads = quick_loads if options.quick else loads
    if options.comparison and not (options.loads and set(options.loads) <= set(COMPARED_LOADS)):
        known, given = (", ".join(f"{one:g}" for one in loads) for loads in (COMPARED_LOADS, options.loads))
        raise UsageError(
            f"--comparison knows what is wanted at loads {known}; it was given {given or 'none'}"
        )
    options.acts = options.acts or (["1"] if options.quick else list(ACTS))
    if options.keep and any(process.alive for process in recorded(CLUSTER_DIRECTORY)):
        raise UsageError("--keep needs the place where a cluster runs already: `make down` ends that one")
    return options


def _load(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"a load lies between 0 and 1, not {text}: beyond it queues grow for ever"
        )
    return value


def _loads(text: str) -> list[float]:
    return sorted({_load(part) for part in text.split(",") if part})


def _acts(text: str) -> list[str]:
    acts = text.split(",")
    if not set(acts) <= set(ACTS):
        raise argparse.ArgumentTypeError(f"the acts are {' and '.join(ACTS)}, not {text!r}")
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
    """As one would type it here."""
    return os.path.relpath(path)
