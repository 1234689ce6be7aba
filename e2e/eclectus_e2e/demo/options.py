"""The options of the command `demo`: which experiment they apply to, and their defaults."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from eclectus_e2e.demo import option_values
from eclectus_e2e.demo.real.plan import PAIRS, PODS
from eclectus_e2e.demo.scarce import plan as scarce
from eclectus_e2e.demo.schedulers import COMPARED_SCHEDULERS, DAG_SCHEDULERS, SCHEDULERS
from eclectus_e2e.demo.short import plan as short
from eclectus_e2e.demo.stream import comparison
from eclectus_e2e.errors import UsageError

SHORT, FULL, STREAM, PERTURBATIONS, SCARCE, DAGS, COMPARE, REAL = (
    "short",
    "full",
    "stream",
    "perturbations",
    "scarce",
    "dags",
    "compare",
    "real",
)


@dataclass(frozen=True)
class Choice:
    """One value of the argument EXPERIMENT."""

    command: str  # of make
    minutes: str  # on two idle cores
    shows: str
    options: frozenset[str]  # that apply to it


_STREAM = frozenset({"load", "loads", "seconds", "seed", "schedulers", "keep", "quick"})
_ALL = _STREAM | {"pairs"}
CHOICES = {
    SHORT: Choice(
        "make demo",
        "5 min",
        "Eclectus beside kube-scheduler at one load; speeds change half-way",
        _STREAM - {"loads", "schedulers"},
    ),
    FULL: Choice("make demo-full", "30 min", "`stream`, then `perturbations` and `dags`", _STREAM),
    STREAM: Choice(
        "make demo DEMO=stream", "12 min", "several loads, and a baseline that knows no speeds", _STREAM
    ),
    PERTURBATIONS: Choice(
        "make demo DEMO=perturbations",
        "7 min",
        "Eclectus alone: speeds are swapped, a node freezes, another is only probed",
        frozenset({"seed", "quick"}),
    ),
    SCARCE: Choice(
        "make demo DEMO=scarce",
        "6 min",
        "batches of pods that few nodes may run, beside pods that any node may run",
        _STREAM - {"loads"},
    ),
    DAGS: Choice(
        "make demo DEMO=dags",
        "10 min",
        "DAG jobs under Carbyne, other orders and kube-scheduler",
        frozenset({"seed", "schedulers", "quick"}),
    ),
    COMPARE: Choice(
        "make compare",
        "50 min",
        "five schedulers on sixty nodes, which one class of pods ranks differently",
        _STREAM - {"load", "keep"},
    ),
    REAL: Choice(
        "make demo NODES=real",
        "60 min",
        "real kubelets and containers on this machine, as root; pairs of streams with intervals",
        frozenset({"seed", "pairs", "quick"}),
    ),
}
MAIN_LOAD = 0.8  # of the stream and of scarce
MAIN_SECONDS, QUICK_SECONDS, QUICK_COMPARED_SECONDS = 90.0, 12.0, 8.0
SIDE_LOADS = [0.5, 0.9]


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options with the defaults of their experiment. Raises UsageError for one that does not apply."""
    options = _parser().parse_args(arguments)
    name = options.experiment
    wrong = [one for one in sorted(_ALL) if getattr(options, one) not in (None, False)]
    wrong = [f"--{one}" for one in wrong if one not in CHOICES[name].options]
    if wrong:
        known = ", ".join(f"--{one}" for one in sorted(CHOICES[name].options))
        raise UsageError(f"{wrong[0]} does not apply to the experiment {name!r}, which has {known}")
    _set_defaults(options)
    if name == COMPARE:
        _check_compared_loads(options.loads)
    return options


def other_commands() -> str:
    """The commands of other loads and of the long experiments, a line each."""
    other = f'make demo DEMO="--load {MAIN_LOAD:g}"'
    lines = [(other, CHOICES[SHORT].minutes, "the same at a load that leaves Eclectus less to win")]
    shown = (CHOICES[name] for name in (FULL, COMPARE, REAL))
    lines += [(one.command, one.minutes, one.shows) for one in shown]
    return "\n".join(f"  {command:<28} {minutes:<7} {shows}" for command, minutes, shows in lines)


