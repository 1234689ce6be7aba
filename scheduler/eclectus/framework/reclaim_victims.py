"""The victims of reclaim: the node on which the fewest pods must go for a task of a pool that claims room.

A question, which changes nothing: the policy asks it before it evicts, and explanations in its place. Whose
pods a claim may take is in accounts/reclaim.py; here a node is chosen together with them. The newest pods of
a node go first, no more than needed, and those that are on their way out before all others.

Gangs keep their quorum or go: a pod that is one too many may go alone. Otherwise the pods of a gang on the
node go last, and with them all others of it, on whatever nodes; each of them must be allowed to.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

from msgspec import Struct, field

from eclectus.accounts.reclaim import ALONE, Entitlement, Kept, Taking, Together
from eclectus.feasibility.fit_error import RoomWithout
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.view import PlacedGang, View
from eclectus.model.objects import GangKey, Task

CANDIDATES_MOST = 16  # nodes with victims that are compared for one task

Bound = tuple[Task, float]
"""A pod on a node, and since when it is there, seconds."""

Protected = Kept | Literal["gang", "refused", "minRuntime", "budget"]
"""Why a pod is no victim: as a claim says; or another one of its gang is none, its eviction was refused
lately, it has not run for long enough, or it has a PodDisruptionBudget."""


class Unit(NamedTuple):
    """What goes together: a pod, or all of a gang that would be too few without one of them."""

    pods: tuple[Task, ...]  # first those on the node at hand
    here: int  # so many of them
    lost_seconds: float


class Found(NamedTuple):
    """The victims on one node. Fewer are better, copies counted last, then less work lost, in seconds."""

    pods: tuple[Task, ...]
    lost_seconds: float

    @property
    def cost(self) -> tuple[float, float, float]:
        """What decides between nodes."""
        return sum(not pod.copy_of for pod in self.pods), len(self.pods), self.lost_seconds


class Tally(Struct):
    """What a search has met: nodes, those without victims by why, and pods by why they are none."""

    nodes: int = 0  # that were examined
    none_above: int = 0  # no pod there is of a pool above its share, of those from which may be taken
    only_held: int = 0  # nothing but room that is held for pods that wait is in the way
    too_little: int = 0  # the task does not fit without the pods that may go
    pods: Counter[Protected] = field(default_factory=Counter)


class Search:
    """For one task and claim: the node on which the fewest pods have to go, and what was met on the way."""

    def __init__(
        self,
        view: View,
        task_class: TaskClass,
        task: Task,
        claim: Entitlement,
        *,
        together: Together = ALONE,
        candidates: int = CANDIDATES_MOST,
    ) -> None:
        """`together`: the others of the task's gang. `candidates`: nodes with victims that are compared."""
        self._view = view
        self._victims, self._candidates = together.victims, candidates
        self._task_class = task_class
        self._is_for_minimum = claim.kind == "minimum"
        self._taking = Taking(view.pools, view.starvation, claim, task, together)
        self._going_of: dict[GangKey, int] = {}  # pods on their way out, of gangs that were looked at
        self.tally = Tally()
        self.until = inf  # when the first pod has run for long enough that might go otherwise, seconds
        self.work = 0  # nodes that were examined, and pods of gangs

    def keeping(self) -> dict[str, Kept]:
        """Why nothing may be taken from which of the pools that are above their share."""
        answers = {path: self._taking.keeps_pool(path) for path in self._view.starvation.above_share}
        return {path: kept for path, kept in answers.items() if kept is not None}

    def may_find(self) -> bool:
        """Whether a pool above its share may give anything, on whatever nodes its pods are."""
        return any(map(self._taking.gives, self._view.starvation.above_share))

    def best(self, rows: Sequence[int], most: int) -> tuple[int, Found] | None:
        """The best of these rows, of which at most so many are examined; fewer where gangs are large.

        For a minimum pools within their share give too, where those above it make no room on any of the rows.
        """
        found = self._best(rows, most) if self.may_find() else None
        if found is None and self._is_for_minimum and self.work < most:
            self._taking.within_shares, self.tally = True, Tally()
            found = self._best(rows, most - self.work)
        return found

    def _best(self, rows: Sequence[int], most: int) -> tuple[int, Found] | None:
        candidates: dict[int, Found] = {}
        most += self.work
        for row in rows if self.work < most else ():
            self.tally.nodes += 1
            self.work += 1
            found = self._on_row(row)
            if found is not None:
                candidates[row] = found
            is_enough = len(candidates) >= self._candidates or self.work >= most
            if is_enough or self._view.budgets.has_compared_enough:
                break
        return min(candidates.items(), key=lambda item: item[1].cost, default=None)

    def _on_row(self, row: int) -> Found | None:
        """The pods that must go from a row; None where the claim makes no room there."""
        view, taking = self._view, self._taking
        bound = [each for each in view.placed.on_row(row) if each[0].node]
        going = [pod for pod, _ in bound if self._is_going(pod)]
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
        self._taking.begin_again()
        taken = self._taken(bound, room)
        if not room.fits:
            self.tally.too_little += 1
            return None
        needed = self._without_spared(taken, room)
        pods = tuple(pod for unit in needed for pod in unit.pods)
        violates = self._violated_by(pods)
        if violates:
            self.tally.pods["budget"] += violates
            return None
        return Found(pods, sum(unit.lost_seconds for unit in needed))

    def _taken(self, bound: Sequence[Bound], room: RoomWithout) -> list[Unit]:
        """What goes until the task fits: the newest pods, then whole gangs; what goes anyway has gone."""
        taken, gangs, alone = list[Unit](), dict[GangKey, Task](), Counter[GangKey]()
        for pod, since in sorted(bound, key=_goes_first):
            if room.fits:
                return taken
            if self._is_going(pod):
                continue
            if pod.gang is not None and not self._may_go_alone(pod, alone[pod.gang]):
                gangs.setdefault(pod.gang, pod)
                continue
            unit = Unit((pod,), 1, self._view.now - since)
            if self._take(unit, self._kept(pod, since), room):
                taken.append(unit)
                if pod.gang is not None:
                    alone[pod.gang] += 1
        for pod in gangs.values():
            if not room.fits:
                unit, kept = self._whole(pod, room.row, taken)
                if self._take(unit, kept, room):
                    taken.append(unit)
        return taken

    def _take(self, unit: Unit, kept: Protected | None, room: RoomWithout) -> bool:
        """Count what goes together as gone, if it may go."""
        kept = kept or self._taking.keeps(unit.pods)
        if kept is not None:
            self.tally.pods[kept] += unit.here
            return False
        self._taking.take(unit.pods)
        for pod in unit.pods[: unit.here]:
            room.remove(pod)
        return True

    def _may_go_alone(self, pod: Task, gone: int) -> bool:
        """Whether its quorum stays. `gone`: how many others of the gang go, beside those that go anyway."""
        gang = self._view.gangs[pod.uid]
        if gang.min_count is None:
            return False
        return gang.min_count <= 1 or gang.started - self._going(gang) - gone > gang.min_count

    def _going(self, gang: PlacedGang) -> int:
        found = self._going_of.get(gang.key)
        if found is None:
            pods = (self._view.placed.task(uid) for uid in gang.placed)
            found = sum(pod is not None and self._is_going(pod) for pod in pods)
            self._going_of[gang.key] = found
            self.work += len(gang.placed)
        return found

    def _whole(self, pod: Task, row: int, taken: Sequence[Unit]) -> tuple[Unit, Protected | None]:
        """All that stays of a gang, first its pods on the row, and why it may not go."""
        view, known = self._view, {each.uid for unit in taken for each in unit.pods}
        node, kept = view.cluster.names[row], None
        here, elsewhere, lost = list[Task](), list[Task](), 0.0
        for uid in sorted(view.gangs[pod.uid].placed - known):
            each, since = view.placed.task(uid), view.placed.held_since(uid)
            if each is None or since is None or self._is_going(each):
                continue
            is_here = each.node == node
            (here if is_here else elsewhere).append(each)
            lost += view.now - since
            of_it = self._kept(each, since) if each.node else "gang"  # whether it is bound is not known yet
            kept = kept or (of_it if is_here or of_it is None else "gang")
        unit = Unit((*here, *elsewhere), len(here), lost)
        self.work += len(unit.pods)
        if kept is None and self._violated_by(unit.pods):
            kept = "budget"
        return unit, kept

    def _kept(self, pod: Task, since: float) -> Protected | None:
        """Why a pod may be no victim now, whatever its pool holds."""
        view = self._view
        if pod.uid in view.spared:
            return "refused"
        pool = view.pools.tree.of_path(pod.pool)
        until = since + (0.0 if pool is None else pool.preemption.min_runtime_seconds)
        if view.now < until:
            if until < self.until and self._taking.keeps((pod,)) is None:
                self.until = until
            return "minRuntime"
        return "budget" if self._violated_by((pod,)) else None

    def _violated_by(self, pods: Sequence[Task]) -> int:
        """Of how many of these pods the eviction violates a budget, after those for others of the gang."""
        before = self._victims.values() if any(map(self._view.budgets.applies_to, pods)) else ()
        return sum(self._view.budgets.violated_by((*before, *pods))[len(before) :])

    def _is_going(self, pod: Task) -> bool:
        return pod.deleting or pod.uid in self._view.evicted or pod.uid in self._victims

    def _without_spared(self, taken: Sequence[Unit], room: RoomWithout) -> list[Unit]:
        """Those without which the task does not fit after all; gangs are spared first, and copies last.

        A pod of a gang that goes as a whole goes with it: it was one too many only as long as that stayed.
        """
        needed = list(taken)
        for unit in sorted(taken, key=lambda each: (len(each.pods) == 1, bool(each.pods[0].copy_of))):
            of_gang = unit.pods[0].gang
            others = (each for each in needed if len(each.pods) > 1 and each is not unit)
            if of_gang is not None and any(each.pods[0].gang == of_gang for each in others):
                continue
            if _are_spared(room, unit.pods[: unit.here]):
                self._taking.give_back(unit.pods)
                needed.remove(unit)
        return needed


def _goes_first(bound: Bound) -> tuple[bool, float, str]:
    """Copies, whose work another pod does; then the newest pods."""
    pod, since = bound
    return not pod.copy_of, -since, pod.uid


def _are_spared(room: RoomWithout, pods: Sequence[Task]) -> bool:
    """Whether the task fits beside the pods after all; otherwise they are left out of the room again."""
    for pod in pods:
        room.restore(pod)
    if room.fits:
        return True
    for pod in pods:
        room.remove(pod)
    return False
