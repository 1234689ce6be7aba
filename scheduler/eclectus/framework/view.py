"""What a policy may read: arrays over nodes, classes, speeds, node queues, time and seeded randomness."""

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import inf
from random import Random
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.accounts.accounts import Arrivals, JobWork
from eclectus.accounts.group_shares import GroupShares
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.accounts.node_prices import NodePrices, NodePricing
from eclectus.accounts.pools import Pools
from eclectus.accounts.reclaim import Starvation
from eclectus.accounts.restartable_pods import RestartablePods
from eclectus.cluster.budgets import Budgets
from eclectus.cluster.changelog import AnyRows, EntryLog, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import scalars
from eclectus.feasibility.task_class import ClassCache, NarrowedClass, TaskClass
from eclectus.framework.actions import Solution
from eclectus.framework.learner import Learn, Speeds
from eclectus.maths.data_gain import DataGains
from eclectus.maths.next_slot import NextSlot
from eclectus.model.objects import ClassKey, GangKey, Reservation, Task

# The nodes of one class ranked by a cost; the best one is found without reading all of them.
#
# Costs are kept in blocks, with the least cost of each block. A change of a node updates its block. Finding
# the best node reads the least cost of every block and the costs of one block: about the square root of the
# number of nodes. numpy makes this fast: 15,000 nodes take a few microseconds more than 500. (A heap is O(log
# n) in theory, but every change of a cost would leave a stale entry to be removed in Python.)
#
# A pod that is placed may change the preference scores of all nodes (scores_by_pods.py). So a cost may be
# given in two parts: without preferences, which is kept and computed again for changed nodes only, and how
# preferences weigh in it, a few operations over all nodes.

Cost = Callable[[TaskClass, Rows], NDArray[np.float64]]
"""The cost of each of these rows, shape [len(rows)]: smaller is better, inf excludes the node."""

CostOfFew = Callable[[TaskClass, Sequence[int]], Iterable[float]]
"""The same of a few rows, equal to the last bit: plain numbers are several times as fast for these."""

Weigh = Callable[[TaskClass, NDArray[np.float64], AnyRows], NDArray[np.float64]]
"""Costs from costs without preferences, and these rows' preferences; inf stays inf."""

FEW = 8  # rows, up to which plain numbers cost less
BLOCK = 64  # rows in a block: near the square root of a few thousand nodes

Logs = Sequence[EntryLog[Rows]]
Position = tuple[int, Hashable, int, int]
"""Epoch of the speeds, epoch of the weights, ends of the logs of shape and usage."""


