"""Mantri's rules for copies and restarts, and no more of it: what probably saves time of machines.

G. Ananthanarayanan and others, "Reining in the Outliers in Map-Reduce Clusters using Mantri", OSDI 2010: one
more copy beside c attempts if P(t_new < t_rem c / (c + 1)) > 0.25. Departures: c is 1, since a task has one
copy at most; t_new is drawn from what siblings have taken, with the start of a pod; t_rem is by progress, or
else by learned speeds as in late.py. Of a pod of a Job there can be no copy; if it says that it may be
restarted, it is ended once if it needs more than twice what it would take elsewhere, so that its Job makes
another. Nothing is computed again because its output could be lost: hence `mantri-lite`.
"""

from dataclasses import dataclass

from eclectus.framework import Attempt, Straggler, View, setting
from eclectus.maths.stragglers import is_worth_restarting, saves_machine_time, time_left
from eclectus.policies.speculate.shared import LEAST_PAST, Copies, expected


@dataclass(eq=False)
class MantriLite(Copies):
    """Tasks of which a copy or a restart probably saves seconds of machines."""

    likelihood: float = setting(
        0.25,
        "how likely a copy must be to end in half of the time that is left",
        why="as in the paper",
        least=0,
        most=1,
    )

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """By the time left beside what tasks of its kind have taken."""
        times = expected(view, attempt)
        if times is None:
            return None
        if attempt.progress is not None:
            left = time_left(attempt.progress, attempt.age)
        else:
            left = times.left(attempt.age)
        start = self.start_seconds(view, attempt)
        if attempt.task.restartable:
            if not is_worth_restarting(left, times.elsewhere, start):
                return None
            return Straggler(left, times.elsewhere + start, "a restart saves time of machines", restart=True)
        taken = sorted(seconds + start for _, seconds in attempt.past)
        if len(taken) < LEAST_PAST or not saves_machine_time(taken, left, self.likelihood):
            return None
        return Straggler(left, times.elsewhere + start, "a copy probably saves time of machines")
