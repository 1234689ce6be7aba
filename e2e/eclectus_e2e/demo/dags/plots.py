"""The picture of the experiment on DAG jobs: a Gantt chart for each scheduler, and the times of jobs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from eclectus_e2e.demo.dags.report import DagReport, Result, succeeded
from eclectus_e2e.demo.dags.run import DagRun
from eclectus_e2e.demo.pictures import COLOURS, draw_grid, picture

COLUMNS = 2
PANEL_WIDTH, PANEL_HEIGHT = 6.5, 3.6  # inches
WAITING_COLOUR = "#dddddd"


def draw(report: DagReport, runs: Sequence[DagRun], file: Path) -> None:
    """Write the picture as PNG."""
    title = (
        "The same DAG jobs to each scheduler, one after another: when each ran, and how long it took\n"
        f"{report.jobs} jobs on {report.nodes} nodes of hidden speeds, seed {report.seed}"
    )
    names = [*report.schedulers, "times"]
    rows = [names[at : at + COLUMNS] for at in range(0, len(names), COLUMNS)]
    rows[-1] += ["times"] * (COLUMNS - len(rows[-1]))
    with picture(file, COLUMNS * PANEL_WIDTH, len(rows) * PANEL_HEIGHT, title) as figure:
        panels = figure.subplot_mosaic([list(row) for row in rows])
        longest = max(one.makespan for one in report.schedulers.values())
        for run in runs:
            _gantt(panels[run.scheduler], run, report.schedulers[run.scheduler], longest)
        _times(panels["times"], report)


def _gantt(axes: Axes, run: DagRun, result: Result, longest: float) -> None:
    """A line for each job: grey from its creation to its end, coloured while tasks of it run."""
    first, done = min(run.sent.values()), succeeded(run.entries)
    for line, job in enumerate(result.jobs):
        end = longest if job.ended is None else job.ended
        axes.barh(line, end - job.created, left=job.created, height=0.8, color=WAITING_COLOUR)
        spans = [
            (entry.started - first, entry.finished - first)
            for task, entry in done.items()
            if task.job == job.name
        ]
        bars = [(begin, end - begin) for begin, end in merged(spans)]
        axes.broken_barh(bars, (line - 0.4, 0.8), color=COLOURS[run.scheduler])
    axes.set(
        title=f"{run.scheduler}: mean {result.job_seconds.mean:.1f} s (grey: no task runs; short is better)",
        xlabel="seconds since the first job was created",
        ylabel="jobs, by arrival",
        xlim=(0, longest),
    )
    axes.invert_yaxis()
    axes.set_yticks([])


def merged(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The union of intervals (begin, end), as disjoint ones in order."""
    begin = end = None
    for one in sorted(spans):
        if begin is None or end is None:
            begin, end = one
        elif one[0] <= end:
            end = max(end, one[1])
        else:
            yield begin, end
            begin, end = one
    if begin is not None and end is not None:
        yield begin, end


def _times(axes: Axes, report: DagReport) -> None:
    for name, one in report.schedulers.items():
        seconds = sorted(job.seconds for job in one.jobs if job.seconds is not None)
        shares = np.arange(1, len(seconds) + 1) / len(one.jobs)
        axes.step(seconds, shares, where="post", color=COLOURS[name], label=name)
    axes.set(
        title="Job completion time: a curve further left is better",
        xlabel="seconds from a job's creation to the end of its last task",
        ylabel="share of jobs",
    )
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.02)
    draw_grid(axes)
    axes.legend(frameon=False)
