"""An engine asked about a pod, and a policy that answers what a test says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eclectus.explain.pod import explain_pod
from eclectus.framework import Action, PendingTasks, Place, View
from eclectus.model.explanation import PodExplanation
from eclectus.model.objects import Task
from worlds import World


def explain(world: World, name: str, after: float = 0.0) -> PodExplanation:
    """The answer so many seconds after the last step."""
    return explain_pod(world.engine, "default", name, world.now + after)


class Answering(Place):
    """Answers every task with what a function makes of it."""

    def __init__(self, answer: Callable[[Task], Action]) -> None:
        self._answer = answer

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield self._answer(task)
