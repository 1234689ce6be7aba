"""What Speculate policies share: how many copies there may be, and what a copy would take elsewhere.

Time elsewhere is reckoned by learned speeds: the work of the kind of task, over the rate of the fastest node
that has room for it now. The work is the median of (run time x rate of its node) over the last tasks of the
kind, so where nothing is learned it is the median of their run times.
"""

from dataclasses import dataclass
from math import inf
from statistics import median

import numpy as np

from eclectus.framework import (
    Attempt,
    Floats,
    Rows,
    Setting,
    Siblings,
    Speculate,
    SpeculateTraits,
    Task,
    View,
    setting,
)

START = Setting(
    "how long a copy takes from its creation to the start of its container, if not learned to be longer",
    why="a pod whose image is there starts in 1 to 3 s",
    unit="s",
    least=0,
    most=3600,
)
LEAST_PAST = 5  # ended tasks of a kind, before which nothing is expected of one


@dataclass(eq=False)
class Copies(Speculate):
    """A policy that names stragglers, within these bounds."""

    pool_share: float = setting(
        0.1,
        "how many copies a pool has at a time at most, as a share of the tasks that it has run at a time",
        why="as in LATE: a tenth of the slots",
        least=0.001,
        most=1,
    )
    job_share: float = setting(
        0.1,
        "how many copies a job has at a time at most, as a share of its running tasks; one in any case",
        why="one job cannot use up the copies of its pool",
        least=0.001,
        most=1,
    )
    start: float = setting(2.0, START)

    @property
    def traits(self) -> SpeculateTraits:
        """It names stragglers."""
        return SpeculateTraits(copies=True, pool_share=self.pool_share, job_share=self.job_share)

    def start_seconds(self, view: View, attempt: Attempt) -> float:
        """From the creation of a copy to its start."""
        return max(self.start, view.learn.turnaround(attempt.task.workload))

    def has_place(self, view: View, attempt: Attempt, times: "Expected") -> bool:
        """Whether the fastest node with room may get a copy."""
        return times.fastest not in self.too_slow(view, attempt.task)


def rates_of_progress(siblings: Siblings, judged_after: float) -> list[float]:
    """Of those that say their progress and have run for so many seconds, and of those that have ended."""
    said = ((each.progress, each.age) for each in siblings.running.values())
    rates = [progress / age for progress, age in said if progress is not None and age >= judged_after]
    return rates + [1.0 / seconds for seconds in siblings.ended]


@dataclass(frozen=True, slots=True)
class Expected:
    """Of a kind of task, seconds: on the node of an attempt, and where a copy would be fastest now.

    `usual`: on its node, whatever the attempt itself has shown of that.
    """

    usual: float
    here: float
    elsewhere: float
    fastest: int  # the row of that node

    def left(self, age: float) -> float:
        """What an attempt needs more: beyond its usual time as long again, since times are heavy-tailed."""
        return max(self.here - age, age if age >= self.usual else 0.0)


def expected(view: View, attempt: Attempt) -> Expected | None:
    """By learned speeds; None where too little has ended, or no other node has room now."""
    task_class = view.task_class(attempt.task)
    rate, rows = view.speeds(task_class).rate, view.cluster.rows
    past = [
        seconds * of_node
        for node, seconds in attempt.past
        if (row := rows.get(node)) is not None and (of_node := rate.item(row)) > 0.0
    ]
    with_room = task_class.fits_now_rows
    others = with_room[with_room != attempt.row]
    if len(past) < LEAST_PAST or not len(others):
        return None
    fastest = int(others[rate[others].argmax()])
    best = rate.item(fastest)
    if not best > 0.0:
        return None
    work = median(past)
    usual, here = (work / each if each > 0.0 else inf for each in (attempt.usual_rate, rate[attempt.row]))
    return Expected(usual, here, work / best, fastest)


def feasible_rates(view: View, task: Task) -> tuple[Rows, Floats]:
    """The rows of the nodes that could run a task, and their learned rates for it."""
    task_class = view.task_class(task)
    rows = np.flatnonzero(task_class.feasible)
    return rows, view.speeds(task_class).rate[rows]
