"""A harness for a learner without an engine: nodes that run one task after the other at hidden speeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

import numpy as np

from eclectus.framework import Completion
from eclectus.model.objects import Amounts
from eclectus.policies.rosella import RosellaLearn


class School:
    """A learner and a clock. Rows are nodes n0, n1, …; classes of work have a name and a mean size."""

    def __init__(
        self, rows: int = 10, seed: int = 1, capacity_rows: int | None = None, **settings: float
    ) -> None:
        self.learn = RosellaLearn(**settings)  # type: ignore[arg-type]
        self.now = 1000.0
        self.chance = np.random.default_rng(seed)
        self.draw: Callable[[], float] = lambda: float(self.chance.exponential(1.0))  # size over mean size
        self.speed = np.ones(rows)
        self._uids = count()
        for row in range(rows):
            self.learn.add_node(row, f"n{row}", capacity_rows or rows)

    # -- events ----------------------------------------------------------------------------------

    def end(
        self,
        row: int,
        seconds: float,
        workload: str = "w",
        after: float = 0.0,
        requests: Amounts = (),
        *,
        is_probe: bool = False,
    ) -> None:
        """A task ends on the row without having been seen running."""
        self.now += after
        self.learn.observe(Completion(row, workload, seconds, self.now, requests, is_probe))

    def teach(
        self, rounds: int, sizes: Mapping[str, float] | None = None, rows: list[int] | None = None
    ) -> None:
        """In each round every row completes one task; the classes take turns by round."""
        work = list((sizes or {"w": 1.0}).items())
        for turn in range(rounds):
            workload, mean = work[turn % len(work)]
            for row in range(len(self.speed)) if rows is None else rows:
                self.end(row, mean * self.draw() / self.speed[row], workload, after=0.1)

    def begin(self, row: int, workload: str = "w", requests: Amounts = ()) -> str:
        """A task is seen running on the row; returns its uid."""
        uid = f"u{next(self._uids)}"
        self.learn.started(uid, row, workload, self.now, requests)
        return uid

    def finish(self, uid: str, row: int, seconds: float, workload: str = "w", requests: Amounts = ()) -> None:
        """A task that was seen running completes."""
        self.learn.observe(Completion(row, workload, seconds, self.now, requests, uid=uid))
        self.learn.left(uid, self.now)

    def run(self, row: int, seconds: float, workload: str = "w") -> None:
        """A task starts now and completes after so many seconds; advances the clock."""
        uid = self.begin(row, workload)
        self.now += seconds
        self.finish(uid, row, seconds, workload)

    def batches(self, rounds: int, tasks: int, workload: str = "w") -> None:
        """So many times on every row: that many tasks start together; a pause follows when all have ended."""
        numbers, uids = count(), dict[int, str]()
        events = list[tuple[float, int, int, float]]()  # time, number of the task, row, seconds; 0: a start
        for row, speed in enumerate(self.speed):
            at = self.now
            for _ in range(rounds):
                at += 5.0 * float(self.chance.exponential())
                sizes = [self.draw() / speed for _ in range(tasks)]
                for size in sizes:
                    number = next(numbers)
                    events += [(at, number, row, 0.0), (at + size, number, row, size)]
                at += max(sizes)
        for self.now, number, row, seconds in sorted(events):
            if seconds:
                self.finish(uids[number], row, seconds, workload)
            else:
                uids[number] = self.begin(row, workload)

    def wait(self, seconds: float) -> None:
        """Advance the clock and notify the learner by an arrival."""
        self.now += seconds
        self.learn.arrived("w", self.now)

    # -- queries ---------------------------------------------------------------------------------

    def rate(self, workload: str = "w") -> np.ndarray:
        """The learned rates of all rows."""
        return np.asarray(self.learn.speeds(workload).rate)

    def ratio(self, row: int, workload: str = "w") -> float:
        """The learned rate of a row over the median of the others."""
        rate = self.rate(workload)
        return float(rate[row] / np.median(np.delete(rate, row)))

    def state(self, row: int) -> str:
        """The reported state of the row's node; `unknown` if none is reported."""
        return next((cell.state for cell in self.learn.learned_cells() if cell.node == f"n{row}"), "unknown")