def _set_defaults(options: argparse.Namespace) -> None:
    name, quick = options.experiment, options.quick
    usual = {
        SHORT: (short.SECONDS, short.QUICK_SECONDS),
        SCARCE: (scarce.SECONDS, scarce.QUICK_SECONDS),
        COMPARE: (comparison.SECONDS, QUICK_COMPARED_SECONDS),
    }
    full, shortest = usual.get(name, (MAIN_SECONDS, QUICK_SECONDS))
    loads: tuple[list[float], list[float]] = (
        (comparison.LOADS, comparison.LOADS[:1]) if name == COMPARE else (SIDE_LOADS, [])
    )
    defaults = {
        "seed": 1,
        "load": short.LOAD if name == SHORT else MAIN_LOAD,
        "loads": loads[1] if quick else loads[0],
        "seconds": shortest if quick else full,
    }
    for field, value in defaults.items():
        if getattr(options, field) is None:
            setattr(options, field, value)


def _check_compared_loads(loads: Sequence[float]) -> None:
    if not (loads and set(loads) <= set(comparison.LOADS)):
        known, given = (", ".join(f"{one:g}" for one in each) for each in (comparison.LOADS, loads))
        raise UsageError(f"the comparison has targets for loads {known} only; it was given {given or 'none'}")


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, CHOICES))
    lines = "\n".join(
        f"  {name:<{width}}  {one.minutes:<7} {one.shows}\n  {'':<{width}}  {'':<7} ({one.command})"
        for name, one in CHOICES.items()
    )
    parser = argparse.ArgumentParser(
        "python -m eclectus_e2e demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="python -m eclectus_e2e demo [EXPERIMENT] [options]",
        description=f"""\
Send the same stream of pods to Eclectus and to kube-scheduler on a real control plane with simulated
nodes, and compare how long the pods take. Lower is better.

experiments (`{SHORT}` if none is given), with their time on two idle cores once the control plane is built:
{lines}""",
        epilog="""\
Each experiment prints tables and writes a report (JSON) and a picture (PNG) into build/demo. The exit code
is 1 if a pod was lost or ran twice, a node was over-committed, or a constraint violated. docs/demo.md
describes everything. With make, options are given in DEMO: make demo DEMO="--load 0.5 --seed 2".""",
    )
    _add_streams(parser)
    _add_schedulers(parser)
    return parser


def _add_streams(parser: argparse.ArgumentParser) -> None:
    """Which experiment, and which pods it sends."""
    add = parser.add_argument
    add(
        "experiment",
        nargs="?",
        default=SHORT,
        choices=list(CHOICES),
        metavar="EXPERIMENT",
        help="one of those above",
    )
    add(
        "--load",
        type=option_values.load,
        help=_help(
            "load, as a share of what the nodes can complete",
            f"{short.LOAD:g}; stream and scarce: {MAIN_LOAD:g}",
            "load",
        ),
    )
    loads_help = _help(
        "more loads, for shorter streams; '' for none", "0.5,0.9; compare: 0.5,0.8,0.9", "loads"
    )
    add("--loads", type=option_values.loads, metavar="LOAD,...", help=loads_help)
    lengths = (
        f"{short.SECONDS:.0f}; stream: {MAIN_SECONDS:.0f}; scarce: {scarce.SECONDS:.0f}; "
        f"compare, at load 0.9: {comparison.SECONDS:.0f}"
    )
    add("--seconds", type=option_values.seconds, help=_help("length of each stream", lengths, "seconds"))
    add("--seed", type=int, help=_help("seed of the stream: equal seeds send equal pods", "1", "seed"))
    pairs_help = f"pairs of streams, {PODS} pods to each scheduler, before and after the change of quotas"
    add("--pairs", type=option_values.pairs, help=_help(pairs_help, f"{PAIRS}", "pairs"))


def _add_schedulers(parser: argparse.ArgumentParser) -> None:
    """To which schedulers, and how thoroughly."""
    add = parser.add_argument
    names = ", ".join(SCHEDULERS)
    add(
        "--schedulers",
        type=option_values.names,
        metavar="NAME,...",
        help=_help(
            f"some of {names}",
            f"stream: the first three; scarce: {', '.join(scarce.SCHEDULERS)}; "
            f"dags: {', '.join(DAG_SCHEDULERS)}; compare: {', '.join(COMPARED_SCHEDULERS)}",
            "schedulers",
        ),
    )
    add(
        "--keep",
        action="store_true",
        help=_help("leave the stream's cluster running afterwards; `make down` ends it", "", "keep"),
    )
    add(
        "--quick",
        action="store_true",
        help=_help("short streams at one load, to check that everything works", "", "quick"),
    )


def _help(text: str, default: str, option: str) -> str:
    """The help of an option: its default, and the experiments that it applies to unless it is all of them."""
    where = [name for name, one in CHOICES.items() if option in one.options]
    notes = [f"default: {default}"] * bool(default) + [f"for {', '.join(where)}"] * (where != list(CHOICES))
    return f"{text} ({'; '.join(notes)})" if notes else text
