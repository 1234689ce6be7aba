"""An oracle in place of a learner: it knows the true speeds, or a given distortion of them.

`learn: {policy: truth}` in a scenario removes the effect of learning. `error: 0.3` makes the slower half of
the machines appear 30 % faster and the faster half 30 % slower than they are, the worst kind of error. It
reads the simulated machines, so it does not exist on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.cluster.scalars import read_only
from eclectus.framework import Completion, Learn, LearnedCell, Speeds
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine


@dataclass(frozen=True)
class OracleSettings:
    """The settings of `learn: {policy: truth}`."""

    error: Annotated[
        float, Setting("share by which slow machines appear faster and fast ones slower", least=0, most=0.95)
    ] = 0.0


class OracleLearner(Learn):
    """Returns the machines' true rates, in tasks per second in one slot."""

    def __init__(
        self, truth: OracleSettings, machines: Mapping[str, Machine], mean_sizes: Mapping[str, float]
    ) -> None:
        self._error, self._machines, self._mean_sizes = truth.error, machines, mean_sizes
        self._rows: dict[int, str] = {}
        self._capacity = self._epoch = 0
        self._speeds: dict[str, Speeds] = {}
        speeds = [machine.nominal_speed("") for machine in machines.values()]
        self._median = float(np.median(speeds)) if len(set(speeds)) > 1 else max(speeds)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """A node has been added in this row."""
        self._rows[row], self._capacity = node, capacity
        self.speeds_changed()

    def remove_node(self, row: int) -> None:
        """The node of this row has been removed."""
        del self._rows[row]
        self.speeds_changed()

    def observe(self, done: Completion) -> None:
        """Nothing is learned."""

    def speeds_changed(self) -> None:
        """Drop cached rates, because true speeds have changed."""
        self._epoch += 1
        self._speeds.clear()

    def speeds(self, workload: str) -> Speeds:
        """The true rates of this class, distorted by `error`."""
        speeds = self._speeds.get(workload)
        if speeds is None:
            rate = np.full(self._capacity, 1e-9)  # for rows without a node; rates must be positive
            for row, name in self._rows.items():
                rate[row] = self._rate(self._machines[name], workload)
            speeds = self._speeds[workload] = Speeds(read_only(rate), float(rate.max()), self._epoch)
        return speeds

    def learned_cells(self, after: str = "") -> Iterator[LearnedCell]:
        """The rates of all pairs of node and class, as if learned from one sample."""
        for name in sorted(name for name in self._rows.values() if name > after):
            for workload in self._mean_sizes:
                yield LearnedCell(name, workload, self._rate(self._machines[name], workload), 1)

    def _rate(self, machine: Machine, workload: str) -> float:
        speed = machine.nominal_speed(workload)
        distortion = 1.0 + self._error if machine.nominal_speed("") < self._median else 1.0 - self._error
        return speed * (distortion if self._error else 1.0) / self._mean_sizes.get(workload, 1.0)
