"""Pictures of one run each: what one job holds over time beside its fair share, and what jobs leave over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eclectus.maths.numbers import Floats
from eclectus.sim.base.results import DagJob
from eclectus.sim.runs import RunSpec, build_world
from eclectus.sim.scenario import parse
from eclectus.sim.world.world import World
from eclectus_bench.carbyne.cases import ONLINE, OURS, SECTIONS, only
from eclectus_bench.carbyne.runs import Size, specs_of
from eclectus_e2e.demo.pictures import COLOURS, DASHES, LINE_COLOUR, draw_grid, picture
from eclectus_e2e.paths import CHECKOUT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CASE = ONLINE[-1]
DRAWN = replace(SECTIONS[0], cases=(CASE,), contestants=only(OURS))
FOLDER = CHECKOUT / "docs" / "pictures"
ALLOCATION, LEFTOVER = "carbyne-allocation.png", "carbyne-leftover.png"


class Span(NamedTuple):
    """A time in which nothing starts or ends, and the dominant share that each job holds then."""

    begin: float  # seconds
    end: float
    shares: Mapping[int, float]

    @property
    def fair_share(self) -> float:
        """What each job is entitled to."""
        return 1.0 / len(self.shares)

    @property
    def leftover(self) -> float:
        """What no job holds within its fair share, as a share of the cluster."""
        return 1.0 - sum(min(share, self.fair_share) for share in self.shares.values())


@dataclass(frozen=True)
class Recorded:
    """One run: its spans with jobs, and the jobs in the order of their ends."""

    spans: Sequence[Span]
    jobs: Sequence[DagJob]

    def job(self, number: int) -> DagJob:
        """The job with this number, which is the same under any order."""
        return next(job for job in self.jobs if job.number == number)

    @property
    def largest(self) -> int:
        """The number of the job with the most tasks, the first of equal ones."""
        return min(self.jobs, key=lambda job: (-job.tasks, job.number)).number

    def leftovers(self) -> tuple[Floats, Floats]:
        """What was left over while there were several jobs, and for which share of that time at most."""
        spans = sorted((span.leftover, span.end - span.begin) for span in self.spans if len(span.shares) > 1)
        values, seconds = np.array(spans).T
        return values, np.cumsum(seconds) / seconds.sum()

    def leftover_median(self) -> float:
        """The median over that time."""
        values, times = self.leftovers()
        return float(values[np.searchsorted(times, 0.5)])


Runs = Mapping[str, Recorded]
"""By contestant."""


def record_runs(size: Size) -> Runs:
    """One run of each contestant, on the same jobs."""
    return {name: _record_spec(spec) for _, name, spec in specs_of(DRAWN, replace(size, seeds=1))}


def _record_spec(spec: RunSpec) -> Recorded:
    scenario = parse(spec.text, spec.folder, spec.changes)
    profile = next(each for each in scenario.profiles if each.name == spec.profile)
    return record(build_world(scenario, profile, spec.seed))


def record(world: World) -> Recorded:
    """Run to the end, and keep what every job held at any time."""
    spans = list[Span]()

    def note(begin: float, end: float, shares: Mapping[int, float]) -> None:
        if shares:
            spans.append(Span(begin, end, shares))

    world.dags.on_interval = note
    world.run()
    return Recorded(spans, world.dags.result().jobs)


def lines_of(runs: Runs) -> Iterator[str]:
    """The section of the page that shows both pictures."""
    number = runs[OURS].largest
    took = [f"{run.job(number).response:.1f} s under `{name}`" for name, run in runs.items()]
    left = [f"{100 * run.leftover_median():.0f} % under `{name}`" for name, run in runs.items()]
    yield "\n## One job's allocation, and what is left over\n"
    yield (
        f"TPC-H, {CASE.what}, one run with seed 1: an example, without an interval. The job with the most "
        f"tasks ({runs[OURS].job(number).tasks}) took {' and '.join(took)}. N is the number of jobs.\n"
    )
    yield f"![What one job holds over time beside its fair share, by order](../pictures/{ALLOCATION})\n"
    yield (
        "Left over is what no job holds within its 1/N, whether another one holds it above its own or "
        f"nobody does. Its median over the time with several jobs is {' and '.join(left)}.\n"
    )
    yield f"![How much of the cluster is left over, as shares of the time, by order](../pictures/{LEFTOVER})"


def draw(runs: Runs, folder: Path) -> None:
    """Write both pictures as PNG."""
    number = runs[OURS].largest
    end = max(run.job(number).arrived + run.job(number).response for run in runs.values())
    with picture(folder / ALLOCATION, 8, 5, f"What one job holds, TPC-H, {CASE.what}") as figure:
        panels = figure.subplots(len(runs), 1, sharex=True, sharey=True, squeeze=False).ravel().tolist()
        for axes, (name, run) in zip(panels, runs.items(), strict=True):
            _draw_allocation(axes, name, run, number)
            axes.set_xlim(runs[OURS].job(number).arrived, end)
        panels[-1].set_xlabel("time, s")
    with picture(folder / LEFTOVER, 8, 4, f"What jobs leave over, TPC-H, {CASE.what}") as figure:
        axes = figure.subplots()
        for name, run in runs.items():
            values, times = run.leftovers()
            axes.plot(100 * values, times, color=COLOURS[f"eclectus-{name}"], label=name)
        axes.set(xlabel="left over, % of the cluster", ylabel="share of the time", xlim=(0, 100), ylim=(0, 1))
        draw_grid(axes)
        axes.legend(frameon=False)


def _draw_allocation(axes: Axes, name: str, run: Recorded, number: int) -> None:
    spans = [span for span in run.spans if number in span.shares]
    edges = [span.begin for span in spans] + [spans[-1].end]
    held = [100 * span.shares[number] for span in spans]
    fair = [100 * span.fair_share for span in spans]
    axes.stairs(held, edges, fill=True, color=COLOURS[f"eclectus-{name}"], alpha=0.6, label="holds")
    axes.stairs(fair, edges, baseline=None, color=LINE_COLOUR, linestyle=DASHES, label="fair share, 1/N")
    axes.set(title=name, ylabel="% of the cluster", ylim=(0, None))
    draw_grid(axes)
    axes.legend(frameon=False, loc="upper right")
