"""The four policies of Quincy's paper: fair shares or none, and running tasks ended or not (SOSP 2009, § 6).

The paper's three measures: how long jobs take, how fairly they are treated, and how much crosses racks. Its
unfairness is the coefficient of variation of the slowdowns of jobs; here of the mean slowdowns of the three
classes, because a few large jobs would say little beside hundreds of small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, pstdev

from eclectus.sim.base.results import RunResult
from eclectus_bench.profiles import Part, Runs, cell

SCENARIO, NONE, ALONE = "quincy-running", "none", "quincy"
CLASSES = ("short", "middle", "long")
ALONE_LOAD = 0.01  # jobs hardly ever meet
MEANS: Mapping[str, str] = {
    "none": "`order: drf` by job, `place: uniform`: greedy queues that know neither data nor network",
    "quincy": "without fair shares, without preemption",
    "preempt": "without fair shares, with preemption",
    "fair": "with fair shares, without preemption",
    "fair-preempt": "with both",
}
INTRODUCTION = """
## The paper's four policies

`scenarios/quincy-running.yaml`: twelve nodes of four slots in four racks, load .8. Jobs of five tasks of
20 s come while jobs of 48 tasks of 120 s run, and some of twelve of 60 s; data as above. A preempted task
has lost what it did, and starts anew.

`slowdown` is the mean turnaround of a class over that of the same jobs when they meet no others (at a load
of {alone}, by `quincy`); `unfairness` the coefficient of variation of the three: 0 if all classes are slowed
down alike. `ended` are preempted tasks for each 100 tasks. `of none` are ratios to `none` with the same seed.
{seeds} runs of {tasks} tasks for each figure."""

Read = Callable[[RunResult, RunResult], float | None]


def parts_of(seeds: int, tasks: int) -> list[Part]:
    """The five profiles, and the jobs alone."""
    size = f"measure.tasks={tasks}"
    return [Part((size,), seeds), Part((size, f"workload.poisson.load={ALONE_LOAD}"), seeds, (ALONE,))]


def section(together: Runs, alone: Runs, tasks: int) -> Iterator[str]:
    """Lines of the page."""
    seeds = len(alone[ALONE])
    yield INTRODUCTION.format(alone=ALONE_LOAD, seeds=seeds, tasks=tasks)
    yield "\n| profile | |\n|---|---|"
    yield from (f"| `{name}` | {MEANS[name]} |" for name in together)
    heads = [*COLUMNS, *(f"{name} of none" for name in RATIOS)]
    yield f"\n| profile | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}"
    for name, runs in together.items():
        pairs = list(zip(runs, alone[ALONE], strict=True))
        cells = [cell([read(*pair) for pair in pairs], places) for read, places in COLUMNS.values()]
        of_none = list(zip(runs, together[NONE], strict=True))
        cells += (cell([read(run) / read(none) for run, none in of_none], 3) for read in RATIOS.values())
        yield f"| `{name}` | {' | '.join(cells)} |"


def slowdown(name: str) -> Read:
    """How many times as long as alone jobs of the class take; None if a run has none of them."""

    def read(run: RunResult, alone: RunResult) -> float | None:
        mine, others = run.groups["class"].get(name), alone.groups["class"].get(name)
        if mine is None or others is None or not (mine.jobs.count and others.jobs.count):
            return None
        return mine.jobs.mean / others.jobs.mean

    return read


def unfairness(run: RunResult, alone: RunResult) -> float | None:
    """The coefficient of variation of the slowdowns of the classes."""
    found = [slowdown(name)(run, alone) for name in CLASSES]
    known = [each for each in found if each is not None]
    return pstdev(known) / fmean(known) if len(known) == len(CLASSES) else None


def _across(run: RunResult) -> float:
    return (run.across_gigabytes or 0.0) / run.tasks


def _turnaround(run: RunResult) -> float:
    return run.jobs.mean


RATIOS: Mapping[str, Callable[[RunResult], float]] = {"across": _across, "turnaround": _turnaround}
COLUMNS: Mapping[str, tuple[Read, int]] = {
    "across, GB": (lambda run, _: _across(run), 2),
    "turnaround, s": (lambda run, _: _turnaround(run), 1),
    **{f"slowdown, {name}": (slowdown(name), 2) for name in CLASSES},
    "unfairness": (unfairness, 3),
    "ended": (lambda run, _: 100.0 * run.evictions / run.tasks, 1),
}
