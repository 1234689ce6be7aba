"""The table of experiments: names, what each shows, its options with their defaults, and what makes it."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.real.plan import PAIRS
from eclectus_e2e.demo.schedulers import (
    COMPARED_SCHEDULERS,
    COPIES_SCHEDULERS,
    DAG_SCHEDULERS,
    DATA_SCHEDULERS,
    DEFAULT_SCHEDULERS,
    SCARCE_SCHEDULERS,
)
from eclectus_e2e.pairs import LEAST_PAIRS

AnyExperiment = Experiment[Any, Any, Any, Any]

_STREAM = frozenset({"loads", "seconds", "seed", "schedulers", "keep", "quick"})
_PERTURBATIONS = "eclectus_bench.experiments.perturbations.experiment:experiment"
_DATA = "eclectus_bench.experiments.data"
_DAGS = "eclectus_e2e.demo.dags.experiment:experiment"


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One value of the argument EXPERIMENT."""

    command: str  # of make
    minutes: str  # on two idle cores
    shows: str
    options: frozenset[str]  # that apply to it
    makers: tuple[str, ...]  # `module:function` of each of its experiments, in order, from the options
    loads: Sequence[float] = (0.8, 0.5, 0.9)  # the first one alone if it has to be quick
    pairs: int = 1  # of streams at each load
    quick_pairs: int = 1
    seconds: float = 90.0  # of each stream
    quick_seconds: float = 12.0
    schedulers: Sequence[str] = ()


SHORT, COMPARE = "short", "compare"
CHOICES = {
    SHORT: Choice(
        command="make demo",
        minutes="20 min",
        shows="Eclectus beside kube-scheduler in alternating pairs; speeds change half-way",
        options=_STREAM - {"schedulers"} | {"pairs"},
        makers=("eclectus_e2e.demo.stream.experiment:short",),
        loads=(0.6,),
        pairs=LEAST_PAIRS,
        seconds=100.0,
    ),
    "full": Choice(
        command="make demo-full",
        minutes="30 min",
        shows="`stream`, then `perturbations` and `dags`",
        options=_STREAM,
        makers=("eclectus_e2e.demo.stream.experiment:stream", _PERTURBATIONS, _DAGS),
        schedulers=DEFAULT_SCHEDULERS,
    ),
    "stream": Choice(
        command="make demo DEMO=stream",
        minutes="12 min",
        shows="several loads, and a baseline that knows no speeds",
        options=_STREAM,
        makers=("eclectus_e2e.demo.stream.experiment:stream",),
        schedulers=DEFAULT_SCHEDULERS,
    ),
    "perturbations": Choice(
        command="make demo DEMO=perturbations",
        minutes="7 min",
        shows="Eclectus alone: speeds are swapped, a node freezes, another is only probed",
        options=frozenset({"seed", "quick"}),
        makers=(_PERTURBATIONS,),
    ),
    "scarce": Choice(
        command="make demo DEMO=scarce",
        minutes="6 min",
        shows="batches of pods that few nodes may run, beside pods that any node may run",
        options=_STREAM,
        makers=("eclectus_bench.experiments.scarce:experiment",),
        loads=(0.8,),
        seconds=80.0,
        schedulers=SCARCE_SCHEDULERS,
    ),
    "data": Choice(
        command="make demo DEMO=data",
        minutes="40 min",
        shows="pods whose data some nodes have, with and without delay scheduling, in alternating pairs",
        options=_STREAM - {"schedulers"} | {"pairs"},
        makers=(f"{_DATA}:slower_elsewhere", f"{_DATA}:equal_everywhere"),
        loads=(0.5,),
        pairs=LEAST_PAIRS,
        seconds=80.0,
        schedulers=DATA_SCHEDULERS,
    ),
    "stragglers": Choice(
        command="make demo DEMO=stragglers",
        minutes="25 min",
        shows="jobs of which one task in twenty straggles, with and without copies, in alternating pairs",
        options=frozenset({"seed", "pairs", "quick"}),
        makers=("eclectus_bench.experiments.stragglers:experiment",),
        pairs=LEAST_PAIRS,
        schedulers=COPIES_SCHEDULERS,
    ),
    "dags": Choice(
        command="make demo DEMO=dags",
        minutes="50 min",
        shows="DAG jobs under Carbyne, other orders and kube-scheduler, in alternating pairs",
        options=frozenset({"seed", "pairs", "schedulers", "quick"}),
        makers=(_DAGS,),
        pairs=LEAST_PAIRS,
        schedulers=DAG_SCHEDULERS,
    ),
    COMPARE: Choice(
        command="make compare",
        minutes="50 min",
        shows="five schedulers on sixty nodes, which one class of pods ranks differently",
        options=_STREAM - {"keep"},
        makers=("eclectus_bench.experiments.comparison:experiment",),
        loads=(0.5, 0.8, 0.9),
        seconds=120.0,  # at load 0.9, so that what is learned is used for longer than it was learned
        quick_seconds=8.0,
        schedulers=COMPARED_SCHEDULERS,
    ),
    "real": Choice(
        command="make demo NODES=real",
        minutes="60 min",
        shows="real kubelets and containers on this machine, as root; pairs of streams with intervals",
        options=frozenset({"seed", "pairs", "quick"}),
        makers=("eclectus_e2e.demo.real.experiment:experiment",),
        pairs=PAIRS,
    ),
}


def experiments(options: argparse.Namespace) -> Iterator[AnyExperiment]:
    """What the options ask for, in order. Raises UsageError, and MachineError where it cannot be done."""
    for maker in CHOICES[options.experiment].makers:
        module, _, function = maker.partition(":")
        yield getattr(import_module(module), function)(options)