class Ranking:
    """The nodes of one class, ranked by one cost function. `epoch`: of the policy, see `View.ranking`.

    `cost`, `cost_of_few`: they may be set to other functions with the same results; with `weigh` a cost is
    without preferences. `weigh` may be set to another function where
    `refresh` gets another epoch with it.
    """

    def __init__(self, task_class: TaskClass, cost: Cost, epoch: Hashable = None) -> None:
        self._class = task_class
        self.cost = cost
        self.epoch = epoch
        self.cost_of_few: CostOfFew | None = None
        self.weigh: Weigh | None = None
        self._position: Position = (-1, None, -1, -1)
        self._has_least = False  # whether `_least` is of the costs as they are
        self._flip_cursors: list[int] = []  # of each log of the class
        self._score_cursors: list[int] = []

    def best(self) -> tuple[int, float] | None:
        """Row and cost of the best node, the lowest row among equals; None if every cost is inf."""
        if not self._has_least:  # all costs are new: to read them once takes less than to find it
            row = int(self._costs.argmin())
            cost = self._costs_at[row]
            return None if cost == np.inf else (row, cost)
        block = int(self._least.argmin())
        cost = float(self._least[block])
        return None if cost == np.inf else (block * BLOCK + int(self._blocks[block].argmin()), cost)

    def draw_best(self, rng: Random) -> tuple[int, float] | None:
        """Row and cost of a best node, drawn uniformly among equals; None if every cost is inf."""
        if not self._has_least:
            cost = float(self._costs.min())
            equal = np.flatnonzero(self._costs == cost)
            return None if cost == np.inf else (int(equal[rng.randrange(len(equal))]), cost)
        cost = float(self._least.min())
        if cost == np.inf:
            return None
        blocks = np.flatnonzero(self._least == cost)
        equal = np.flatnonzero(self._blocks.take(blocks, axis=0) == cost)
        block, column = divmod(int(equal[rng.randrange(len(equal))]), BLOCK)
        return int(blocks[block]) * BLOCK + column, cost

    def first(self, count: int) -> list[tuple[int, float]]:
        """Rows and costs of the best nodes, the best one first; not those whose cost is inf. O(rows)."""
        rows = np.argsort(self._costs, kind="stable")[:count]
        costs = self._costs[rows]
        return [(int(row), float(cost)) for row, cost in zip(rows, costs, strict=True) if cost < np.inf]

    def cost_at(self, row: int) -> float:
        """The cost of a row as it was refreshed last."""
        return float(self._costs[row])

    def refresh(self, epoch: int, weigh_epoch: Hashable = None) -> None:
        """Update the costs of the rows that changed, or of all rows if the epoch of the speeds is new.

        With another `weigh_epoch` preferences weigh otherwise in all of them. The class must be up to date
        already.
        """
        cluster = self._class.cluster
        position = (epoch, weigh_epoch, cluster.shape.head, cluster.usage.head)
        if position == self._position:
            return
        # What other pods may have changed: in `cost`, and in what `weigh` reads.
        rules, scores = self._class.flips, self._class.score_flips
        in_cost, apart = ((*rules, *scores), ()) if self.weigh is None else (rules, scores)
        changed = None if epoch != self._position[0] else self._changed(in_cost)
        scored = None if weigh_epoch != self._position[1] else _since(apart, self._score_cursors)
        if changed is None:
            self._rebuild()
        else:
            self._update(*changed, scored)
        if rules or scores:
            self._flip_cursors = [log.head for log in in_cost]
            self._score_cursors = [log.head for log in apart]
        # Last, because a cost function that raises must be called again for the same rows.
        self._position = position

    def _changed(self, logs: Logs) -> tuple[Sequence[int], list[Rows]] | None:
        """Rows whose cost may be another one, and arrays of such rows; None if all may be."""
        cluster, (_, _, shape_cursor, usage_cursor) = self._class.cluster, self._position
        reshaped, reused = cluster.shape.since(shape_cursor), cluster.usage.since(usage_cursor)
        if not (logs or reshaped) and reused is not None and reshaped is not None:
            return reused, []
        flipped = _since(logs, self._flip_cursors)
        if reshaped is None or reused is None or flipped is None:
            return None
        single = [row for each in flipped if len(each) == 1 for row in each.tolist()]
        rows = sorted({*reshaped, *reused, *single}) if reshaped or single else reused
        return rows, [each for each in flipped if len(each) > 1]

    def _rebuild(self) -> None:
        self._costs = np.full(-(-self._class.cluster.capacity // BLOCK) * BLOCK, np.inf)
        self._unweighed = self._costs if self.weigh is None else self._costs.copy()
        self._unweighed[self._class.weighed_rows] = self.cost(self._class, self._class.rows)
        self._blocks = self._costs.reshape(-1, BLOCK)  # a view of the same numbers
        self._least = np.empty(len(self._blocks))
        self._costs_at, self._least_at = scalars(self._costs), scalars(self._least)
        self._unweighed_at = scalars(self._unweighed)
        self._weigh_all()
        if self.weigh is None:
            self._blocks.min(axis=1, out=self._least)
            self._has_least = True

    def _update(self, single: Sequence[int], together: list[Rows], scored: list[Rows] | None) -> None:
        """`scored`: rows whose preferences are met otherwise; None for all."""
        few: list[Rows] = []
        if self.cost_of_few is not None and len(single) <= FEW:
            costs = zip(single, self.cost_of_few(self._class, single), strict=True)
            if self.weigh is None:
                for row, cost in costs:
                    self._set(row, cost)
            else:
                for row, cost in costs:
                    self._unweighed_at[row] = cost
                few.append(np.array(single, dtype=np.intp))
        elif single:
            together = [np.array(single, dtype=np.intp), *together]
        for rows in together:
            self._unweighed[rows] = self.cost(self._class, rows)
        if scored is None:
            self._weigh_all()
            return
        for rows in (*few, *together, *scored):
            if self.weigh is not None:
                self._costs[rows] = self.weigh(self._class, self._unweighed[rows], rows)
            self._find_least(rows)

    def _weigh_all(self) -> None:
        if self.weigh is not None:
            rows = self._class.weighed_rows
            self._costs[rows] = self.weigh(self._class, self._unweighed[rows], rows)
        self._has_least = False

    def _set(self, row: int, cost: float) -> None:
        block, before = row // BLOCK, self._costs_at[row]
        self._costs_at[row] = cost
        if cost <= self._least_at[block]:
            self._least_at[block] = cost
        elif before == self._least_at[block]:
            column = int(self._blocks[block].argmin())  # a third of the time of `min`
            self._least_at[block] = self._costs_at[block * BLOCK + column]

    def _find_least(self, rows: Rows) -> None:
        if not self._has_least:
            return
        if len(rows) > len(self._least):  # a topology domain: each block would be read for each of its rows
            self._blocks.min(axis=1, out=self._least)
            return
        touched = rows // BLOCK
        self._least[touched] = self._blocks.take(touched, axis=0).min(axis=1)


def _since(logs: Logs, cursors: Sequence[int]) -> list[Rows] | None:
    """The entries of all logs since these cursors; None if a log does not reach back so far."""
    found: list[Rows] = []
    for log, cursor in zip(logs, cursors, strict=False):
        entries = log.entries_since(cursor)
        if entries is None:
            return None
        found += entries
    return found


class PlacedPods(Protocol):
    """What is known of the pods that hold room on nodes."""

    def on_row(self, row: int) -> Iterable[tuple[Task, float]]:
        """The pods that hold room on a row, bound, assumed or nominated, and since when, seconds."""

    def is_empty(self, row: int) -> bool:
        """Whether no pod holds room on the row."""

    def task(self, uid: str) -> Task | None:
        """A pod that holds room, as last seen; None if it holds none."""

    def is_nominated(self, uid: str) -> bool:
        """Whether room is held for a pod that is neither bound nor assumed."""

    def held_since(self, uid: str) -> float | None:
        """Since when a pod holds room, seconds: since its start where it is known. None if it holds none."""

    @property
    def lowest_priority(self) -> float:
        """The lowest priority of any pod that holds room; inf if none does."""


class PlacedGang(Protocol):
    """What is known of the pods of a PodGroup that have nodes."""

    @property
    def key(self) -> GangKey:
        """Which PodGroup."""

    @property
    def min_count(self) -> int | None:
        """How many start together; None if the PodGroup is not known."""

    @property
    def placed(self) -> AbstractSet[str]:
        """The uids of the pods that have a node, as far as is known."""

    @property
    def started(self) -> int:
        """How many pods have a node, or have had one since enough of them started together."""


class NearSlots(Protocol):
    """When nodes with the data of tasks get room."""

    def next(self, task: Task, now: float) -> NextSlot | None:
        """The next slot for a task on a node with its data; None where that is not known."""


class View(Struct, frozen=True, eq=False):
    """What a policy may read in one step. No field can be set, and the next step has another view.

    Only `now` differs between two steps: the rest is live. What an action changes is seen as soon as it is in
    force.

    `now`: the time of the step, seconds.
    `node_queues`: row -> the reservations in its node queue, in order of arrival.
    `queued_tasks`: class -> its tasks that wait in node queues, each once however many reservations it has.
    `deferred_since`: uid -> since when the task has been deferred in every cycle, seconds.
    `evicted`: pods of which the eviction was sent, as long as they exist. `spared`: pods of which it was
    refused lately, which are no victims now. `budgets`: PodDisruptionBudgets.
    `shares_by_policy`: the accounts of `shares`, by the identity of the policy that asks for them.
    `arrivals`: how many tasks of each class arrive; None unless a policy wants it. `known_jobs`: likewise.
    `gangs`: by the uid of each of their pods.
    `pools`: what each Pool holds, waits for and may hold. `starvation`: what they may take back.
    `solutions`: to the last Ask of each policy, by its identity.
    `narrowed`: the classes of tasks that are offered for some nodes only, by uid.
    `copy_nodes`: the names of nodes that have copies.
    `data_gains`: how many times as long tasks take away from their data. `near_slots`: when slots near these
    get free.
    `restartable`: the pods on nodes whose work may begin anew; None unless a policy needs them.
    """

    now: float
    cluster: Cluster
    classes: ClassCache
    learn: Learn
    rng: Random
    node_queues: Mapping[int, Sequence[Reservation]]
    queued_tasks: Mapping[ClassKey, int]
    deferred_since: Mapping[str, float]
    placed: PlacedPods
    evicted: Collection[str]
    spared: Container[str]
    budgets: Budgets
    shares_by_policy: Mapping[int, GroupShares]
    job_work: JobWork | None
    pricing: NodePricing | None
    arrivals: Arrivals | None
    known_jobs: KnownJobs | None
    gangs: Mapping[str, PlacedGang]
    pools: Pools
    starvation: Starvation
    solutions: Mapping[int, Solution]
    narrowed: Mapping[str, NarrowedClass]
    copy_nodes: Callable[[], Collection[str]]
    data_gains: DataGains
    near_slots: NearSlots
    restartable: RestartablePods | None

    def task_class(self, task: Task) -> TaskClass:
        """The class of the task, up to date; of one that is offered for some nodes only, with these alone."""
        if self.narrowed and (found := self.narrowed.get(task.uid)) is not None:
            return found
        return self.classes.current(task.spec, task.workload)

    def speeds(self, task_class: TaskClass) -> Speeds:
        """The learned speed of every node for the work of this class; for probes all nodes are equal.

        Otherwise no probe would go to a node that counts as dead, and nothing would find it alive again.
        """
        found = self.learn.speeds(task_class.workload)
        return Speeds(np.ones_like(found.rate), 1.0, found.epoch) if task_class.spec.probe else found

    def shares(self, policy: object) -> GroupShares:
        """What the groups of this policy's `counted_by` hold. Raises KeyError where it has no account."""
        return self.shares_by_policy[id(policy)]

    def solution(self, policy: object) -> Solution | None:
        """The answer to the policy's last Ask; None while there is none."""
        return self.solutions.get(id(policy))

    def copies_first(self, rows: Sequence[int]) -> Sequence[int]:
        """The rows in their order, but those first on which there are copies: these go before other pods."""
        found = {self.cluster.rows.get(node) for node in self.copy_nodes()}
        return sorted(rows, key=lambda row: row not in found) if found else rows

    def work_left(self, task: Task) -> float:
        """Work of the task's job that has not begun, seconds; inf where it is unknown."""
        return inf if self.job_work is None else self.job_work.left(task)

    @property
    def jobs(self) -> KnownJobs:
        """The DAG jobs, by uid. Raises LookupError where no policy needs them (`jobs`)."""
        if self.known_jobs is None:
            raise LookupError("no policy of this scheduler has asked for DAG jobs")
        return self.known_jobs

    def node_prices(self) -> NodePrices:
        """The prices of all nodes. Raises LookupError where no policy needs them (`prices`)."""
        if self.pricing is None:
            raise LookupError("no policy of this scheduler has asked for node prices")
        return self.pricing.current

    def is_long(self, task: Task) -> bool:
        """Whether the task's estimate is long beside those of late; False where node prices are not kept."""
        return self.pricing is not None and self.pricing.demand.is_long(task.uid)

    def ranking(
        self,
        task_class: TaskClass,
        cost: Cost,
        owner: object,
        epoch: Hashable = None,
        *,
        speeds: Speeds | None = None,
        cost_of_few: CostOfFew | None = None,
        weigh: Weigh | None = None,
        weigh_epoch: Hashable = None,
    ) -> Ranking:
        """The nodes of a class ranked by a policy's cost, brought up to date for the rows that changed.

        A class has one ranking for each owner. `epoch`: what the cost depends on beside the class and the
        speeds; with another one all costs are computed again. `speeds`: those of the class, where they are at
        hand. `cost_of_few`: the same costs, of a few rows. `weigh`: makes the costs from those without
        preferences, which the other two then give, so that a pod that changes the preference scores of all
        nodes costs little; with another `weigh_epoch` it weighs all of them again.
        """
        ranking: Ranking | None = task_class.derived.get(owner)
        if ranking is None or ranking.epoch != epoch:
            ranking = task_class.derived[owner] = Ranking(task_class, cost, epoch)
        ranking.cost, ranking.cost_of_few, ranking.weigh = cost, cost_of_few, weigh
        if speeds is None:
            speeds = self.learn.speeds(task_class.workload)
        ranking.refresh(speeds.epoch, weigh_epoch)
        return ranking
