"""Learning error: learned speeds compared with the true ones, sampled over a run, by machine group.

Only ratios of rates decide where a task goes, so rates are scaled before they are compared: the geometric
mean of learned over true rates is 1 in every sample. Sampling does not influence the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, log
from statistics import fmean

from eclectus.framework import LearnedCell
from eclectus.sim.base.results import LearnedSpeed, LearningError
from eclectus.sim.base.samples import Series
from eclectus.sim.world.world import World

SAMPLES_MOST, SAMPLES_LEAST = 40, 4
# Compared in all samples together, at most twice as many: large clusters are sampled less often.
PAIRS_PER_RUN = 15_000


class LearningErrorRecorder:
    """Samples the learning error while a world runs."""

    def __init__(self, world: World, mean_sizes: Mapping[str, float], expected_end: float) -> None:
        self._world, self._mean_sizes = world, mean_sizes
        at_once = max(len(world.machines) * len(mean_sizes), 1)
        samples = min(max(PAIRS_PER_RUN // at_once, SAMPLES_LEAST), SAMPLES_MOST)
        self._series: Series[list[LearningError]] = Series(max(expected_end / samples, 1e-9), samples)
        # At the end of the window: later, while machines run dry, learners forget.
        self.learned: list[LearnedSpeed] = []
        world.record.on_sample, world.record.on_close = self._sample, self._close

    def _sample(self, at: float) -> None:
        if at >= self._series.due:
            self._series.add(list(_errors_by_group(list(self._learned_speeds()), at)))

    def _close(self) -> None:
        self.learned = list(self._learned_speeds())

    def errors(self) -> list[LearningError]:
        """All samples, in order of time."""
        return [error for sample in self._series.items for error in sample]

    def _learned_speeds(self) -> Iterator[LearnedSpeed]:
        """Learned and true rates of each pair of machine and class, now, in the order of machines."""
        learned: dict[str, list[LearnedCell]] = {}
        for cell in self._world.engine.learned_cells():
            learned.setdefault(cell.node, []).append(cell)
        for node, machine in self._world.machines.items():
            for cell in learned.get(node, ()):
                if cell.workload in self._mean_sizes:
                    true = machine.nominal_speed(cell.workload) / self._mean_sizes[cell.workload]
                    yield LearnedSpeed(node, machine.group, cell.workload, cell.samples, cell.rate, true)


def ratios(cells: list[LearnedSpeed]) -> dict[str, list[float]]:
    """Machine group -> learned over true rates, scaled to a geometric mean of 1 over all."""
    logs = [(cell.group, log(cell.learned / cell.true)) for cell in cells if cell.learned > 0 < cell.true]
    scale = fmean(each for _, each in logs) if logs else 0.0
    found: dict[str, list[float]] = {}
    for group, each in logs:
        found.setdefault(group, []).append(exp(each - scale))
    return found


def _errors_by_group(cells: list[LearnedSpeed], at: float) -> Iterator[LearningError]:
    for group, found in ratios(cells).items():
        middle = exp(fmean(log(ratio) for ratio in found))
        yield LearningError(at, group, len(found), middle, fmean(abs(ratio - 1.0) for ratio in found))
