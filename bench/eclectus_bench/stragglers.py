"""`make stragglers`: what copies of stragglers gain and cost, by rule, as docs/results/stragglers.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eclectus import __version__
from eclectus.sim.base.results import CopiesResult, RunResult
from eclectus_bench.profiles import Part, Runs, cell, measure, parser_of, publish
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

SCENARIO, NONE = "stragglers", "none"
LOADS = (0.5, 0.8, 0.9)
STRAGGLING = 1.2  # what a task takes on average, in tasks that do not straggle: 1 + .05 (5 - 1)
MEANS = {
    "none": "no copies",
    "native": "Hadoop before LATE: progress 0.2 behind the mean, after a minute",
    "late-hadoop": "LATE as merged into Hadoop 0.21: a standard deviation below the mean rate of progress",
    "spark": "1.5 times the median of the stage, once three quarters of it have ended; no progress",
    "mantri-lite": "a copy probably takes half of the time left; by progress",
    "late": "LATE by progress after a minute, before that by learned speeds",
    "late-speeds": "the same without progress: by learned speeds alone",
}
_CLASS = "workload.poisson.classes.work"
# Each breaks one assumption of Hadoop that LATE names: name -> what it is, and the changes of the scenario.
# `weighted` is what can be done about `phases`.
BROKEN: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "nodes": (
        "nodes are equally fast: here ten of 30 have neighbours that take 60 % of them",
        ("cluster.groups.others.speed=0.4",),
    ),
    "phases": (
        "tasks progress at a constant rate: here a third of the progress is four fifths of the work",
        ("stragglers.shape=phases",),
    ),
    "weighted": (
        "the same, but pods state weights of their phases: 1, 1 and 3, where 1, 1 and 8 would be right",
        ("stragglers.shape=phases", "stragglers.weights=[1,1,3]"),
    ),
    "cost": (
        "a copy on a node with a free slot costs nothing: here two tasks on a node slow each other by 30 %",
        ("stragglers.crowding=0.3",),
    ),
    "scores": (
        "progress is the part of the work that is done: here it is the root of that",
        ("stragglers.shape=early",),
    ),
    "waves": (
        "tasks of a job start together: here three of ten run at a time",
        (f"{_CLASS}.parallelism=3",),
    ),
    "sizes": (
        "tasks of a job need the same work: here sizes are exponential",
        (f"{_CLASS}.size.law=exponential",),
    ),
}
INTRODUCTION = """\
# Copies of stragglers: what they gain, and what they cost

Written by `make stragglers`; change `scenarios/stragglers.yaml` or `bench/eclectus_bench/stragglers.py`, not
this page. 30 nodes of two slots, one of them four times slower; jobs of ten tasks of about 60 s; one attempt
in twenty takes five times as long, copies included. Pods say their progress every 15 s; the operator acts a
second after what it sees. The load counts what stragglers take, which is a sixth of it.

