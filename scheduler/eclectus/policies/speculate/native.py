"""Hadoop's own rule before LATE: a task whose progress is behind the mean of its siblings by 0.2.

After a minute, and whatever its rate: a task that began late is behind as well. It asks neither how long the
task needs still nor what a copy saves, which is what LATE improves on: a baseline. Only tasks that say their
progress are judged. Departure: Hadoop then takes the one whose data is nearest; here nothing is known of
that.
"""

from dataclasses import dataclass

from eclectus.framework import Attempt, Straggler, View, setting
from eclectus.maths.stragglers import is_behind, time_left
from eclectus.policies.speculate.shared import Copies


@dataclass(eq=False)
class Native(Copies):
    """Tasks whose progress is behind that of others."""

    behind: float = setting(
        0.2,
        "how far behind the mean progress a task must be",
        why="Hadoop's SPECULATIVE_GAP",
        least=0,
        most=1,
    )
    judged_after: float = setting(
        60.0,
        "for how long a task must have run before it is judged",
        why="SPECULATIVE_LAG",
        unit="s",
        least=0,
    )

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """By its progress alone."""
        progress, siblings = attempt.progress, attempt.siblings
        if progress is None or attempt.age < self.judged_after:
            return None
        scores = [each.progress for each in siblings.running.values() if each.progress is not None]
        scores += [1.0] * len(siblings.ended)
        if not is_behind(progress, scores, self.behind):
            return None
        return Straggler(time_left(progress, attempt.age), 0.0, "its progress is behind")
