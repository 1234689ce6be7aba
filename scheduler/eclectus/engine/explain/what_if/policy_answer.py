"""Where a Place policy would put a pod, were it the only one that waits: asked, and not obeyed.

A new instance with the same settings is asked, so that the one that decides keeps its state, such as the next
node in turn. What a policy gathers over minutes, such as the load of each class of work, the new one does not
know. It is asked with several seeds, because some policies draw their nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from random import Random

from msgspec.structs import replace as with_fields

from eclectus.engine.explain.what_if.explanation import Candidate, PolicyAnswer
from eclectus.engine.state import State
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import (
    Bind,
    ClassQueue,
    Defer,
    PendingTasks,
    Place,
    Unschedulable,
    View,
)
from eclectus.framework.ranking import Ranking
from eclectus.model.objects import Task

DRAWS = 4  # how often a policy is asked: enough to see that it draws
CANDIDATES_MOST = 5

NODE_QUEUES = "it queues pods at nodes, and which node will be the first to start one is not known before"


def answer_of(state: State, task: Task, policy: Place) -> PolicyAnswer:
    """What the policy answers in the state's view, which nobody else uses.

    Raises nothing: a policy that fails cannot say.
    """
    name, reason = str(policy), _why_not(state, policy)
    if reason:
        return PolicyAnswer(name, "cannotSay", reason=reason)
    task_class = state.view.task_class(task)
    if not task_class.fits_now_count:
        return PolicyAnswer(name, "noRoom")
    try:
        return _asked(state, task, task_class, policy)
    except Exception as error:  # a plug-in's defect must not end the explanation
        return PolicyAnswer(name, "cannotSay", reason=f"it failed: {type(error).__name__}: {error}")


def _why_not(state: State, policy: Place) -> str:
    """Why the policy cannot be asked; empty if it can be."""
    accounts, needs = state.accounts, policy.traits.needs
    wanted = (
        ("prices" in needs and accounts.pricing is None, "node prices"),
        ("work" in needs and accounts.job_work is None, "the work that is left in each job"),
        ("jobs" in needs and accounts.jobs is None, "DAG jobs"),
        ("shares" in needs and id(policy) not in state.view.shares_by_policy, "shares of groups"),
    )
    if policy.traits.joins_node_queues:
        return NODE_QUEUES
    if not is_dataclass(type(policy)):
        return "there is no way to make another one with its settings"
    missing = [what for is_missing, what in wanted if is_missing]
    return f"it counts {' and '.join(missing)}, which this scheduler does not" if missing else ""


def _asked(state: State, task: Task, task_class: TaskClass, policy: Place) -> PolicyAnswer:
    name, chosen, first = str(policy), Counter[int](), None
    for seed in range(DRAWS):
        asked: Place = replace(policy)  # type: ignore[type-var]
        action = next(asked.place(_view_for(state, policy, asked, seed), OneTask(task)), None)
        first = first or action
        if isinstance(action, Bind):
            chosen[action.row] += 1
    names = state.cluster.names
    match first:
        case Bind(row=row):
            found = tuple(_candidates(state, task_class, row, chosen))
            return PolicyAnswer(name, "places", names[row], "", found, DRAWS)
        case Defer(row=busy):
            return PolicyAnswer(name, "defers", "" if busy is None else names[busy])
        case Unschedulable(reason=reason):
            return PolicyAnswer(name, "refuses", reason=reason.message)
        case _:
            return PolicyAnswer(name, "cannotSay", reason="it gives no answer about one pod alone")


def _view_for(state: State, policy: Place, asked: Place, seed: int) -> View:
    """The view of the new instance, with the account of the one that it stands for."""
    shares = state.view.shares_by_policy
    if id(policy) in shares:
        shares = {**shares, id(asked): shares[id(policy)]}
    return with_fields(state.view, rng=Random(seed), shares_by_policy=shares)


def _candidates(state: State, task_class: TaskClass, row: int, chosen: Counter[int]) -> Iterator[Candidate]:
    """By the ranking in which the chosen row stands; without one, those that were drawn, by how often."""
    names = state.cluster.names
    rankings = [each for each in task_class.derived.values() if isinstance(each, Ranking)]
    ranking = next((each for each in rankings if each.cost_at(row) < float("inf")), None)
    if ranking is None:
        for each, draws in chosen.most_common(CANDIDATES_MOST):
            yield Candidate(names[each], None, draws)
        return
    for each, cost in ranking.first(CANDIDATES_MOST):
        yield Candidate(names[each], cost, chosen[each])


class _Queue(ClassQueue):
    """The class queue of one task."""

    def __init__(self, task: Task) -> None:
        self._task: Task | None = task

    def __len__(self) -> int:
        return 1

    @property
    def group(self) -> str:
        """None."""
        return ""

    @property
    def head(self) -> Task | None:
        """The task, until it is taken."""
        return self._task

    def take(self) -> Task | None:
        """The task; None when it was taken already."""
        taken, self._task = self._task, None
        return taken


class OneTask(PendingTasks):
    """A scheduling cycle with one task."""

    __slots__ = ("_queue",)

    def __init__(self, task: Task) -> None:
        self._queue = _Queue(task)

    def __next__(self) -> Task:
        task = self._queue.take()
        if task is None:
            raise StopIteration
        return task

    def queues(self) -> Iterator[ClassQueue]:
        """The one queue, until its task is taken."""
        if self._queue.head is not None:
            yield self._queue

    def take(self, queue: ClassQueue) -> Task | None:
        """The task; None when it was taken already."""
        del queue
        return self._queue.take()

    def skip(self, task: Task, most: int) -> int:
        """None: there is no other task."""
        del task, most
        return 0
