"""`make held-out`: what Eclectus gains by what differs, and costs where little does, on ten held-out streams.

README quotes it. Nothing was tuned on these streams, and runs are paired by seed.

Each row compares a profile of a shipped scenario with another one of it on the same arrivals and sizes. A
ratio is won or lost where its 95 % interval over the seeds leaves out 1 and it is not 1 in two digits, and
equal otherwise.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import yaml

from eclectus.cli.output import Progress
from eclectus.maths.student import half_width
from eclectus.model.errors import EclectusError
from eclectus.sim.base.results import RunFailure, RunResult
from eclectus.sim.runs import RunSpec, StopRequest, run_batch
from eclectus.sim.scenario import parse, shipped_scenarios

SEEDS = range(101, 111)
NEGLIGIBLE = 0.005  # of a ratio, or seconds: what two digits do not show

Figure = tuple[str, Callable[[RunResult], float]]
"""Name, and the figure of a run; lower is better unless the name says otherwise."""
Runs = dict[str, list[RunResult]]
"""By profile, in the order of seeds."""
Pairs = Sequence[tuple[RunResult, RunResult]]
"""Two runs of each seed."""

MEAN: Figure = ("mean response", lambda run: run.response.mean)
MEDIAN: Figure = ("median", lambda run: run.response.p50)
P99: Figure = ("p99", lambda run: run.response.p99)
MET: Figure = ("preferences met (higher is better)", lambda run: run.met or 0.0)
COMPLETION: Figure = ("mean completion of jobs", lambda run: run.jobs.mean)
WAIT: Figure = ("mean wait, s", lambda run: run.wait.mean)


@dataclass(frozen=True)
class Row:
    """One comparison. `seconds`: of which figures the difference is given, because that of the rival is 0.

    `what` says what the changes do, where they are long.
    """

    scenario: str
    ours: str
    theirs: Sequence[str]
    ratios: Sequence[Figure]
    changes: tuple[str, ...] = ()
    seconds: Sequence[Figure] = ()
    what: str = ""

    @property
    def title(self) -> str:
        """The scenario, and how it is changed."""
        changed = self.what or ", ".join(self.changes)
        return f"{self.scenario} ({changed})" if changed else self.scenario


RESPONSE = (MEAN, MEDIAN, P99)


def beside_kube(scenario: str, *changes: str, ratios: Sequence[Figure] = RESPONSE) -> Row:
    """Eclectus over kube-scheduler's rule."""
    return Row(scenario, "eclectus", ("least-allocated",), ratios, changes, (WAIT,))


def two_speeds(ratio: float, load: float, *changes: str) -> Row:
    """Half of the nodes are `ratio` times as fast as the others, sizes are exponential."""
    size = (f"cluster.groups.fast.speed={ratio}", f"workload.poisson.load={load}", "measure.tasks=5000")
    return beside_kube("two-speeds", *size, *changes)


_DEMO = yaml.safe_load(shipped_scenarios()["demo"].read_text())
SPEEDS = {each["name"]: each["speed"] for each in _DEMO["cluster"]["groups"]}  # of thirty nodes: 1, 2, 4 or 8
SLOW = [name for name, speed in SPEEDS.items() if speed <= 2]
FAST = [name for name, speed in SPEEDS.items() if speed > 2]
TRADED = {**dict.fromkeys(FAST, 0.25), **dict.fromkeys(SLOW, 4.0)}
TRADED_BY_TWO = {name: 2.0 if speed in (1, 4) else 0.5 for name, speed in SPEEDS.items()}
CHANGE_AT = 50.0  # s, half of the stream


def changed(what: str, factors: Mapping[str, float], steps: int = 1) -> Row:
    """Nodes become `factors` times as fast, at once or in steps of 3 s; what arrives after is measured.

    It is compared with known speeds, too: most changes make the cluster as a whole faster or slower, and
    that ratio is what not knowing costs.
    """
    events = [
        {"at": CHANGE_AT + 3 * step, "action": "scale", "group": node, "factor": factor ** (1 / steps)}
        for step in range(steps)
        for node, factor in factors.items()
    ]
    measure = f"measure={{horizon: {2 * CHANGE_AT}, warmUp: 0.5}}"
    changes = (measure, f"events={json.dumps(events)}")
    return Row("demo", "eclectus", ("oracle", "least-allocated"), (MEAN, P99), changes, what=what)


