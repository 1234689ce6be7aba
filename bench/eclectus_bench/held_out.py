"""`make held-out`: README's ratios, simulated on ten streams that nothing was tuned on, paired by seed.

Each row compares a profile of a shipped scenario with another one of it on the same arrivals and sizes. A
ratio is won or lost where its 95 % interval over the seeds leaves out 1 and it is not 1 in two digits, and
equal otherwise.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

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
    """One comparison. `seconds`: of which figures the difference is given, because that of the rival is 0."""

    scenario: str
    ours: str
    theirs: Sequence[str]
    ratios: Sequence[Figure]
    changes: tuple[str, ...] = ()
    seconds: Sequence[Figure] = ()


AS_KUBE = "profiles.least-allocated.place.ties=random"  # kube-scheduler draws among nodes with equal scores
DEMO = (MEAN, MEDIAN, P99, MET)
ROWS = (
    Row(
        "short-demo",
        "eclectus",
        ("least-allocated",),
        DEMO,
        (AS_KUBE, "workload.poisson.rate=14.64"),
        (WAIT,),
    ),
    Row(
        "short-demo",
        "eclectus",
        ("least-allocated",),
        DEMO,
        (AS_KUBE, "workload.poisson.rate=21.97"),
        (WAIT,),
    ),
    Row("dags", "carbyne", ("fifo", "drf", "srtf"), (COMPLETION,)),
    Row("alike", "eclectus", ("least-allocated",), (MEAN, MEDIAN, P99), (AS_KUBE,), (WAIT,)),
    Row("new-nodes", "eclectus", ("least-allocated",), (MEAN, MEDIAN, P99), (AS_KUBE,), (WAIT,)),
)


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
    path = shipped_scenarios()[row.scenario]
    text = path.read_text()
    specs = [
        RunSpec(text, path.parent, row.changes, name, seed, None)
        for name in (row.ours, *row.theirs)
        for seed in seeds
    ]
    runs = simulate(row.scenario, specs, processes)
    return {name: _ratios(row, list(zip(runs[row.ours], runs[name], strict=True))) for name in row.theirs}


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


def _ratios(row: Row, pairs: Pairs) -> list[Ratio]:
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


def main(arguments: Sequence[str]) -> int:
    """Measure and print every row."""
    parser = argparse.ArgumentParser(prog="make held-out", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two seeds instead of ten: a minute")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    options = parser.parse_args(arguments)
    for row in ROWS:
        found = measure(row, SEEDS[:2] if options.quick else SEEDS, options.jobs)
        changed = f" ({', '.join(row.changes)})" if row.changes else ""
        for rival, ratios in found.items():
            print(f"{row.scenario}{changed}: {row.ours} over {rival}", flush=True)
            for each in ratios:
                what = f"{each.figure.removesuffix(', s')} longer by" if each.unit else each.figure
                print(f"  {what:36} {each!s:18} {each.verdict}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
