"""The distribution of queueing by policy: of tasks that drew constraints, and of those that drew none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from eclectus.maths.numbers import Floats
from eclectus.sim.base.results import RunResult, Times
from eclectus.sim.world.run_record import RATIO, ZERO_BUCKET
from eclectus_bench.phoenix.traces import GROUPS, NAMES, SHORT, Measurement
from eclectus_e2e.demo.pictures import DASHES, draw_grid, picture
from eclectus_e2e.paths import CHECKOUT

WAITS = CHECKOUT / "docs" / "pictures" / "phoenix-waits.png"
KINDS = ("constrained", "free")
COLOURS = dict(zip(NAMES, ("#0072b2", "#56b4e9", "#f0a030", "#009e73", "#d55e00", "#cc79a7"), strict=True))
LEAST_SECONDS = 0.01  # shorter waits are drawn at the left edge


def distribution(samples: Iterable[Times]) -> tuple[Floats, Floats]:
    """Times, seconds, in increasing order, and the share of all samples that are at most as long."""
    counts = Counter[int]()
    for each in samples:
        counts.update(each.buckets)
    buckets = sorted(counts)
    seconds = [0.0 if bucket == ZERO_BUCKET else RATIO ** (bucket + 1) for bucket in buckets]
    numbers = np.array([counts[bucket] for bucket in buckets], dtype=np.float64)
    return np.array(seconds), np.cumsum(numbers) / max(numbers.sum(), 1.0)


def draw(done: Measurement, file: Path) -> None:
    """Write the picture as PNG: a curve for each policy, and dashes for its runs without constraints."""
    title = "How long tasks of short jobs wait, all seeds together: a curve further left is better"
    with picture(file, 9, 4.5, title) as figure:
        for axes, kind in zip(figure.subplots(1, len(KINDS), sharey=True).tolist(), KINDS, strict=True):
            for name, pairs in done.pairs.items():
                colour = COLOURS[name]
                with_sets = (each.constrained.groups[GROUPS][f"{SHORT}, {kind}"].wait for each in pairs)
                seconds, shares = distribution(with_sets)
                axes.step(np.maximum(seconds, LEAST_SECONDS), shares, where="post", color=colour, label=name)
                seconds, shares = distribution(_waits_without(each.plain) for each in pairs)
                shown = np.maximum(seconds, LEAST_SECONDS)
                axes.step(shown, shares, where="post", color=colour, linestyle=DASHES, linewidth=0.8)
            axes.set(title=f"{kind} jobs (dashes: all jobs, no constraints)", xlabel="wait, s", xscale="log")
            axes.set(ylabel="share of the tasks", ylim=(0, 1.02), xlim=(LEAST_SECONDS, None))
            draw_grid(axes)
            axes.legend(frameon=False, loc="lower right")


def _waits_without(run: RunResult) -> Times:
    return run.groups["length"][SHORT].wait
