"""The picture of the experiment on scarce nodes. Each title says what is shown and what is better."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eclectus_e2e.demo.pictures import COLOURS, draw_grid, picture
from eclectus_e2e.demo.stream.groups import CONSTRAINED, FREE, group
from eclectus_e2e.demo.stream.plots import draw_waiting
from eclectus_e2e.demo.stream.report import Report, Run
from eclectus_e2e.demo.workload.pods import pod_name

PANELS: list[Any] = [["waits", "responses"], [CONSTRAINED, FREE]]


def draw(report: Report, runs: Sequence[Run], file: Path) -> None:
    """Write the picture as PNG."""
    title = (
        "Batches that few nodes may run, beside pods that any node may run: who waits\n"
        f"{report.nodes} equally fast nodes, load {report.load:g}, seed {report.seed}, the same pods to each"
    )
    with picture(file, 13, 8.5, title) as figure:
        panels = figure.subplot_mosaic(PANELS)
        _bars(panels["waits"], report, "wait_seconds", "wait from creation to start")
        _bars(panels["responses"], report, "response_seconds", "response time, from creation to end")
        for name in (CONSTRAINED, FREE):
            draw_waiting(panels[name], [_only(run, name) for run in runs])
            panels[name].set_title(f"Pods waiting that are {name}: lower is better")


def _bars(axes: Axes, report: Report, field: str, what: str) -> None:
    """The mean of each group, a bar for each scheduler."""
    names = list(dict.fromkeys(name for one in report.schedulers.values() for name in one.groups))
    width = 0.8 / len(report.schedulers)
    for number, (scheduler, result) in enumerate(report.schedulers.items()):
        means = [getattr(result.groups[name], field).mean if name in result.groups else 0.0 for name in names]
        places = np.arange(len(names)) - 0.4 + (number + 0.5) * width
        axes.barh(places, means, height=width, color=COLOURS[scheduler], label=scheduler)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(title=f"Mean {what}: lower is better", xlabel="seconds")
    draw_grid(axes)
    axes.legend(frameon=False)


def _only(run: Run, name: str) -> Run:
    """The run with the records of one group alone."""
    members = {pod_name(one) for one in run.arrivals if group(one) == name}
    return replace(run, entries=[entry for entry in run.entries if entry.name in members])
