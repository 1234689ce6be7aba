"""The options of the command `demo`: their values, which experiment they apply to, and their help."""

import argparse
from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

from eclectus_e2e.demo.experiments import CHOICES, COMPARE, SHORT
from eclectus_e2e.demo.schedulers import SCHEDULERS
from eclectus_e2e.errors import UsageError
from eclectus_e2e.pairs import LEAST_PAIRS


def read_options(arguments: Sequence[str]) -> argparse.Namespace:
    """The options with the defaults of their experiment. Raises UsageError for one that does not apply."""
    options = _parser().parse_args(arguments)
    name, choice = options.experiment, CHOICES[options.experiment]
    every = sorted(frozenset().union(*(one.options for one in CHOICES.values())))
    wrong = [one for one in every if getattr(options, one) not in (None, False) and one not in choice.options]
    if wrong:
        known = ", ".join(f"--{one}" for one in sorted(choice.options))
        raise UsageError(f"--{wrong[0]} does not apply to the experiment {name!r}, which has {known}")
    defaults = {
        "seed": 1,
        "loads": list(choice.loads[:1] if options.quick else choice.loads),
        "pairs": choice.quick_pairs if options.quick else choice.pairs,
        "seconds": choice.quick_seconds if options.quick else choice.seconds,
    }
    for field, value in defaults.items():
        if getattr(options, field) is None:
            setattr(options, field, value)
    return options


def other_commands() -> str:
    """The commands of fewer pairs, of other loads and of the long experiments, a line each."""
    lines = [
        ('make demo DEMO="--pairs 1"', "5 min", "one pair alone: figures without a verdict"),
        ('make demo DEMO="--loads 0.8"', CHOICES[SHORT].minutes, "a load that leaves Eclectus less to win"),
    ]
    shown = (CHOICES[name] for name in ("full", COMPARE, "real"))
    lines += [(one.command, one.minutes, one.shows) for one in shown]
    return "\n".join(f"  {command:<28} {minutes:<7} {shows}" for command, minutes, shows in lines)


# -- values: each function raises ArgumentTypeError for a wrong text ---------------------------------


def _load(text: str) -> float:
    """A load below 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"a load is between 0 and 1, not {text}: at 1 and above, queues grow without bound"
        )
    return value


def _loads(text: str) -> list[float]:
    """Loads, separated by commas, each once; the first one is the main load."""
    return list(dict.fromkeys(map(_load, text.split(","))))


def _seconds(text: str) -> float:
    value = _number(text)
    if not 5 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"between 5 and 3600 seconds, not {text}")
    return value


def _pairs(text: str) -> int:
    value = _number(text)
    if value != int(value) or not 1 <= value <= 20:
        raise argparse.ArgumentTypeError(f"a whole number from 1 to 20, not {text}")
    return int(value)


def _schedulers(text: str) -> list[str]:
    """Names of SCHEDULERS, separated by commas."""
    given = text.split(",")
    unknown = [name for name in given if name not in SCHEDULERS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is unknown; known are {', '.join(SCHEDULERS)}")
    return given


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not isfinite(value):
        raise argparse.ArgumentTypeError(f"a number is expected, not {text!r}")
    return value


# -- the parser --------------------------------------------------------------------------------------


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
describes everything. With make, options are given in DEMO: make demo DEMO="--loads 0.5 --seed 2".
Where `--loads` applies, Ctrl-C ends early: what was compared until then is printed and written.""",
    )
    about, names = "one of those above", list(CHOICES)
    parser.add_argument(
        "experiment", nargs="?", default=SHORT, choices=names, metavar="EXPERIMENT", help=about
    )
    for option, (texts, arguments) in _OPTIONS.items():
        parser.add_argument(f"--{option}", help=_help(*texts, option), **arguments)
    return parser


def _help(text: str, default: str, option: str) -> str:
    """The help of an option: its default, and the experiments that it applies to unless it is all of them."""
    where = [name for name, one in CHOICES.items() if option in one.options]
    notes = [f"default: {default}"] * bool(default) + [f"for {', '.join(where)}"] * (where != list(CHOICES))
    return f"{text} ({'; '.join(notes)})" if notes else text


def _of(name: str) -> str:
    return ", ".join(CHOICES[name].schedulers)


# Option -> its help and its default in words, and the arguments of the parser.
_OPTIONS: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "loads": (
        (
            "loads, as shares of what the nodes can complete; `stream` has shorter ones after its first",
            "; ".join(
                f"{name}: {','.join(f'{load:g}' for load in CHOICES[name].loads)}"
                for name in (SHORT, "stream", "scarce", COMPARE)
            ),
        ),
        {"type": _loads, "metavar": "LOAD,..."},
    ),
    "seconds": (
        (
            "length of each stream",
            f"{CHOICES[SHORT].seconds:.0f}; stream: {CHOICES['stream'].seconds:.0f}; "
            f"scarce: {CHOICES['scarce'].seconds:.0f}; compare, at load 0.9: {CHOICES[COMPARE].seconds:.0f}",
        ),
        {"type": _seconds},
    ),
    "seed": (("seed of the stream: equal seeds send equal pods", "1"), {"type": int}),
    "pairs": (
        (
            "pairs of streams at each load: the same pods to both schedulers, which take turns in being "
            f"first; fewer than {LEAST_PAIRS} are no verdict",
            f"{CHOICES[SHORT].pairs}; real: {CHOICES['real'].pairs}, and as many after the change of quotas",
        ),
        {"type": _pairs},
    ),
    "schedulers": (
        (
            f"some of {', '.join(SCHEDULERS)}",
            f"stream: the first three; scarce: {_of('scarce')}; dags: {_of('dags')}; compare: {_of(COMPARE)}",
        ),
        {"type": _schedulers, "metavar": "NAME,..."},
    ),
    "keep": (
        ("leave the stream's cluster running afterwards; `make down` ends it", ""),
        {"action": "store_true"},
    ),
    "quick": (
        ("short streams at one load, one of each, to check that everything works", ""),
        {"action": "store_true"},
    ),
}
