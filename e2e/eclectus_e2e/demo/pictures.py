"""What the pictures of all experiments share: style, colours, and panels that occur in several."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eclectus_e2e.demo.schedulers import (
    CARBYNE,
    COPIES,
    DELAY,
    ECLECTUS,
    ECLECTUS_PHOENIX,
    KUBE_SCHEDULER,
    NO_COPIES,
    NO_DELAY,
)
from eclectus_e2e.demo.workload.mixed import SPEEDS, swapped_speed

COLOURS = {  # distinct also with colour blindness
    ECLECTUS: "#0072b2",
    KUBE_SCHEDULER: "#d55e00",
    "eclectus-uniform": "#999999",
    "eclectus-pot": "#009e73",
    NO_DELAY: "#cc79a7",
    DELAY: "#0072b2",
    COPIES: "#0072b2",
    NO_COPIES: "#cc79a7",
    ECLECTUS_PHOENIX: "#56b4e9",
    CARBYNE: "#0072b2",
    "eclectus-drf": "#009e73",
    "eclectus-srtf": "#cc79a7",
    "eclectus-fifo": "#999999",
}
# Of nodes, by their first speed, the slowest first: distinct also in grey.
SPEED_COLOURS = dict(zip(SPEEDS, ("#d55e00", "#e69f00", "#56b4e9", "#0072b2"), strict=True))
LINE_COLOUR = "#555555"
DASHES = (0, (5, 3))
LOWEST_SPEED_SHOWN = 0.3  # a lower one, such as 0 of a frozen node, is drawn at this one
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

Floats = NDArray[np.float64]


@contextmanager
def picture(file: Path, width: float, height: float, title: str) -> Iterator[Figure]:
    """A figure to draw on, written as PNG after the block. `title`: what it shows and which way is better."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained", dpi=100)
        yield figure
        figure.suptitle(title, fontsize=11)
        figure.savefig(file)


def draw_grid(axes: Axes) -> None:
    """Thin lines in both directions."""
    axes.grid(color="#dddddd", linewidth=0.6)


def draw_speeds(axes: Axes, at: Sequence[float], nodes: Sequence[tuple[float, Sequence[float]]]) -> None:
    """Learned speed over time of nodes, each (first true speed, learned speeds at the times `at`)."""
    for speed, learned in nodes:
        axes.plot(at, learned, color=SPEED_COLOURS[speed], linewidth=1.1, alpha=0.85)
    scale_speeds(axes)


def draw_swapped_speeds(axes: Axes, change: float, end: float) -> None:
    """True speeds over time as dashes: each group has its second speed from the time `change` on."""
    for speed in SPEEDS:
        after = swapped_speed(speed)
        axes.plot(
            [0, change, change, end],
            [speed, speed, after, after],
            color=SPEED_COLOURS[speed],
            linestyle=DASHES,
            linewidth=2.0,
            alpha=0.6,
            label=f"true speed {speed:g}, then {after:g}",
        )


def scale_speeds(axes: Axes) -> None:
    """A logarithmic axis on which a factor of two has the same length everywhere."""
    axes.set_yscale("log", base=2)
    axes.set_ylim(LOWEST_SPEED_SHOWN * 0.9, 2 * SPEEDS[-1])
    axes.set_yticks(SPEEDS, [f"{speed:g}" for speed in SPEEDS])
    axes.set_ylabel("speed")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


def sums_over_time(
    begins: Sequence[float], ends: Sequence[float], amounts: Sequence[float], step_seconds: float
) -> tuple[Floats, Floats]:
    """Times, and the sum of the amounts that are present then, averaged over a step."""
    edges = np.arange(0.0, max(ends, default=0.0) + step_seconds, step_seconds)
    overlap = np.zeros(len(edges))
    for begin, end, amount in zip(begins, ends, amounts, strict=True):
        first, last = int(begin / step_seconds), int(end / step_seconds)
        overlap[first : last + 1] += amount * step_seconds
        overlap[first] -= amount * (begin - edges[first])
        overlap[last] -= amount * (edges[last] + step_seconds - end)
    return edges + step_seconds / 2, overlap / step_seconds