Figures are those of a profile over those of `none` with the same seed: means over runs ± half of Student's
95 % interval. `p99` and `mean` are of jobs, from arrival to the end of the last task; `all` is the time for
which slots were in use. `copies lost` and `originals lost` are the parts of it in which what was beaten has
run, in per cent; `won` is the share of copies that ended first. The aim is a p99 of at most 0.60, 0.80 and
1.00 at loads of 0.5, 0.8 and 0.9, at most 3 % in lost copies, and no more time in all."""


ALONE = """
These runs were of the loads alone (`--loads`). Without that the command also breaks each of six assumptions
of Hadoop by itself."""


@dataclass(frozen=True)
class Facts:
    """Version, and how many runs of each profile in how many jobs."""

    eclectus: str
    seeds: int
    jobs: int


def _copies(run: RunResult) -> CopiesResult:
    if run.copies is None:
        raise ValueError("a run without stragglers")
    return run.copies


def _ratio(of: Callable[[RunResult], float]) -> Callable[[RunResult, RunResult], float]:
    return lambda run, none: of(run) / of(none)


COLUMNS: Mapping[str, tuple[Callable[[RunResult, RunResult], float], int]] = {
    "p99": (_ratio(lambda run: run.jobs.p99), 2),
    "mean": (_ratio(lambda run: run.jobs.mean), 2),
    "all": (_ratio(lambda run: _copies(run).busy_seconds), 3),
    "copies lost, %": (lambda run, _: 100 * _copies(run).lost_copy_seconds / _copies(run).busy_seconds, 1),
    "originals lost, %": (
        lambda run, _: 100 * _copies(run).lost_original_seconds / _copies(run).busy_seconds,
        1,
    ),
    "won, %": (lambda run, _: 100 * _copies(run).won / max(_copies(run).started, 1), 0),
}


def page(facts: Facts, by_load: Mapping[float, Runs], broken: Mapping[str, Runs]) -> str:
    """The whole page."""
    profiles = list(next(iter(by_load.values())))
    lines = [
        INTRODUCTION,
        f"\nEclectus {facts.eclectus}; {facts.seeds} runs of {facts.jobs} jobs for each figure.\n",
        "| profile | |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in profiles),
        f"\n| load | profile | {' | '.join(COLUMNS)} |\n|---:|---|{'---:|' * len(COLUMNS)}",
        *(row for load, runs in by_load.items() for row in _rows(load, runs)),
    ]
    lines += _assumptions(facts, profiles, broken) if broken else [ALONE]
    return "\n".join(lines) + "\n"


def _assumptions(facts: Facts, profiles: Sequence[str], broken: Mapping[str, Runs]) -> list[str]:
    return [
        "\n## Each assumption of Hadoop broken by itself\n",
        f"At a load of 0.6, {max(facts.seeds // 2, 1)} runs for each figure; the cells are the p99 of jobs "
        "over that of `none` in the same scenario.\n",
        "| | assumption, and what is the case |\n|---|---|",
        *(f"| `{name}` | {BROKEN[name][0]} |" for name in broken),
        *_broken(profiles, broken),
    ]


def _rows(load: float, runs: Runs) -> Iterator[str]:
    for name, mine in runs.items():
        if name != NONE:
            cells = (_cell(read, mine, runs[NONE], places) for read, places in COLUMNS.values())
            yield f"| {load} | `{name}` | {' | '.join(cells)} |"


def _broken(profiles: Sequence[str], broken: Mapping[str, Runs]) -> Iterator[str]:
    yield f"\n| profile | {' | '.join(f'`{name}`' for name in broken)} |\n|---|{'---:|' * len(broken)}"
    read, places = COLUMNS["p99"]
    for profile in profiles:
        if profile != NONE:
            cells = (_cell(read, runs[profile], runs[NONE], places) for runs in broken.values())
            yield f"| `{profile}` | {' | '.join(cells)} |"


def _cell(
    read: Callable[[RunResult, RunResult], float],
    runs: Sequence[RunResult],
    none: Sequence[RunResult],
    places: int,
) -> str:
    return cell([read(run, other) for run, other in zip(runs, none, strict=True)], places)


def parts_of(seeds: int, tasks: int, loads_alone: bool) -> list[Part]:
    """The loads, then the broken assumptions, each of half as many seeds."""
    size = f"measure.tasks={tasks}"
    parts = [Part((size, f"workload.poisson.load={load / STRAGGLING}"), seeds) for load in LOADS]
    if not loads_alone:
        parts += [Part((size, *changes), max(seeds // 2, 1)) for _, changes in BROKEN.values()]
    return parts


FILE = CHECKOUT / "docs" / "results" / "stragglers.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    parser = parser_of("make stragglers", __doc__)
    parser.add_argument("--loads", action="store_true", help="no broken assumptions: a third of the time")
    parser.add_argument("--tasks", type=int, default=1000, help="tasks of a run (default: %(default)s)")
    options = parser.parse_args(arguments)
    seeds, tasks = (2, 200) if options.quick else (options.seeds, options.tasks)
    with Progress("stragglers", expected="a minute" if options.quick else "10 minutes") as progress:
        parts = parts_of(seeds, tasks, options.loads)
        found = measure(SCENARIO, parts, options.jobs, progress.update)
    by_load = dict(zip(LOADS, found[: len(LOADS)], strict=True))
    broken = dict(zip(BROKEN, found[len(LOADS) :], strict=False))  # none of them with --loads
    text = page(Facts(__version__, seeds, tasks // 10), by_load, broken)
    publish(text, FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
