"""One choice in proportion to speed (PSS, proportional sampling): the plainest use of learned rates.

The baseline of Wu, Liu, "Rosella", 2020, section on placement: node i is drawn with probability
mu_i over the sum of all mu, and the task joins its line. Stable for every load under 1 if the rates
are exact; an error of e in them costs stability from (1 - e) / (1 + e) on, where two choices still hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eclectus.framework import Action, Enqueue, PlacePolicy, Unschedulable, View
from eclectus.maths.sampling import draw_proportional
from eclectus.model.objects import Task


@dataclass(eq=False)
class Proportional(PlacePolicy):
    """One draw in proportion to the learned rate."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """One task, one answer."""
        for task in turns:
            task_class = view.task_class(task)
            speeds = view.speeds(task_class)
            row = draw_proportional(view.rng, task_class.waitable_rows, speeds.rate, speeds.most)
            yield Unschedulable(task) if row is None else Enqueue(task, row)
