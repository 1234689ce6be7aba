"""A pending class: the pending tasks of one profile and class, in a class queue for each group of the Order.

No rule can distinguish tasks of one class. If one of them gets no node, neither does any other, whatever
group it is in: the class is refused, held back and activated as a whole, however many queues it has. The lead
of a gang is a pending class of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from operator import attrgetter

from eclectus.cluster.changelog import ChangeLog
from eclectus.engine.queues.class_queue import Entry, SortedClassQueue
from eclectus.engine.queues.head_heap import HeadHeap, RankedHeads, Value
from eclectus.framework import Wait
from eclectus.model.gangs import GangKey
from eclectus.model.objects import Spec, Task
from eclectus.model.reservation import ClassKey

PendingKey = tuple[str, Spec, str, GangKey | None]  # profile, spec, workload; of a gang's lead the gang
GroupIndex = dict[str, dict["PendingClass", SortedClassQueue]]  # of a profile: group -> its class queues


class PendingClass:
    """All class queues of one profile and class. Changed by `ClassQueues` and by the scheduling cycle only.

    Attributes of the class are values with which an instance begins: one is made for nearly every task.
    """

    unschedulable_since: float | None = None  # seconds; None while the class is not unschedulable
    never_feasible = False  # unschedulable because no node, however empty, may run the class
    message = ""  # the policy's own reason for it, if it gave one
    joined = 0  # tasks that came while it was unschedulable and are not counted as attempts yet
    is_withheld = False  # the Order withholds all of its tasks, and no rank can have changed
    is_deferred = False  # tasks of it are deferred, and no answer can have changed
    count = 0  # tasks that wait
    highest_priority: float = -inf  # no task that waits has a higher one
    version = 0  # grows when a task joins or leaves it between two cycles
    asked_in = 0  # the serial of the last cycle that has asked about it
    asked_version = -1  # the version that was asked about, where a cycle takes several steps
    # In a scheduling cycle:
    passed = 0  # tasks that were taken or skipped
    answered = 0  # tasks that were taken and wait no more
    to_skip = 0  # tasks that are still to be skipped
    is_closed = False  # no more of its tasks are offered
    _ranks: RankedHeads | None = None
    _ages: HeadHeap | None = None
    _heaps: tuple[HeadHeap, ...] = ()  # those of the two that have been needed

    def __init__(self, key: PendingKey, groups: GroupIndex | None) -> None:
        self.key, self.profile, self.gang = key, key[0], key[3]
        self.queues: dict[str, SortedClassQueue] = {}  # by group
        self.waits: dict[str, Wait] = {}  # uid -> its wait, of the tasks last answered with Defer
        self._moved: list[SortedClassQueue] = []  # queues whose cursor has moved in this cycle
        self._groups = groups  # None where the Order does not rank groups

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Task]:
        return (task for queue in self.queues.values() for task in queue)

    @property
    def class_key(self) -> ClassKey:
        """Its spec and workload."""
        return self.key[1:3]

    @property
    def has_more(self) -> bool:
        """In a scheduling cycle: whether tasks of it are still to be offered."""
        return not self.is_closed and self.passed < self.count + self.answered

    def highest(self) -> Task:
        """A task of the highest priority; there must be one. O(tasks)."""
        task = max(self, key=attrgetter("priority"))
        self.highest_priority = task.priority
        return task

    def eldest(self) -> tuple[float, ...]:
        """Priority and age of the eldest head; by it profiles are compared, whose Orders' keys cannot be."""
        if len(self.queues) == 1:
            return _age(next(iter(self.queues.values())))
        if self._ages is None:
            self._ages = HeadHeap(_age, self.queues.values())
            self._heaps += (self._ages,)
        self._ages.refresh()
        return self._ages.first() or ()

    def ranks(
        self,
        value: Callable[[SortedClassQueue], Value | Wait],
        accounts: Sequence[ChangeLog[str]],
        *,
        by_path: bool,
        rank_prefix: Callable[[str], tuple[float, ...]] | None = None,
    ) -> RankedHeads:
        """The queues by the rank of their heads: a heap that is made when it is first needed.

        `value` and `rank_prefix`: with the view of this step; from now on the heap asks them, and no earlier
        ones.
        """
        if self._ranks is None:
            self._ranks = RankedHeads(value, self.queues, accounts, by_path=by_path, rank_prefix=rank_prefix)
            self._heaps += (self._ranks,)
        self._ranks.value = value
        if self._ranks.paths is not None and rank_prefix is not None:
            self._ranks.paths.rank = rank_prefix
        return self._ranks

    def withheld(self, queue: SortedClassQueue) -> Wait | None:
        """Why the Order withholds what waits in one of the queues; None if it does not."""
        return None if self._ranks is None else self._ranks.withheld.get(queue)

    # -- between two cycles ------------------------------------------------------------------------

    def add(self, group: str, key: tuple[float, ...], serial: int, task: Task) -> SortedClassQueue:
        """Insert a task; the class queue that it is in."""
        queue = self.queues.get(group)
        if queue is None:
            queue = self.queues[group] = SortedClassQueue(group, serial)
            if self._groups is not None:
                self._groups.setdefault(group, {})[self] = queue
        self.count += 1
        self.version += 1
        if task.priority > self.highest_priority:
            self.highest_priority = task.priority
        if queue.add(key, serial, task) and self._heaps:
            self._touch(queue)
        return queue

    def discard(self, queue: SortedClassQueue, key: tuple[float, ...], serial: int) -> None:
        """Remove a task from one of the queues."""
        self.count -= 1
        self.version += 1
        was_first = queue.discard(key, serial)
        if not len(queue):
            self._drop(queue)
        elif was_first:
            self._touch(queue)

    def _drop(self, queue: SortedClassQueue) -> None:
        """The queue is empty."""
        group = queue.group
        del self.queues[group]
        for heap in self._heaps:
            heap.discard(queue)
        if self._groups is not None:
            del self._groups[group][self]
            if not self._groups[group]:
                del self._groups[group]

    def _touch(self, queue: SortedClassQueue) -> None:
        """The head of the queue has changed."""
        for heap in self._heaps:
            heap.touch(queue)

    # -- a scheduling cycle ------------------------------------------------------------------------

    def take(self, queue: SortedClassQueue) -> Entry | None:
        """Take the head of one of the queues, to be offered to a policy."""
        at = queue.cursor
        if self.is_closed or at >= len(queue.entries):
            return None
        if not at:
            self._moved.append(queue)
        queue.cursor = at + 1
        self.passed += 1
        return queue.entries[at]

    def skip(self, most: int) -> int:
        """Do not offer the next tasks of the class, up to so many; returns how many will be skipped."""
        left = self.count + self.answered - self.passed
        skipped = max(0, min(most, left))
        self.passed += skipped
        self.to_skip += skipped
        self.is_closed = self.is_closed or skipped == left
        return skipped

    def skip_in(self, queue: SortedClassQueue) -> None:
        """Skip tasks of this queue, the next one in the Order's order, as far as tasks are to be skipped."""
        if not queue.cursor:
            self._moved.append(queue)
        self.to_skip -= queue.skip(self.to_skip)

    def end_cycle(self) -> None:
        """Remove tasks that were answered, and offer all others in the next cycle."""
        for queue in self._moved:
            queue.end_cycle()
            if len(queue):
                self._touch(queue)
            else:
                self._drop(queue)
        self._moved.clear()
        self.passed = self.answered = self.to_skip = 0
        self.is_closed = False


def _age(queue: SortedClassQueue) -> tuple[float, ...]:
    """Asked between two cycles, when every queue has all its tasks."""
    first = queue.entries[0][2]
    return (-first.priority, first.created, queue.serial)
