"""Spark's rule: once most tasks of a stage have ended, one that runs for much longer than the median is late.

Apache Spark, TaskSetManager.checkSpeculatableTasks. It needs no progress and no speeds, and knows nothing of
what a copy would take. How many tasks a stage has, and how many have ended, a DagJob says; of other pods
those count that have been seen.

Departure: an attempt beyond the limit is expected to need as long again, which only ranks the stragglers.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from eclectus.framework import Attempt, SpeculateTraits, Straggler, View, setting
from eclectus.maths.stragglers import overdue_after, percentile
from eclectus.policies.speculate.shared import Copies


@dataclass(eq=False)
class Spark(Copies):
    """Tasks that have run for longer than a multiple of the median of their siblings."""

    quantile: float = setting(
        0.75,
        "share of a stage's tasks that must have ended",
        why="spark.speculation.quantile until 3.5; 0.9 since 4.0",
        least=0,
        most=1,
    )
    multiplier: float = setting(
        1.5,
        "times the median of their run times, beyond which a task is late",
        why="spark.speculation.multiplier until 3.5; 3 since 4.0",
        unit="times",
        least=1,
        most=100,
    )
    least_runtime: float = setting(
        0.1,
        "no task is late before it has run for so long",
        why="spark.speculation.minTaskRuntime",
        unit="s",
        least=0,
    )

    @property
    def traits(self) -> SpeculateTraits:
        """It reads how far DagJobs are."""
        return replace(super().traits, needs=frozenset({"jobs"}))

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """By its age beside the median of those that have ended."""
        siblings, of_job = attempt.siblings, view.jobs.of(attempt.task)
        if of_job is None:
            count, tasks = siblings.ended_count, siblings.tasks
        else:
            count, tasks = of_job[1].counts.succeeded, of_job[1].stage.tasks
        if count < self.quantile * tasks or not siblings.ended:
            return None
        limit = overdue_after(siblings.ended, self.multiplier, self.least_runtime)
        if attempt.age <= limit:
            return None
        usual = percentile(siblings.ended, 0.5)
        why = f"it has run for {attempt.age:.0f} s, half of its siblings for {usual:.0f} s at most"
        return Straggler(attempt.age, usual + self.start_seconds(view, attempt), why)
