"""What a learner should have learned: an oracle in its place, and the error of what it has.

`learn: {policy: truth}` in a scenario removes the effect of learning. `error: 0.3` makes the slower half of
the machines appear 30 % faster and the faster half 30 % slower than they are, the worst kind of error. The
oracle reads the simulated machines, so it does not exist on a cluster.

The learning error compares learned speeds with the true ones, sampled over a run, by machine group. Only
ratios of rates decide where a task goes, so rates are scaled before they are compared: the geometric mean of
learned over true rates is 1 in every sample. Sampling does not influence the run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

import numpy as np
from typing_extensions import override

from eclectus.cluster.scalars import read_only
from eclectus.framework import Learn, LearnedCell, Speeds
from eclectus.maths.turnaround import with_turnaround
from eclectus.model.settings import setting
from eclectus.sim.base.machine import Machine
from eclectus.sim.base.results import LearnedSpeed, LearningError
from eclectus.sim.world.run_record import Series
from eclectus.sim.world.world import World


@dataclass(frozen=True)
class OracleSettings:
    """The settings of `learn: {policy: truth}`."""

    error: float = setting(
        0.0, "share by which slow machines appear faster and fast ones slower", least=0, most=0.95
    )


class OracleLearner(Learn):
    """Returns the machines' true rates, in tasks per second in one slot."""

    def __init__(
        self,
        truth: OracleSettings,
        machines: Mapping[str, Machine],
        mean_sizes: Mapping[str, float],
        turnaround: float = 0.0,
    ) -> None:
        """`turnaround` in seconds, as of every bind and end."""
        self._error = truth.error
        self._machines = machines
        self._mean_sizes = mean_sizes
        self._turnaround = turnaround
        self._rows: dict[int, str] = {}
        self._capacity = self._epoch = 0
        self._speeds: dict[str, Speeds] = {}
        speeds = [machine.nominal_speed("") for machine in machines.values()]
        self._median = float(np.median(speeds)) if len(set(speeds)) > 1 else max(speeds)

    @override
    def add_node(self, row: int, node: str, capacity: int) -> None:
        self._rows[row], self._capacity = node, capacity
        self.speeds_changed()

    @override
    def remove_node(self, row: int) -> None:
        del self._rows[row]
        self.speeds_changed()

    def speeds_changed(self) -> None:
        """Drop cached rates, because true speeds have changed."""
        self._epoch += 1
        self._speeds.clear()

    @override
    def speeds(self, workload: str) -> Speeds:
        """The true rates of this class, distorted by `error`."""
        speeds = self._speeds.get(workload)
        if speeds is None:
            rate = np.full(self._capacity, 1e-9)  # for rows without a node; rates must be positive
            for row, name in self._rows.items():
                rate[row] = with_turnaround(self._rate(self._machines[name], workload), self._turnaround)
            speeds = self._speeds[workload] = Speeds(read_only(rate), float(rate.max()), self._epoch)
        return speeds

    @override
    def turnaround(self, workload: str) -> float:
        return self._turnaround

    @override
    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """The rates of all pairs of node and class, as if learned from one sample."""
        for name in sorted(name for name in self._rows.values() if name > after):
            for workload in self._mean_sizes:
                yield LearnedCell(name, workload, self._rate(self._machines[name], workload), 1)

    def _rate(self, machine: Machine, workload: str) -> float:
        speed = machine.nominal_speed(workload)
        distortion = 1.0 + self._error if machine.nominal_speed("") < self._median else 1.0 - self._error
        return speed * (distortion if self._error else 1.0) / self._mean_sizes.get(workload, 1.0)


SAMPLES_MOST, SAMPLES_LEAST = 40, 4
# Compared in all samples together, at most twice as many: large clusters are sampled less often.
PAIRS_PER_RUN = 15_000


class LearningErrorRecorder:
    """Samples the learning error while a world runs."""

    def __init__(self, world: World, mean_sizes: Mapping[str, float], expected_end: float) -> None:
        self._world = world
        self._mean_sizes = mean_sizes
        at_once = max(len(world.machines) * len(mean_sizes), 1)
        samples = min(max(PAIRS_PER_RUN // at_once, SAMPLES_LEAST), SAMPLES_MOST)
        self._series: Series[list[LearningError]] = Series(max(expected_end / samples, 1e-9), samples)
        # At the end of the window: later, while machines run dry, learners forget.
        self.learned: list[LearnedSpeed] = []
        world.record.on_sample = self._sample
        world.record.on_close = self._close

    def _sample(self, at: float) -> None:
        if at >= self._series.due:
            errors = []
            for group, found in ratios(list(self._learned_speeds())).items():
                middle = exp(fmean(log(ratio) for ratio in found))
                error = fmean(abs(ratio - 1.0) for ratio in found)
                errors.append(LearningError(at, group, len(found), middle, error))
            self._series.add(errors)

    def _close(self) -> None:
        self.learned = list(self._learned_speeds())

    def errors(self) -> list[LearningError]:
        """All samples, in order of time."""
        return [error for sample in self._series.items for error in sample]

    def _learned_speeds(self) -> Iterator[LearnedSpeed]:
        """Learned and true rates of each pair of machine and class, now, in the order of machines."""
        learned: dict[str, list[LearnedCell]] = {}
        for cell in self._world.engine.learn.learned_cells():
            learned.setdefault(cell.node, []).append(cell)
        for node, machine in self._world.machines.items():
            for cell in learned.get(node, ()):
                if cell.workload in self._mean_sizes:
                    true = machine.nominal_speed(cell.workload) / self._mean_sizes[cell.workload]
                    known = cell.samples, cell.rate, true, cell.state
                    yield LearnedSpeed(node, machine.group, cell.workload, *known)


def ratios(cells: list[LearnedSpeed]) -> dict[str, list[float]]:
    """Machine group -> learned over true rates, scaled to a geometric mean of 1 over all."""
    logs = [(cell.group, log(cell.learned / cell.true)) for cell in cells if cell.learned > 0 < cell.true]
    scale = fmean(each for _, each in logs) if logs else 0.0
    found: dict[str, list[float]] = {}
    for group, each in logs:
        found.setdefault(group, []).append(exp(each - scale))
    return found