ROWS = {
    "What differs": (
        beside_kube("short-demo", "workload.poisson.rate=14.64", ratios=(*RESPONSE, MET)),
        beside_kube("short-demo", "workload.poisson.rate=21.97", ratios=(*RESPONSE, MET)),
        two_speeds(8, 0.6),
        two_speeds(8, 0.9),
        Row("dags", "carbyne", ("fifo", "drf", "srtf"), (COMPLETION,)),
    ),
    "Harmless where little differs": (
        beside_kube("alike"),
        beside_kube("new-nodes"),
        two_speeds(1.5, 0.6),
        two_speeds(1.5, 0.9),
    ),
    "After a change": (
        changed("nothing changes", {}),
        changed("fast nodes become four times slower, slow ones four times faster", TRADED),
        changed("the same in ten steps of 3 s", TRADED, steps=10),
        changed("speeds 8 and 4, 2 and 1 are traded", TRADED_BY_TWO),
        changed("a tenth becomes four times slower", dict.fromkeys(FAST[:3], 0.25)),
        changed("a tenth becomes four times faster", dict.fromkeys(SLOW[:3], 4.0)),
    ),
}
PREFERRING = (
    beside_kube("short-demo", "workload.poisson.rate=14.64", ratios=(MEAN, P99, MET)),
    beside_kube("short-demo", "workload.poisson.rate=21.97", ratios=(MEAN, P99, MET)),
    beside_kube("demo", "workload.poisson.rate=26.36", ratios=(MEAN, P99, MET)),
)
SOFT_WEIGHTS = ("softWeight: 3", "softWeight: 6", "softWeight: 12", "softWeight: 30")

SPEED_RATIOS, LOADS = (1, 1.5, 2, 4, 8), (0.5, 0.8)
SIZES = {  # each of 10 s in the mean; the second ones vary half as much
    "exponential": "law: exponential",
    "gamma, shape 4": "law: gamma, shape: 4",
}


@dataclass(frozen=True)
class Ratio:
    """The mean of the ratios of paired runs, and half of the width of its interval."""

    figure: str
    mean: float
    half_width: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.mean:.2f} ±{self.half_width:.2f}{self.unit}"

    @property
    def verdict(self) -> str:
        """Whether the interval leaves out 1, or 0 of a difference, and on which side."""
        nothing, better = (
            (0.0, "lower") if self.unit else (1.0, "higher" if "higher" in self.figure else "lower")
        )
        if abs(self.mean - nothing) <= max(self.half_width, NEGLIGIBLE):
            return "equal"
        return "won" if (self.mean < nothing) == (better == "lower") else "lost"


def measure(row: Row, seeds: Sequence[int], processes: int) -> dict[str, list[Ratio]]:
    """Of each rival the ratios of a row, then its differences. Raises EclectusError if a run fails."""
    runs = runs_of(row, (row.ours, *row.theirs), seeds, processes)
    return {name: paired(row, runs[row.ours], runs[name]) for name in row.theirs}


def runs_of(row: Row, names: Sequence[str], seeds: Sequence[int], processes: int, *changes: str) -> Runs:
    """The runs of these profiles with the row's changes, and with more. Raises EclectusError if one fails."""
    path = shipped_scenarios()[row.scenario]
    text, changes = path.read_text(), (*row.changes, *changes)
    specs = [RunSpec(text, path.parent, changes, name, seed, None) for name in names for seed in seeds]
    return simulate(row.scenario, specs, processes)


def simulate(what: str, specs: Sequence[RunSpec], processes: int) -> Runs:
    """The runs of one scenario. Raises EclectusError if one fails."""
    tasks = parse(specs[0].text, specs[0].folder, specs[0].changes).tasks
    with Progress(f"simulating {what}", tasks * len(specs), "tasks") as progress:
        results = run_batch(specs, processes, progress, StopRequest())
    runs: Runs = {}
    for each in results:
        if isinstance(each, RunFailure):
            raise EclectusError(f"{what}, {each.profile}, seed {each.seed}: {each.reason}")
        runs.setdefault(each.profile, []).append(each)
    return runs


