"""LATE as it was merged into Hadoop 0.21: by standard deviations instead of percentiles.

A task is slow whose rate of progress is below the mean of its siblings' by more than `deviations` standard
deviations; it must have run for a minute. Only tasks that say their progress are judged. Departures: bounds
are those of pool and job, not the greatest of 10, a hundredth of the slots and a tenth of what runs; slow
nodes are left out by placement, which knows speeds.
"""

from dataclasses import dataclass

from eclectus.framework import Attempt, Straggler, View, setting
from eclectus.maths.stragglers import is_slow, time_left
from eclectus.policies.speculate.shared import Copies, expected, rates_of_progress


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

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """By its rate of progress beside those of its siblings."""
        progress = attempt.progress
        if progress is None or attempt.age < self.judged_after:
            return None
        rates = rates_of_progress(attempt.siblings, 0.0)
        if not is_slow(progress / attempt.age, rates, self.deviations):
            return None
        times = expected(view, attempt)
        if times is None:
            return None
        left = time_left(progress, attempt.age)
        return Straggler(left, times.elsewhere + self.start_seconds(view, attempt), "by its progress")
