"""LATE, with learned speeds: copies of the tasks that are expected to end last, where they end sooner.

M. Zaharia and others, "Improving MapReduce Performance in Heterogeneous Environments", OSDI 2008. Departures:
- a task that says its progress is judged as in the paper; one that does not, by its expected time: work over
  the learned rate of its node. So a task on a node that is known to be slow is late at its second second;
- beyond `overdue` times its expected time a task is expected to run on for as long as it has run: nothing
  else is known of it, and run times of stragglers are heavy-tailed;
- a copy must save time after its start, by what is expected of the fastest node with room now; the paper
  looks at the original alone;
- a node is slow, and gets no copies, by its learned speed beside that of a typical node, not by the progress
  of all tasks on it beside a percentile, which is never few nodes where all are alike;
- the bound of copies is by pool and job, not of the cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eclectus.framework import Attempt, Straggler, Task, View, setting
from eclectus.maths.stragglers import is_slowest, time_left
from eclectus.policies.speculate.shared import (
    Copies,
    Expected,
    expected,
    feasible_rates,
    rates_of_progress,
)


@dataclass(eq=False)
class Late(Copies):
    """The tasks with the most time left, by progress or by learned speeds."""

    slow_share: float = setting(
        0.25,
        "a task that says its progress is slow if its rate is below this percentile of its siblings'",
        why="as in the paper",
        least=0.01,
        most=1,
    )
    judged_after: float = setting(
        60.0,
        "for how long a task must have run before its progress is judged",
        why="as in the paper: before that it says little of the rest",
        unit="s",
        least=0,
        most=86400,
    )
    overdue: float = setting(
        1.5,
        "a task without progress is late beyond so many times its expected time",
        why="Spark's multiplier until 3.5; much less finds tasks that are only larger",
        unit="times",
        least=1,
        most=100,
    )
    slow_node: float = setting(
        2.0,
        "a task is late from its start on a node that takes so many times as long as another with room; and "
        "no copy is put on one that takes more than so many times as long as half of the nodes",
        why="what is learned of nodes differs by less than that by chance",
        unit="times",
        least=1,
        most=100,
    )

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """By its progress once that says something, else by its age and the speed of its node."""
        times = expected(view, attempt)
        if times is None:
            return None
        elsewhere = times.elsewhere + self.start_seconds(view, attempt)
        if attempt.progress is not None and attempt.age >= self.judged_after:
            left, why = self._by_progress(attempt, attempt.progress), "by its progress"
        else:
            left, why = self._by_speed(attempt.age, times)
        if left is None or left <= elsewhere or not self.has_place(view, attempt, times):
            return None
        return Straggler(left, elsewhere, why)

    def too_slow(self, view: View, task: Task) -> Sequence[int]:
        """The nodes that take more than so many times as long as the median of all that could run it."""
        rows, rates = feasible_rates(view, task)
        return rows[rates * self.slow_node < np.median(rates)].tolist() if len(rows) else []

    def _by_progress(self, attempt: Attempt, progress: float) -> float | None:
        rates = rates_of_progress(attempt.siblings, self.judged_after)
        if not is_slowest(progress / attempt.age, rates, self.slow_share):
            return None
        return time_left(progress, attempt.age)

    def _by_speed(self, age: float, times: Expected) -> tuple[float | None, str]:
        here = times.here
        if age < here and here >= self.slow_node * times.elsewhere:
            return here - age, f"its node takes {here:.0f} s for what another takes {times.elsewhere:.0f} s"
        if age >= self.overdue * times.usual:
            return age, f"it has run for {age:.0f} s instead of {times.usual:.0f} s"
        return None, ""
