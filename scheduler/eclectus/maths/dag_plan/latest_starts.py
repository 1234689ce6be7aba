"""Right justification: move each task of a schedule as late as its children and the share allow.

Li, Willis, "An iterative scheduling technique for resource-constrained project scheduling", European Journal
of Operational Research 56, 1992; Valls, Ballestin, Quintanilla, "Justification and RCPSP", ibid. 165, 2005.
Tasks are taken by decreasing end. Of those taken before, what runs in a task's own interval ran there in the
given schedule too. So its old place is free, and the schedule never gets longer.

Departure: Carbyne packs the job with its dependencies reversed, which may take longer or shorter than the
schedule itself. Then latest starts are negative, or nothing is ever due.
"""

from __future__ import annotations

from eclectus.maths.dag_plan.packing import Start
from eclectus.maths.dag_plan.profile import Profile
from eclectus.maths.dag_plan.units import Units


def right_justified(work: Units, starts: list[Start], length: int) -> list[Start]:
    """The same units, each as late as it may start if the job is to end at tick `length`."""
    profile = Profile(work.quota, length)
    for end, row, tasks in work.running:
        profile.take(0, end, work.needs[row], tasks)
    bounds = [length] * len(work.units)  # by which the next units of a stage must end
    first = [length] * len(work.units)  # the earliest start of a stage so far
    moved: list[Start] = []
    for chunk in sorted(starts, reverse=True):
        stage, left = chunk.stage, chunk.units
        ticks, needs = work.ticks[stage], work.needs[stage]
        # All units of the children end later, so they have their places. Of the stage itself nothing fits
        # later than the units before.
        end = min([bounds[stage], *(first[child] for child in work.children[stage])])
        while left:
            end, units = profile.latest(end, ticks, needs, left)
            profile.take(end - ticks, end, needs, units)
            moved.append(Start(end, end - ticks, stage, units))
            left -= units
        bounds[stage], first[stage] = end, end - ticks
    return moved
