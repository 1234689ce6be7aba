"""What has been learned so far, beside the truth: at moments of a run, by group of machines.

Only ratios of rates decide where a task goes, so rates are brought to one scale before they are compared:
the geometric mean of learned over true is 1 at every look. Looking changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import exp, log
from statistics import fmean

from eclectus.sim.base.results import Cell, Lesson
from eclectus.sim.base.series import Series
from eclectus.sim.world.world import World

LOOKS_MOST, LOOKS_LEAST = 40, 4
CELLS = 15_000  # looked at in all looks together, up to twice as many: on large clusters looks are rarer


class Lessons:
    """Looks now and then while a world runs."""

    def __init__(self, world: World, mean_sizes: Mapping[str, float], expected_end: float) -> None:
        self._world, self._means = world, mean_sizes
        at_once = max(len(world.machines) * len(mean_sizes), 1)
        looks = min(max(CELLS // at_once, LOOKS_LEAST), LOOKS_MOST)
        self._series: Series[list[Lesson]] = Series(max(expected_end / looks, 1e-9), looks)
        self.learned: list[Cell] = []  # when the window closed: while machines run dry, learners forget
        world.ledger.on_mark, world.ledger.on_close = self._look, self._close

    def _look(self, at: float) -> None:
        if at >= self._series.due:
            self._series.add(list(_lessons(list(self._cells()), at)))

    def _close(self) -> None:
        self.learned = list(self._cells())

    def told(self) -> list[Lesson]:
        """All of it."""
        return [lesson for look in self._series.items for lesson in look]

    def _cells(self) -> Iterator[Cell]:
        """What is known now of each machine and workload, and what is true."""
        for cell in self._world.engine.learned_cells():
            machine = self._world.machines.get(cell.node)
            if machine is not None and cell.workload in self._means:
                true = machine.nominal(cell.workload) / self._means[cell.workload]
                yield Cell(cell.node, machine.group, cell.workload, cell.samples, cell.rate, true)


def ratios(cells: list[Cell]) -> dict[str, list[float]]:
    """Learned over true rates of each group's cells, brought to one scale."""
    logs = [(cell.group, log(cell.learned / cell.true)) for cell in cells if cell.learned > 0 < cell.true]
    scale = fmean(each for _, each in logs) if logs else 0.0
    found: dict[str, list[float]] = {}
    for group, each in logs:
        found.setdefault(group, []).append(exp(each - scale))
    return found


def _lessons(cells: list[Cell], at: float) -> Iterator[Lesson]:
    for group, found in ratios(cells).items():
        middle = exp(fmean(log(ratio) for ratio in found))
        yield Lesson(at, group, len(found), middle, fmean(abs(ratio - 1.0) for ratio in found))
