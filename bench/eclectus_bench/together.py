"""`make together`: what pools, data and copies bring alone and together, as docs/results/together.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from eclectus import __version__
from eclectus.maths.student import half_width
from eclectus.sim.base.results import RunResult
from eclectus_bench.profiles import Part, Runs, cell, measure, parser_of, publish
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

SCENARIO, NONE = "together", "none"
BESIDE = ("full", "all")
INTRODUCTION = """\
# Everything at once: what each feature brings alone, and beside the others

Written by `make together`; change `scenarios/together.yaml` or `bench/eclectus_bench/together.py`, not this
page. 50 nodes of four slots, five of them four times slower; jobs of twenty tasks that may have copies,
gangs of eight, and single pods of a tenant with a minimum, each in a pool. Three of ten jobs are constrained,
each task has data on three nodes and takes twice as long elsewhere, and one attempt in twenty takes five
times as long.

`full` is the chart's preset, in which data are priced; `all` places by room instead of by learned speed,
and pods wait for their data. Each feature has a profile of its own, in which the others are off. `over
alone` is a figure beside the others over the figure alone; the aim is within a tenth, at most 1.1, of data
at least .9. `brings` is what a feature brings beside the others over what it brings alone: the time that it
saves of that of `none`, or the starts at the data that it adds. 1 is no loss. Both are ratios of means over
runs with the same seeds, all figures means ± half of Student's 95 % interval."""
REMARK = """
Of a wait of a fifth of a second a tenth is nothing: there `brings` tells. One slot of ten is slow, so what
learned speeds alone save gangs is little; in `full` they have their data, too. It starts some pods away from
their data, on nodes that make up for it."""
RULED = """
Gangs and constraints are no policies: every profile has them, and `none` has nothing else, so it is what they
take alone."""


@dataclass(frozen=True)
class Feature:
    """One feature: the profile that has it alone, the profiles that have it beside others, and its figure."""

    name: str
    alone: str
    beside: tuple[str, ...]
    figure: str
    read: Callable[[RunResult], float]
    places: int
    more_is_better: bool = False

    def brings(self, run: RunResult, none: RunResult) -> float:
        """By how much its figure is better than without any feature, for the same seed; negative if worse."""
        more = self.read(run) - self.read(none)
        return more if self.more_is_better else -more


@dataclass(frozen=True)
class Ruled:
    """What every profile has: the figure of the pods that have it."""

    name: str
    figure: str
    read: Callable[[RunResult], float]


def _located(run: RunResult) -> float:
    if run.locality is None:
        raise ValueError("a run without data")
    return 100.0 * run.locality


def _gangs_response(run: RunResult) -> float:
    return run.groups["class"]["lab"].jobs.mean


def _gangs_run(run: RunResult) -> float:
    pods = run.groups["class"]["lab"]
    return pods.response.mean - pods.wait.mean


FEATURES = (
    Feature(
        "pools",
        "pools",
        BESIDE,
        "wait of the tenant with a minimum, mean, s",
        lambda run: run.groups["class"]["shop"].wait.mean,
        2,
    ),
    Feature(
        "copies",
        "late",
        BESIDE,
        "response of jobs that may have copies, p99, s",
        lambda run: run.groups["class"]["batch"].jobs.p99,
        0,
    ),
    Feature("data", "delay", BESIDE, "starts at the data, %", _located, 1, True),
    Feature("learned speeds", "rosella", ("full",), "run time of gangs' pods, mean, s", _gangs_run, 1),
    Feature("learned speeds", "rosella", ("full",), "response of gangs, mean, s", _gangs_response, 0),
)
RULED_FIGURES = (
    Ruled("gangs", "response of gangs, mean, s", _gangs_response),
    Ruled(
        "constraints",
        "response of constrained pods, mean, s",
        lambda run: run.groups["constrained"]["constrained"].response.mean,
    ),
)


@dataclass(frozen=True)
class Facts:
    """Version, and how many runs of each profile with how many tasks."""

    eclectus: str
    seeds: int
    tasks: int


