"""`make stragglers`: what copies of stragglers gain and cost, by rule, as docs/results/stragglers.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from eclectus import __version__
from eclectus.maths.student import half_width
from eclectus.sim.base.results import CopiesResult, RunResult
from eclectus_bench.profiles import Part, Runs, cell, measure, parser_of, publish
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

SCENARIO, NONE = "stragglers", "none"
LOADS = (0.5, 0.8, 0.9)
JUDGED = "late"
P99_MOST = {0.5: 0.6, 0.8: 0.8, 0.9: 1.0}  # of that of `none`
MOST = {"copies lost, % at most 3": 3.0, "all at most 1.00": 1.0}
SLOW, TRUE_RATE = "slow", 0.25  # the group of the slow node, and its speed
SHARE = 0.05  # of attempts that straggle
STRAGGLING = 1.2  # what a task takes on average, in tasks that do not straggle: 1 + .05 (5 - 1)
JUDGED_TIMES = 4  # jobs of a run that is judged, over those of others: of 100 jobs p99 is almost the longest
# Runs that are judged, over those of others: ten leave open on which side of an aim p99 is at .5 and .8.
JUDGED_RUNS = {0.5: 3, 0.8: 3, 0.9: 1}
# As where each task has two attempts from the start, for nothing, and straggles only if both do; and as
# where no node were slow, with the same jobs: 60 slots instead of what is worth 58.5.
BEST = (f"stragglers.share={SHARE**2}", f"cluster.groups.{SLOW}.speed=1")
BEST_LOAD = 58.5 / 60
MEANS = {
    "none": "no copies",
    "native": "Hadoop before LATE: progress 0.2 behind the mean, after a minute",
    "late-hadoop": "LATE as merged into Hadoop 0.21: a standard deviation below the mean rate of progress",
    "spark": "1.5 times the median of the stage, once three quarters of it have ended; no progress",
    "mantri-lite": "a copy probably takes half of the time left; by progress",
    "late": "LATE by progress after a minute, before that by learned speeds",
    "late-speeds": "the same without progress: by learned speeds alone",
}
# Other settings of what is judged, at the load at which its aim is the closest.
SETTINGS_AT = 0.8
SETTINGS: Sequence[tuple[str, ...]] = (
    ("judgedAfter=15s",),
    ("judgedAfter=30s",),
    ("slowShare=0.5",),
    ("overdue=1.2",),
    ("slowNode=1.5",),
    ("jobShare=1",),
    ("poolShare=0.2",),
    ("poolShare=0.2", "jobShare=1"),
)
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
second after what it sees. The load counts what stragglers take, which is a sixth of it. The first fifth of a
run is not measured.

Figures are those of a profile over those of `none` with the same seed: means over runs ± half of Student's
95 % interval. `p99` and `mean` are of jobs, from arrival to the end of the last task; `all` is the time for
which slots were in use. `copies lost` and `originals lost` are the parts of it in which what was beaten has
run, in per cent; `won` is the share of copies that ended first."""
AIMS = """
## What is aimed at

Of `late`, in runs of {jobs} jobs: {runs}. An aim is met or missed where all of the interval is, and *in the
mean* met or missed where the interval does not decide. `bound` is what no rule can beat that makes one copy
of a pod: the same jobs if each task had its copy from the start, for nothing, so that it straggles where both
do, and if no node were slow. The rate of the slow node, 0.25 in truth, is what is learned of it at the end of
a run over the median of the others, with copies."""
OTHERS = """
## Other settings

Of `{judged}` at a load of {load}, {runs} runs of {jobs} jobs: over those of its defaults with the same seed.
Defaults are not chosen by these figures; they are those of the paper or of Spark where these name one."""
AIMS_HEAD = f"| aim | load | `{JUDGED}` | | bound |\n|---|---:|---:|---|---:|"


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


@dataclass(frozen=True)
class Measured:
    """All runs: of each load, longer ones that are judged, what bounds these, other settings, assumptions."""

    by_load: Mapping[float, Runs]
    judged: Mapping[float, Runs]
    bounds: Mapping[float, Runs]
    settings: Mapping[tuple[str, ...], Runs]
    broken: Mapping[str, Runs]


def page(facts: Facts, measured: Measured) -> str:
    """The whole page."""
    by_load = measured.by_load
    profiles = list(next(iter(by_load.values())))
    lines = [
        INTRODUCTION,
        f"\nEclectus {facts.eclectus}; {facts.seeds} runs of {facts.jobs} jobs for each figure.\n",
        "| profile | |\n|---|---|",
        *(f"| `{name}` | {MEANS[name]} |" for name in profiles),
        f"\n| load | profile | {' | '.join(COLUMNS)} |\n|---:|---|{'---:|' * len(COLUMNS)}",
        *(row for load, runs in by_load.items() for row in _rows(load, runs)),
        AIMS.format(jobs=JUDGED_TIMES * facts.jobs, runs=_numbers(measured.judged)),
        f"\n{AIMS_HEAD}",
        *(row for load, runs in measured.judged.items() for row in _aims(load, runs, measured.bounds[load])),
        *_settings(facts, measured),
        *_assumptions(facts, profiles, measured.broken),
    ]
    return "\n".join(lines) + "\n"


