"""`make quincy`: bytes across racks and turnaround by Quincy, delay scheduling and neither, as a page.

The paper's four policies have a section of their own (`quincy_policies.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from eclectus import __version__
from eclectus.maths.student import half_width
from eclectus.sim.base.results import RunResult
from eclectus_bench import quincy_policies
from eclectus_bench.profiles import Part, Runs, cell, measure, parser_of, publish
from eclectus_e2e.paths import CHECKOUT
from eclectus_e2e.progress import Progress

SCENARIO, NONE, DELAY = "quincy", "none", "delay"
LOADS = (0.5, 0.7, 0.9)
CASES_LOAD = 0.7
MEANS = {
    "none": "`order: drf` by job, `place: uniform`: a node with room, wherever the data are",
    "delay": "the same with `hold: delay`: 5 s for a node with the data, then 10 s for one in its rack",
    "quincy": "`place: quincy`, `costs: quincy` with the true prices of the scenario",
    "quincy-fair": "the same with `fairShare: true`",
}
_SIZES = [f"workload.poisson.classes.{name}.size.mean=300s" for name in ("small", "large")]
# What is otherwise than its prices say, or leaves it little to gain: name -> what it is, and the changes.
CASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "free": (
        "moving data takes no time, and Quincy is set as before",
        ("data.remoteSeconds=0", "data.nearSeconds=0"),
    ),
    "little": ("tasks read 0.2 GB on average, so a second or less is to be saved", ("data.gigabytes=0.2",)),
    "long": ("tasks take 300 s, so a slot beside the data is rarely free", tuple(_SIZES)),
    "hot": ("three of ten tasks read one data set on three nodes", ("data.hot=0.3",)),
}
INTRODUCTION = """\
# Quincy: data, by bytes

Written by `make quincy`; change `scenarios/quincy.yaml` or `bench/eclectus_bench/quincy.py`, not this page.
40 nodes of four slots in eight racks; jobs of five and of fifty tasks of 20 s. Each task reads data of its
own, exponential with a mean of 5 GB, which three nodes have. A GB takes 1 s from another node of the rack
and 4 s from another rack. The load counts what tasks compute, without reading.

`across` are the GB that a task has read from another rack, mean over the tasks of a run; `turnaround` is that
of jobs, from arrival to the end of the last task, mean; `p99` its 99th percentile. The columns with `of none`
are ratios to `none` with the same seed. Means over runs ± half of Student's 95 % interval. Not measured: a
network on which transfers slow each other down, which would add to what locality saves.

At a load of 0.9 `none` cannot keep up, as reading takes slots too: its figures there depend on the length of
the run."""


@dataclass(frozen=True)
class Facts:
    """Version, and how many runs of each profile in how many tasks."""

    eclectus: str
    seeds: int
    tasks: int


def _across(run: RunResult) -> float:
    if run.across_gigabytes is None:
        raise ValueError("a run without racks")
    return run.across_gigabytes / run.tasks


def _located(run: RunResult) -> float:
    return 100.0 * (run.locality or 0.0)


def _mean(run: RunResult) -> float:
    return run.jobs.mean


COLUMNS: Mapping[str, tuple[Callable[[RunResult, RunResult], float], int]] = {
    "across, GB": (lambda run, _: _across(run), 2),
    "of none": (lambda run, none: _across(run) / _across(none), 3),
    "turnaround, s": (lambda run, _: _mean(run), 1),
    "of none ": (lambda run, none: _mean(run) / _mean(none), 3),
    "p99, s": (lambda run, _: run.jobs.p99, 0),
    "at its data, %": (lambda run, _: _located(run), 1),
}


def page(
    facts: Facts, by_load: Mapping[float, Runs], cases: Mapping[str, Runs], policies: Sequence[str] = ()
) -> str:
    """The whole page; `policies`: the lines of the section on the paper's four."""
    named = {f"load {load}": runs for load, runs in by_load.items()}
    lines = [
        INTRODUCTION,
        f"\nEclectus {facts.eclectus}; {facts.seeds} runs of {facts.tasks} tasks for each figure.\n",
        "| profile | |\n|---|---|",
        *(f"| `{name}` | {about} |" for name, about in MEANS.items()),
        "",
        *_table(named),
        "\n## Where there is little to gain, or prices are wrong\n",
        f"At a load of {CASES_LOAD}.\n",
        "| | what is the case |\n|---|---|",
        *(f"| `{name}` | {CASES[name][0]} |" for name in cases),
        "",
        *_table({f"`{name}`": runs for name, runs in cases.items()}),
        *_against_delay({**named, **{f"`{name}`": runs for name, runs in cases.items()}}),
        *policies,
    ]
    return "\n".join(lines) + "\n"