def page(facts: Facts, runs: Runs) -> str:
    """The whole page."""
    over, brings = ([f"`{name}` {what}" for name in BESIDE] for what in ("over alone", "brings"))
    heads = [NONE, "alone", *(f"`{name}`" for name in BESIDE)]
    every = [*heads, *over, *brings]
    lines = [
        INTRODUCTION,
        f"\nEclectus {facts.eclectus}; {facts.seeds} runs of {facts.tasks} tasks of each profile.\n",
        f"| feature | figure | {' | '.join(every)} |\n|---|---|{'---:|' * len(every)}",
        *_rows(runs),
        f"{REMARK}\n{RULED}\n\n| | figure | {' | '.join([*heads[1:], *over])} |",
        f"|---|---|{'---:|' * (1 + 2 * len(BESIDE))}",
        *map(partial(_ruled_row, runs), RULED_FIGURES),
    ]
    return "\n".join(lines) + "\n"


def _rows(runs: Runs) -> Iterator[str]:
    for feature in FEATURES:
        cells = [_figure(feature, runs[name]) for name in (NONE, feature.alone)]
        for shown in (_figure_beside, _over_alone, _brings):
            cells += [shown(feature, runs, name) if name in feature.beside else "" for name in BESIDE]
        yield f"| {feature.name} | {feature.figure} | {' | '.join(cells)} |"
    cells = [cell([run.jobs.mean for run in runs[name]], 1) for name in (NONE, *BESIDE)]
    yield f"| | response of all jobs, mean, s | {cells[0]} | | {cells[1]} | {cells[2]} | | | | |"


def _ruled_row(runs: Runs, ruled: Ruled) -> str:
    every = {name: [ruled.read(run) for run in runs[name]] for name in (NONE, *BESIDE)}
    cells = [cell(values, 1) for values in every.values()]
    cells += [_ratio(list(zip(every[name], every[NONE], strict=True))) for name in BESIDE]
    return f"| {ruled.name} | {ruled.figure} | {' | '.join(cells)} |"


def _figure(feature: Feature, runs: Sequence[RunResult]) -> str:
    return cell([feature.read(run) for run in runs], feature.places)


def _figure_beside(feature: Feature, runs: Runs, beside: str) -> str:
    return _figure(feature, runs[beside])


def _over_alone(feature: Feature, runs: Runs, beside: str) -> str:
    """The figure beside others over the figure alone."""
    pairs = zip(runs[beside], runs[feature.alone], strict=True)
    return _ratio([(feature.read(run), feature.read(alone)) for run, alone in pairs])


def _brings(feature: Feature, runs: Runs, beside: str) -> str:
    """What it brings beside others over what it brings alone."""
    return _ratio(
        [
            (feature.brings(run, none), feature.brings(alone, none))
            for run, alone, none in zip(runs[beside], runs[feature.alone], runs[NONE], strict=True)
        ]
    )


def _ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """A ratio of means over pairs with equal seeds; empty where the second ones are nothing.

    The interval is that of the ratio estimator (Cochran, Sampling Techniques, 1977, chapter 6): of the mean
    of what each pair differs by from the ratio. A ratio of each pair is noise where little can be gained.
    """
    by_itself = fmean(alone for _, alone in pairs)
    if not by_itself:
        return ""
    ratio = fmean(run for run, _ in pairs) / by_itself
    half = half_width([run - ratio * alone for run, alone in pairs])
    return f"{ratio:.2f}" + ("" if half is None else f" ±{half / by_itself:.2f}")


FILE = CHECKOUT / "docs" / "results" / "together.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    parser = parser_of("make together", __doc__)
    parser.add_argument("--tasks", type=int, default=2000, help="tasks of a run (default: %(default)s)")
    options = parser.parse_args(arguments)
    seeds, tasks = (2, 300) if options.quick else (options.seeds, options.tasks)
    with Progress("together", expected="a minute" if options.quick else "10 minutes") as progress:
        part = Part((f"measure.tasks={tasks}",), seeds)
        (runs,) = measure(SCENARIO, [part], options.jobs, progress.update)
    text = page(Facts(__version__, seeds, tasks), runs)
    publish(text, FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
