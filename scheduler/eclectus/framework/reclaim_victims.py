"""The victims of reclaim: the node on which the fewest pods must go for a task of a pool that claims room.

A question, which changes nothing: the policy asks it before it evicts, and explanations in its place. Whose
pods a claim may take is in accounts/reclaim.py; here a node is chosen together with them. The newest pods of
a node go first, no more than needed, and those that are on their way out before all others.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Literal, NamedTuple

from eclectus.accounts.reclaim import Entitlement, Kept, Taking
from eclectus.feasibility.fit_error import RoomWithout
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.victims import is_spared
from eclectus.framework.view import View
from eclectus.model.objects import Task

CANDIDATES_MOST = 16  # nodes with victims that are compared for one task

Bound = tuple[Task, float]
"""A pod on a node, and since when it is there, seconds."""

Protected = Kept | Literal["gang", "refused", "minRuntime", "budget"]
"""Why a pod is no victim: as a claim says; or it is of a pod group, its eviction was refused lately, it has
not run for long enough, or it has a PodDisruptionBudget."""


class Found(NamedTuple):
    """The victims on one node. Fewer are better, then less work lost, in seconds."""

    pods: tuple[Task, ...]
    lost_seconds: float

    @property
    def cost(self) -> tuple[float, float]:
        """What decides between nodes."""
        return len(self.pods), self.lost_seconds


@dataclass(slots=True)
class Tally:
    """What a search has met: nodes, those without victims by why, and pods by why they are none."""

    nodes: int = 0  # that were examined
    none_above: int = 0  # no pod there is of a pool above its share, of those from which may be taken
    only_held: int = 0  # nothing but room that is held for pods that wait is in the way
    too_little: int = 0  # the task does not fit without the pods that may go
    pods: Counter[Protected] = field(default_factory=Counter)
    until: float = inf  # when the first of those that have not run for long enough may go, seconds


class Search:
    """For one task and claim: the node on which the fewest pods have to go, and what was met on the way."""

    def __init__(self, view: View, task_class: TaskClass, task: Task, claim: Entitlement) -> None:
        self._view = view
        self._task_class = task_class
        self._taking = Taking(view.pools, view.starvation, claim, task)
        self.tally = Tally()

    def keeping(self) -> dict[str, Kept]:
        """Why nothing may be taken from which of the pools that are above their share."""
        answers = {path: self._taking.keeps_pool(path) for path in self._view.starvation.above_share}
        return {path: kept for path, kept in answers.items() if kept is not None}

    def best(self, rows: Iterable[int], most: int) -> tuple[int, Found] | None:
        """The best of these rows, of which at most so many are examined."""
        candidates: dict[int, Found] = {}
        if not any(map(self._taking.gives, self._view.starvation.above_share)):
            return None
        for row in islice(rows, most):
            self.tally.nodes += 1
            found = self._on_row(row)
            if found is not None:
                candidates[row] = found
            if len(candidates) == CANDIDATES_MOST or self._view.budgets.has_compared_enough:
                break
        return min(candidates.items(), key=lambda item: item[1].cost, default=None)

    def _on_row(self, row: int) -> Found | None:
        """The pods that must go from a row; None where the claim makes no room there."""
        view, taking = self._view, self._taking
        bound = [each for each in view.placed.on_row(row) if each[0].node]
        going = [pod for pod, _ in bound if _is_going(view, pod)]
        if not going and not any(taking.gives(pod.pool) for pod, _ in bound):
            self.tally.none_above += 1
            return None
        room = RoomWithout(self._task_class, row)
        if room.fits:
            self.tally.only_held += 1  # waiting pods alone are in its way
            return None
        for pod in going:
            room.remove(pod)
        return self._cleared(bound, room)

    def _cleared(self, bound: Sequence[Bound], room: RoomWithout) -> Found | None:
        """The pods without which the task fits, where the claim may take as many."""
        view = self._view
        self._taking.begin_again()
        taken = list(self._taken(bound, room))
        if not room.fits:
            self.tally.too_little += 1
            return None
        needed = [each for each in taken if not self._is_given_back(room, each)]
        pods = tuple(pod for pod, _ in needed)
        violates = sum(view.budgets.violated_by(pods))
        if violates:
            self.tally.pods["budget"] += violates
            return None
        return Found(pods, sum(view.now - since for _, since in needed))

    def _taken(self, bound: Sequence[Bound], room: RoomWithout) -> Iterator[Bound]:
        """The pods that may go, the newest first, until the task fits; what goes anyway has gone."""
        for pod, since in sorted(bound, key=lambda each: (-each[1], each[0].uid)):
            if room.fits:
                return
            if _is_going(self._view, pod):
                continue
            kept = self._kept(pod, since) or self._taking.keeps((pod,))
            if kept is None:
                self._taking.take((pod,))
                room.remove(pod)
                yield pod, since
            else:
                self.tally.pods[kept] += 1

    def _kept(self, pod: Task, since: float) -> Protected | None:
        """Why a pod may be no victim now, whatever its pool holds."""
        view = self._view
        if pod.gang is not None:
            return "gang"
        if pod.uid in view.spared:
            return "refused"
        pool = view.pools.tree.of_path(pod.pool)
        until = since + (0.0 if pool is None else pool.preemption.min_runtime_seconds)
        if view.now < until:
            self.tally.until = min(self.tally.until, until)
            return "minRuntime"
        return "budget" if any(view.budgets.violated_by((pod,))) else None

    def _is_given_back(self, room: RoomWithout, each: Bound) -> bool:
        """Whether the task fits beside the pod after all."""
        if is_spared(room, each[0]):
            self._taking.give_back((each[0],))
            return True
        return False


def _is_going(view: View, pod: Task) -> bool:
    return pod.deleting or pod.uid in view.evicted