def _table(parts: Mapping[str, Runs]) -> Iterator[str]:
    yield f"| | profile | {' | '.join(COLUMNS)} |\n|---|---|{'---:|' * len(COLUMNS)}"
    for part, runs in parts.items():
        for name, mine in runs.items():
            cells = (_cell(read, mine, runs[NONE], places) for read, places in COLUMNS.values())
            yield f"| {part} | `{name}` | {' | '.join(cells)} |"


def _cell(
    read: Callable[[RunResult, RunResult], float],
    runs: Sequence[RunResult],
    other: Sequence[RunResult],
    places: int,
) -> str:
    return cell([read(run, each) for run, each in zip(runs, other, strict=True)], places)


def _against_delay(parts: Mapping[str, Runs]) -> Iterator[str]:
    """Differences to delay scheduling with the same seed, and in words where Quincy loses."""
    yield "\n## Quincy beside delay scheduling\n"
    yield "With the same seed, by how much more Quincy moves for each task, and how much longer jobs take.\n"
    yield f"| | profile | {' | '.join(FIGURES)} |\n|---|---|{'---:|' * len(FIGURES)}"
    lost = list[str]()
    for part, runs in parts.items():
        for name in (each for each in runs if each not in {NONE, DELAY}):
            more = {what: _more(read, runs[name], runs[DELAY]) for what, (read, _) in FIGURES.items()}
            cells = {what: cell(more[what], places) for what, (_, places) in FIGURES.items()}
            yield f"| {part} | `{name}` | {' | '.join(cells.values())} |"
            lost += [f"- {part}, `{name}`: {what} {cells[what]}" for what in FIGURES if is_more(more[what])]
    yield "\nIt loses, by an interval above 0:\n" if lost else "\nIt loses nowhere here."
    yield from lost


FIGURES: Mapping[str, tuple[Callable[[RunResult], float], int]] = {
    "across, GB": (_across, 3),
    "turnaround, s": (_mean, 2),
}


def _more(
    read: Callable[[RunResult], float], runs: Sequence[RunResult], delayed: Sequence[RunResult]
) -> list[float]:
    return [read(run) - read(other) for run, other in zip(runs, delayed, strict=True)]


def is_more(differences: Sequence[float]) -> bool:
    """Whether their whole interval is above 0."""
    half = half_width(differences)
    return half is not None and fmean(differences) - half > 0.0


def parts_of(seeds: int, tasks: int) -> list[Part]:
    """The loads, then the cases at a load of their own."""
    size = f"measure.tasks={tasks}"
    loads = [Part((size, f"workload.poisson.load={load}"), seeds) for load in LOADS]
    load = f"workload.poisson.load={CASES_LOAD}"
    return loads + [Part((size, load, *changes), seeds) for _, changes in CASES.values()]


FILE = CHECKOUT / "docs" / "results" / "quincy.md"


def main(arguments: Sequence[str] = ()) -> int:
    """Measure, print and write; a short version (`--quick`) is printed alone."""
    parser = parser_of("make quincy", __doc__)
    parser.add_argument("--tasks", type=int, default=2000, help="tasks of a run (default: %(default)s)")
    options = parser.parse_args(arguments)
    seeds, tasks = (2, 200) if options.quick else (options.seeds, options.tasks)
    fewer = tasks // 4  # of the four policies: ending running tasks makes rounds dear
    with Progress("quincy", expected="a minute" if options.quick else "25 minutes") as progress:
        found = measure(SCENARIO, parts_of(seeds, tasks), options.jobs, progress.update)
        four = quincy_policies.parts_of(seeds, fewer)
        together, alone = measure(quincy_policies.SCENARIO, four, options.jobs, progress.update)
    by_load = dict(zip(LOADS, found[: len(LOADS)], strict=True))
    cases = dict(zip(CASES, found[len(LOADS) :], strict=True))
    policies = list(quincy_policies.section(together, alone, fewer))
    publish(page(Facts(__version__, seeds, tasks), by_load, cases, policies), FILE, is_short=options.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