def paired(row: Row, ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> list[Ratio]:
    """The ratios of a row, then its differences."""
    pairs = list(zip(ours, theirs, strict=True))
    seconds = [(name, [of(one) - of(other) for one, other in pairs]) for name, of in row.seconds]
    return [
        *(ratio_of(figure, pairs) for figure in row.ratios),
        *(Ratio(name, fmean(each), half_width(each) or 0.0, " s") for name, each in seconds),
    ]


def ratio_of(figure: Figure, pairs: Pairs) -> Ratio:
    """The ratio of a figure of the first runs to that of the second ones."""
    name, of = figure
    ratios = [of(one) / of(other) for one, other in pairs]
    return Ratio(name, fmean(ratios), half_width(ratios) or 0.0)


def compare_all(seeds: Sequence[int], processes: int) -> None:
    """Print every row."""
    for heading, rows in ROWS.items():
        print(f"== {heading}")
        for row in rows:
            for rival, ratios in measure(row, seeds, processes).items():
                show(f"{row.title}: {row.ours} over {rival}", ratios)


def compare_soft_weights(seeds: Sequence[int], processes: int) -> None:
    """Print response and preferences met at each `softWeight`, over kube-scheduler's and the least one's."""
    for row in PREFERRING:
        runs: Runs = {}
        for place in SOFT_WEIGHTS:
            change = f"profiles.{row.ours}.place={{policy: rosella, {place}}}"
            runs[place] = runs_of(row, (row.ours,), seeds, processes, change)[row.ours]
        least = {SOFT_WEIGHTS[0]: runs[SOFT_WEIGHTS[0]]}
        rivals = runs_of(row, row.theirs, seeds, processes) | least
        for place, rival in product(runs, rivals):
            if place != rival:
                show(f"{row.title}: {place} over {rival}", paired(row, runs[place], rivals[rival]))


def compare_grid(seeds: Sequence[int], processes: int) -> None:
    """Print a table: mean response over kube-scheduler's rule, by sizes, load and how far speeds differ."""
    print(f"| sizes | load | {' | '.join(f'1 : {ratio}' for ratio in SPEED_RATIOS)} |")
    print(f"|---|---:|{'---:|' * len(SPEED_RATIOS)}")
    for (sizes, law), load in product(SIZES.items(), LOADS):
        changes = f"workload.poisson.classes=[{{size: {{{law}, mean: 10s}}}}]", "measure.tasks=2000"
        rows = (two_speeds(ratio, load, *changes) for ratio in SPEED_RATIOS)
        found = [measure(row, seeds, processes)["least-allocated"] for row in rows]
        print(f"| {sizes} | {load} | {' | '.join(map(_grid_cell, found))} |", flush=True)


def _grid_cell(ratios: Sequence[Ratio]) -> str:
    mean = ratios[0]
    return f"**{mean}**" if mean.verdict == "lost" else str(mean)


def show(title: str, ratios: Sequence[Ratio]) -> None:
    """Print a title, and below it each ratio with its verdict."""
    print(title)
    for each in ratios:
        what = f"{each.figure.removesuffix(', s')} longer by" if each.unit else each.figure
        print(f"  {what:36} {each!s:18} {each.verdict}", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Measure and print every row, or what `softWeight` does, or the table by what differs."""
    parser = argparse.ArgumentParser(prog="make held-out", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds instead of ten: two minutes")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--preferences",
        action="store_true",
        help="instead of the rows: response and preferences met at several values of softWeight",
    )
    instead.add_argument(
        "--grid",
        action="store_true",
        help="instead of the rows: a table of mean response by sizes, load and how far speeds differ",
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    options = parser.parse_args(arguments)
    compare = compare_all
    if options.preferences:
        compare = compare_soft_weights
    elif options.grid:
        compare = compare_grid
    compare(SEEDS[:2] if options.quick else SEEDS, options.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
