"""LATE as it was merged into Hadoop 0.21: by standard deviations instead of percentiles.

A task is slow whose rate of progress is below the mean of its siblings' by more than `deviations` standard
deviations; it must have run for a minute. Only tasks that say their progress are judged. No copy is put on a
node whose tasks take longer than the mean of all nodes by more than a deviation of these. A job may have ten
copies, a hundredth of the slots or a tenth of what runs, whichever is most. Departures: a pool has its bound
too, and its slots count, not those of the cluster; how long tasks take on a node is one over its learned
speed, so a node without samples counts as typical.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from eclectus.framework import Attempt, SpeculateTraits, Straggler, Task, View, setting
from eclectus.maths.stragglers import is_slow, time_left
from eclectus.policies.speculate.shared import Copies, expected, feasible_rates, rates_of_progress

JOB_LEAST, SLOTS_SHARE = 10, 0.01
ROUNDING = 1e-9  # relative: equal nodes have a deviation of 0, or nearly


@dataclass(eq=False)
class LateOfHadoop(Copies):
    """Tasks whose progress is slower than the mean by a standard deviation."""

    deviations: float = setting(
        1.0,
        "how far below the mean rate a slow task is",
        why="mapreduce.job.speculative.slowtaskthreshold",
        unit="deviations",
        least=0,
        most=10,
    )
    judged_after: float = setting(
        60.0, "for how long a task must have run before it is judged", why="as there", unit="s", least=0
    )

    @property
    def traits(self) -> SpeculateTraits:
        """Those of copies, with the bound of a job that is in JobInProgress.atSpeculativeCap."""
        return replace(super().traits, job_least=JOB_LEAST, slots_share=SLOTS_SHARE)

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """By its rate of progress beside those of its siblings."""
        progress = attempt.progress
        if progress is None or attempt.age < self.judged_after:
            return None
        rates = rates_of_progress(attempt.siblings, 0.0)
        if not is_slow(progress / attempt.age, rates, self.deviations):
            return None
        times = expected(view, attempt)
        if times is None or not self.has_place(view, attempt, times):
            return None
        left = time_left(progress, attempt.age)
        return Straggler(left, times.elsewhere + self.start_seconds(view, attempt), "by its progress")

    def too_slow(self, view: View, task: Task) -> Sequence[int]:
        """The nodes whose times are above the mean of all by more than the deviations; dead ones too."""
        rows, rates = feasible_rates(view, task)
        times = 1.0 / rates[rates > 0.0]
        if not len(times):
            return ()
        most = float(times.mean()) + self.deviations * float(times.std())
        slow: list[int] = rows[rates * most < 1.0 - ROUNDING].tolist()
        return slow