def _numbers(judged: Mapping[float, Runs]) -> str:
    return ", ".join(f"{len(runs[JUDGED])} at load {load}" for load, runs in judged.items())


def _settings(facts: Facts, measured: Measured) -> Iterator[str]:
    yield OTHERS.format(judged=JUDGED, load=SETTINGS_AT, runs=facts.seeds, jobs=JUDGED_TIMES * facts.jobs)
    yield f"\n| setting | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}"
    usual = measured.judged[SETTINGS_AT][JUDGED]
    for setting, runs in measured.settings.items():
        name, mine = ", ".join(each.replace("=", ": ") for each in setting), runs[JUDGED]
        # Of the first seeds: what is judged has more runs.
        cells = (_cell(read, mine, usual[: len(mine)], places) for read, places in COLUMNS.values())
        yield f"| `{name}` | {' | '.join(cells)} |"


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


def _aims(load: float, runs: Runs, bound: Runs) -> Iterator[str]:
    late, none = runs[JUDGED], runs[NONE]
    for name, aim in ((f"p99 at most {P99_MOST[load]:.2f}", P99_MOST[load]), *MOST.items()):
        read, places = COLUMNS[name.partition(" at most")[0]]
        values = [read(run, other) for run, other in zip(late, none, strict=True)]
        best = _cell(read, bound[NONE], none, places) if name.startswith("p99") else ""
        yield f"| {name} | {load} | {cell(values, places)} | {_verdict(values, 0.0, aim)} | {best} |"
    rates = [_slow_rate(run) for run in late]
    known = [rate for rate in rates if rate is not None]
    within = (TRUE_RATE * 2 / 3, TRUE_RATE * 4 / 3)
    yield f"| slow node within a third | {load} | {cell(known, 3)} | {_verdict(known, *within)} | |"
    live = sum(_is_slow_live(run) for run in late)
    verdict = "met" if live == len(late) else "missed"
    yield f"| slow node live | {load} | {live} of {len(late)} | {verdict} | |"


def _verdict(values: Sequence[float], least: float, most: float) -> str:
    if not values:
        return "unknown"
    mean, half = fmean(values), half_width(values) or 0.0
    if least <= mean - half and mean + half <= most:
        return "met"
    if mean + half < least or most < mean - half:
        return "missed"
    return "in the mean" if least <= mean <= most else "missed in the mean"


def _slow_rate(run: RunResult) -> float | None:
    """What is learned of the slow node over the median of the others; None if nothing is."""
    slow = [each.learned for each in run.learned if each.group == SLOW]
    others = [each.learned for each in run.learned if each.group != SLOW]
    return slow[0] / median(others) if slow and others else None


def _is_slow_live(run: RunResult) -> bool:
    return any(each.group == SLOW and each.state == "live" for each in run.learned)


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


def parts_of(seeds: int, tasks: int) -> list[Part]:
    """The loads, those judged, their bounds, other settings; broken assumptions, of half as many seeds."""
    size, long = (f"measure.tasks={count}" for count in (tasks, JUDGED_TIMES * tasks))
    parts = [Part((size, _load(load)), seeds) for load in LOADS]
    judged = {load: seeds * JUDGED_RUNS[load] for load in LOADS}
    parts += [Part((long, _load(load)), judged[load], (NONE, JUDGED)) for load in LOADS]
    parts += [Part((long, _load(load * BEST_LOAD), *BEST), judged[load], (NONE,)) for load in LOADS]
    for settings in SETTINGS:
        changes = (f"profiles.{JUDGED}.speculate.{each}" for each in settings)
        parts.append(Part((long, _load(SETTINGS_AT), *changes), seeds, (JUDGED,)))
    return parts + [Part((size, *changes), max(seeds // 2, 1)) for _, changes in BROKEN.values()]


def _load(load: float) -> str:
    return f"workload.poisson.load={load / STRAGGLING}"


FILE = CHECKOUT / "docs" / "results" / "stragglers.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    parser = parser_of("make stragglers", __doc__)
    parser.add_argument("--tasks", type=int, default=1000, help="tasks of a run (default: %(default)s)")
    options = parser.parse_args(arguments)
    seeds, tasks = (2, 200) if options.quick else (options.seeds, options.tasks)
    with Progress("stragglers", expected="a minute" if options.quick else "45 minutes") as progress:
        found = iter(measure(SCENARIO, parts_of(seeds, tasks), options.jobs, progress.update))
    by_load, judged, bounds = ({load: next(found) for load in LOADS} for _ in range(3))
    settings = {each: next(found) for each in SETTINGS}
    broken = {name: next(found) for name in BROKEN}
    measured = Measured(by_load, judged, bounds, settings, broken)
    text = page(Facts(__version__, seeds, tasks // 10), measured)
    publish(text, FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
