"""A learner that was told the truth, or a known distortion of it: for experiments, never for a cluster.

`learn: {policy: truth}` takes learning out of the question; `error: 0.3` believes the slower half of the
machines 30 % faster and the faster half 30 % slower than they are, the worst kind of error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.framework import Completion, Learn, LearnedCell, Speeds
from eclectus.model.settings import Setting
from eclectus.sim.base.machine import Machine


@dataclass(frozen=True)
class Truth:
    """What a scenario may say of it."""

    error: Annotated[
        float, Setting("slow machines believed faster by this share, fast ones slower", least=0, most=0.95)
    ] = 0.0


class OracleLearner(Learn):
    """Rates from the machines themselves, tasks a second in one slot."""

    def __init__(
        self, truth: Truth, machines: Mapping[str, Machine], mean_sizes: Mapping[str, float]
    ) -> None:
        self._error, self._machines, self._means = truth.error, machines, mean_sizes
        self._rows: dict[int, str] = {}
        self._capacity = self._epoch = 0
        self._known: dict[str, Speeds] = {}
        speeds = [machine.nominal("") for machine in machines.values()]
        self._median = float(np.median(speeds)) if len(set(speeds)) > 1 else max(speeds)

    def add_node(self, row: int, node: str, capacity: int) -> None:
        """A machine stands there."""
        self._rows[row], self._capacity = node, capacity
        self.look_again()

    def remove_node(self, row: int) -> None:
        """It is gone."""
        del self._rows[row]
        self.look_again()

    def observe(self, done: Completion) -> None:
        """There is nothing to learn."""

    def look_again(self) -> None:
        """True speeds have changed."""
        self._epoch += 1
        self._known.clear()

    def speeds(self, workload: str) -> Speeds:
        """What is true of this workload, bent by the error."""
        known = self._known.get(workload)
        if known is None:
            rate = np.full(self._capacity, 1e-9)  # rows without a node; a rate is never 0
            for row, name in self._rows.items():
                rate[row] = self._rate(self._machines[name], workload)
            known = self._known[workload] = Speeds(rate, float(rate.max()), self._epoch)
        return known

    def learned_cells(self) -> Iterator[LearnedCell]:
        """All of it, though nothing was learned."""
        for name in self._rows.values():
            for workload in self._means:
                yield LearnedCell(name, workload, self._rate(self._machines[name], workload), 1)

    def _rate(self, machine: Machine, workload: str) -> float:
        speed = machine.nominal(workload)
        bend = 1.0 + self._error if machine.nominal("") < self._median else 1.0 - self._error
        return speed * (bend if self._error else 1.0) / self._means.get(workload, 1.0)
