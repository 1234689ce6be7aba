"""Several dispatchers, and pictures of the queues that grow old: `dispatchers: {count: 4, age: 1s}`.

Each dispatcher is a profile of the one engine with a policy of its own; jobs go to them in turn. Nodes keep
the lines, as the agents of a distributed scheduler would. With `age` all dispatchers see the queues as they
stood at the last multiple of it. A dispatcher's picture is a cluster like any other, so a policy cannot
tell; with `localCorrection` it also knows what the dispatcher itself has placed since.

A node that seems to have room may have none by now: the task then joins its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Annotated

from eclectus.cluster.nodes import Cluster
from eclectus.framework import Action, Enqueue, PendingTasks, Place, PlacePolicy, Profile, Unschedulable, View
from eclectus.model.objects import Node, Task
from eclectus.model.settings import Setting


@dataclass(frozen=True)
class Dispatchers:
    """How many there are, and what they know."""

    count: Annotated[int, Setting("dispatchers that place jobs in turn", least=1, most=1000)] = 1
    age: Annotated[
        float, Setting("how old the picture of the queues may grow; 0: it is always fresh", unit="s", least=0)
    ] = 0.0
    local_correction: Annotated[
        bool, Setting("a dispatcher adds to its old picture what it has placed itself")
    ] = True

    def names(self, profile: str) -> tuple[str, ...]:
        """The scheduler names jobs carry, in turn."""
        return (profile,) if self.count == 1 else tuple(f"{profile}-{at}" for at in range(self.count))

    def profiles(self, made: Sequence[Profile]) -> tuple[Profile, ...]:
        """The same profiles, with pictures that grow old."""
        if not self.age:
            return tuple(made)
        return tuple(
            replace(each, place=OldPicture(each.place, self.age, self.local_correction)) for each in made
        )


class OldPicture(PlacePolicy):
    """Asks the policy within, which sees the queues as they stood some time ago."""

    def __init__(self, within: PlacePolicy, age_seconds: float, corrects: bool) -> None:
        self._within, self._age, self._corrects = within, age_seconds, corrects
        self._picture: View | None = None
        self._due = 0.0
        self._shape = -1

    @property
    def wants_work(self) -> bool:
        """As the policy within."""
        return self._within.wants_work

    @property
    def counted_by(self) -> Callable[[Task], str] | None:
        """As the policy within."""
        return self._within.counted_by

    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        """What the policy answers, as far as it is still possible."""
        picture = self._seen(view)
        for answer in self._within.place(picture, turns):
            action = self._possible(view, answer)
            if self._corrects:
                _correct(picture, action)
            yield action

    def _possible(self, view: View, answer: Action) -> Action:
        if not isinstance(answer, Place):
            return answer
        task_class = view.task_class(answer.task)
        if task_class.fits_now[answer.row]:
            return answer
        may_wait = task_class.may_wait(answer.row)
        return Enqueue(answer.task, answer.row) if may_wait else Unschedulable(answer.task)

    def _seen(self, truth: View) -> View:
        if self._picture is None or self._shape != truth.cluster.shape.head:
            shares = {} if self._within.counted_by is None else {id(self._within): truth.shares(self)}
            self._picture = truth.with_cluster(_same_nodes(truth.cluster), shares)
            self._shape, self._due = truth.cluster.shape.head, truth.now
        if truth.now >= self._due:
            self._picture.cluster.copy_amounts(truth.cluster)
            self._due = (floor(truth.now / self._age) + 1) * self._age
        self._picture.now = truth.now
        self._picture.classes.cycle = truth.classes.cycle
        return self._picture


def _same_nodes(truth: Cluster) -> Cluster:
    """A cluster of the same nodes in the same rows, and resources in the same columns."""
    seen = Cluster(truth.capacity)
    seen.vector(tuple((resource, 0) for resource in truth.columns))
    holes = [f"hole {row}" for row, name in enumerate(truth.names) if not name]
    for row, name in enumerate(truth.names):
        seen.set_node(truth.node(name) or Node(f"hole {row}"))
    for hole in holes:
        seen.drop_node(hole)
    return seen


def _correct(picture: View, action: Action) -> None:
    if isinstance(action, Place | Enqueue):
        picture.cluster.add_tentative(action.row, action.task.spec.requests)
