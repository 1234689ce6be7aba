"""All pending tasks that are neither in a node queue nor backing off, by profile and class.

A pending class has the tasks of one profile and class, in a class queue for each group of the Order. No rule
can distinguish them: if one gets no node, neither does any other, whatever group it is in. So the class is
refused, held back and activated as a whole, however many queues it has. The lead of a gang is a pending
class of its own.

A class is active, deferred, withheld, held or unschedulable. Only an active one costs anything: an
unschedulable one is activated when a row changes on which it may fit (unschedulable.py), a deferred one when
something happens that could change the answers to its tasks, a withheld one when its Order could rank one of
its tasks (waits.py), and a held one when one of its queues may be asked about again (held_queues.py).
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from math import inf, isnan
from operator import attrgetter

from msgspec import Struct

from eclectus.cluster.changelog import ChangeLog, Rows
from eclectus.cluster.memo import unfile
from eclectus.engine.queues.data_clocks import DataClock, QueueClock
from eclectus.engine.queues.head_heap import HeadHeap, RankedHeads, Value
from eclectus.engine.queues.local_tasks import NOWHERE, Entry, LocalTasks, Place
from eclectus.engine.queues.unschedulable import UnschedulableClasses
from eclectus.feasibility.task_class import ClassCache
from eclectus.framework import Order, Profile, Reason, Wait
from eclectus.model.objects import ClassKey, GangKey, Spec, Task

HELD = Wait(Reason("waiting for a node with its data"))
"""Why a queue is not offered that is held."""


class SortedClassQueue:
    """A sorted list, and a cursor that a scheduling cycle moves along it. Written by PendingClass only.

    Tasks that were answered stay in the list until the cycle ends. The cursor never stands before a task that
    was taken out of order.
    """

    __slots__ = (
        "_skipped", "answered", "cursor", "entries", "group", "is_held", "local", "serial", "taken", "waited",
    )  # fmt: skip

    def __init__(self, group: str, serial: int) -> None:
        self.group = group
        self.serial = serial  # that of its first task
        self.entries: list[Entry] = []
        self.answered: set[int] = set()  # serials of tasks that were taken and wait here no more
        self.cursor = 0  # how many of them this scheduling cycle has taken or skipped
        self._skipped: tuple[tuple[int, int], ...] = ()  # where the cursor has skipped tasks: begin, end
        # Of a profile that asks where the data of tasks are; None where no task names any.
        self.local: LocalTasks | None = None
        self.taken: dict[int, Entry] = {}  # by serial: those that this cycle has taken by their data
        self.is_held = False  # none of its tasks is offered for now
        self.waited: QueueClock | None = None  # since when its tasks wait for such nodes; None: they have not

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Task]:
        return (task for _, _, task in self.entries)

    @property
    def head(self) -> Task | None:
        """The next task in this scheduling cycle."""
        return self.entries[self.cursor][2] if self.cursor < len(self.entries) else None

    @property
    def head_key(self) -> tuple[float, ...]:
        """The Order's key of the head; raises IndexError without a head."""
        return self.entries[self.cursor][0]

    def ahead(self, key: tuple[float, ...], serial: int) -> int:
        """How many tasks are before one, between two cycles."""
        return bisect_left(self.entries, (key, serial))

    def add(self, key: tuple[float, ...], serial: int, task: Task) -> bool:
        """Insert a task; whether it is the first."""
        insort(self.entries, (key, serial, task))
        if self.local is not None:
            self.local.add((key, serial, task))
        return self.entries[0][1] == serial

    def discard(self, key: tuple[float, ...], serial: int) -> bool:
        """Remove a task, between two cycles; whether it was the first."""
        at = bisect_left(self.entries, (key, serial))
        if at < len(self.entries) and self.entries[at][:2] == (key, serial):
            if self.local is not None:
                self.local.discard(self.entries[at])
            del self.entries[at]
        return at == 0

    def index(self, nodes: Container[str]) -> None:
        """Find its tasks by their data from now on. `nodes`: the names of those that exist."""
        self.local = LocalTasks(nodes)
        for entry in self.entries:
            self.local.add(entry)

    def take(self, entry: Entry) -> None:
        """Take a task wherever it stands."""
        if self.local is not None:
            self.local.discard(entry)
        self.taken[entry[1]] = entry
        while self.cursor < len(self.entries) and self.entries[self.cursor][1] in self.taken:
            self.cursor += 1

    @property
    def begin(self) -> Place:
        """The place of the head, if tasks before it were skipped: these are no more offered by their data."""
        return self.entries[self.cursor][:2] if self._skipped else NOWHERE

    def skip(self, most: int) -> int:
        """Move the cursor past up to so many tasks; returns past how many. O(tasks taken by their data)."""
        begin = self.cursor
        end, taken = begin + most, 0
        if self.taken:
            places = (bisect_left(self.entries, entry[:2]) for entry in self.taken.values())
            for at in sorted(place for place in places if place >= begin):
                if at > end:
                    break
                end, taken = end + 1, taken + 1
        self.cursor = min(end, len(self.entries))
        self._skipped = (*self._skipped, (begin, self.cursor))
        return self.cursor - begin - taken

    def end_cycle(self) -> None:
        """Remove the tasks that were answered, and reset the cursor. Skipped tasks cost nothing."""
        if self.taken:
            self._end_taken()
        end = self.cursor
        if self.answered:
            for begin, behind in reversed(self._skipped):
                self._remove_answered(behind, end)
                end = begin
            self._remove_answered(0, end)
            self.answered.clear()
        self.cursor, self._skipped = 0, ()

    def _end_taken(self) -> None:
        """Remove those of the tasks taken by their data that were answered; the others wait as before."""
        for key, serial, task in self.taken.values():
            if serial not in self.answered:
                if self.local is not None:
                    self.local.add((key, serial, task))
                continue
            at = bisect_left(self.entries, (key, serial))
            if at >= self.cursor or self._skipped:
                del self.entries[at]
        if self._skipped:  # then none is left to be removed by the cursor
            self.answered.clear()
        self.taken = {}

    def _remove_answered(self, begin: int, end: int) -> None:
        answered = self.answered
        self.entries[begin:end] = [entry for entry in self.entries[begin:end] if entry[1] not in answered]


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
    is_held = False  # all of its queues are held
    held = 0  # queues of it that are
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
    _ranks: RankedHeads[SortedClassQueue] | None = None
    _ages: HeadHeap[SortedClassQueue] | None = None
    _heaps: tuple[HeadHeap[SortedClassQueue], ...] = ()  # those of the two that have been needed

    def __init__(self, key: PendingKey, groups: GroupIndex | None) -> None:
        self.key = key
        self.profile = key[0]
        self.gang = key[3]
        self.queues: dict[str, SortedClassQueue] = {}  # by group
        self.waits: dict[str, Wait] = {}  # uid -> its wait, of the tasks last answered with Defer
        self._moved: list[SortedClassQueue] = []  # queues whose cursor has moved in this cycle
        self._groups = groups  # None where the Order does not rank groups

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Task]:
        return (task for queue in self.queues.values() for task in queue)

    def left(self) -> Iterator[Task]:
        """In a scheduling cycle: the tasks that wait here still."""
        for queue in self.queues.values():
            yield from (task for _, serial, task in queue.entries if serial not in queue.answered)

    @property
    def class_key(self) -> ClassKey:
        """Its spec and workload."""
        return self.key[1:3]

    @property
    def has_more(self) -> bool:
        """In a scheduling cycle: whether tasks of it are still to be offered."""
        return not self.is_closed and self.passed < self.count + self.answered

    @property
    def to_offer(self) -> int:
        """In a scheduling cycle: how many tasks of it are."""
        return 0 if self.is_closed else self.count + self.answered - self.passed

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
        first = self._ages.first()
        return () if first is None else first[0]

    def ranks(
        self,
        value: Callable[[SortedClassQueue], Value | Wait],
        accounts: Sequence[ChangeLog[str]],
        *,
        by_path: bool,
        rank_prefix: Callable[[str], tuple[float, ...] | Wait] | None = None,
    ) -> RankedHeads[SortedClassQueue]:
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
        """Why the Order withholds what waits in one of the queues, or it is held; None if neither is so."""
        if queue.is_held:
            return HELD
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
        self.held -= queue.is_held
        del self.queues[group]
        for heap in self._heaps:
            heap.discard(queue)
        if self._groups is not None:
            unfile(self._groups, group, self)

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

    def take_out_of_order(self, queue: SortedClassQueue, entry: Entry) -> None:
        """Take a task that may stand behind others, to be offered to a policy.

        In a cycle all tasks of a queue are taken in this way, or none.
        """
        if not queue.taken and not queue.cursor:
            self._moved.append(queue)
        queue.take(entry)
        self.passed += 1

    def hold(self, queue: SortedClassQueue) -> None:
        """Offer none of its tasks until `let_go`."""
        if not queue.is_held:
            queue.is_held = True
            self.held += 1
            self._touch(queue)

    def let_go(self, queue: SortedClassQueue) -> None:
        """Offer its tasks again; no effect if it is not held."""
        if queue.is_held:
            queue.is_held = False
            self.held -= 1
            self._touch(queue)

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
        if not queue.cursor and not queue.taken:
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


class Queued(Struct, frozen=True, gc=False):
    """A pod's entry in a class queue."""

    pending: PendingClass
    queue: SortedClassQueue
    key: tuple[float, ...]  # of the Order
    serial: int


class ClassQueues:
    """Pending classes by what is to be done with them."""

    def __init__(
        self,
        classes: ClassCache,
        profiles: Iterable[Profile],
        holding: Container[str] = (),
        feasible_again: Callable[[PendingClass], None] = lambda pending: None,
    ) -> None:
        """`holding`: the names of those profiles that hold tasks back for nodes with their data, or price it.

        `feasible_again`: called with a class that was never feasible, before it is asked about again.
        """
        self._feasible_again = feasible_again
        self._holding, self._nodes = holding, classes.cluster.rows
        self._with_data: dict[PendingClass, DataClock] = {}
        self.with_data: Mapping[PendingClass, DataClock] = self._with_data  # of which a task names data
        self._classes: dict[PendingKey, PendingClass] = {}
        self._active: dict[PendingKey, PendingClass] = {}
        self.active: Mapping[PendingKey, PendingClass] = self._active  # to be asked about in the next cycle
        self._unschedulable: dict[ClassKey, dict[PendingKey, PendingClass]] = {}
        self._joined: dict[PendingKey, PendingClass] = {}
        self.joined: Mapping[PendingKey, PendingClass] = self._joined  # unschedulable, with later tasks
        self._unschedulable_classes = UnschedulableClasses(classes)
        self.count = 0  # tasks in all queues; written here only
        # By profile, of those whose Order ranks groups:
        self._groups: dict[str, GroupIndex] = {
            profile.scheduler_name: {} for profile in profiles if profile.order.traits.ranks_groups
        }
        self.groups: Mapping[str, GroupIndex] = self._groups
        self._serial = 0

    def __iter__(self) -> Iterator[PendingClass]:
        return iter(self._classes.values())

    def __len__(self) -> int:
        """Tasks in all queues."""
        return self.count

    def class_of(self, task: Task) -> PendingClass | None:
        """The pending class of tasks like this one; None if none of them waits, leads of gangs aside."""
        return self._classes.get((task.profile, task.spec, task.workload, None))

    def add(self, task: Task, order: Order, gang: GangKey | None = None) -> Queued:
        """Queue a task that is not queued by its profile's Order. Raises what the Order raises.

        `gang`: whose lead it is.
        """
        self._serial += 1
        group = order.group(task)
        key = tuple(order.key(task, self._serial))
        if task.copy_of:  # behind all first attempts of its priority: a duration or an age is finite
            key = (*key[:1], inf, *key[1:])
        if any(map(isnan, key)):  # nan compares with nothing, so the task would never be found again
            raise ValueError(f"Order.key answered {key}")
        pending_key = (task.profile, task.spec, task.workload, gang)
        pending = self._classes.get(pending_key)
        if pending is None:
            pending = PendingClass(pending_key, self._groups.get(task.profile))
            self._classes[pending_key] = self._active[pending_key] = pending
        queue = pending.add(group, key, self._serial, task)
        if task.profile in self._holding and gang is None:
            self._find_by_data(pending, queue, task)
        if pending.unschedulable_since is not None:
            pending.joined += 1
            self._joined[pending_key] = pending
        elif pending.is_deferred or pending.is_withheld or pending.is_held:
            self.activate(pending)
        self.count += 1
        return Queued(pending, queue, key, self._serial)

    def _find_by_data(self, pending: PendingClass, queue: SortedClassQueue, task: Task) -> None:
        """A task has joined: from the first one with data on, those of its queue are found by their data."""
        if task.inputs and queue.local is None:
            queue.index(self._nodes)
            if pending not in self._with_data:
                self._with_data[pending] = DataClock()
        if queue.is_held:
            pending.let_go(queue)

    def discard(self, queued: Queued) -> None:
        """Remove a task, between two cycles."""
        pending = queued.pending
        self.count -= 1
        pending.discard(queued.queue, queued.key, queued.serial)
        if pending.is_deferred or pending.is_withheld or pending.is_held or not pending.queues:
            self.activate(pending)
        if not pending.queues:
            self._drop(pending)

    def answer(self, pending: PendingClass, queue: SortedClassQueue, serial: int) -> None:
        """A task was taken and waits here no more; `end_cycle` takes it out of its queue."""
        self.count -= 1
        pending.count -= 1
        pending.answered += 1
        queue.answered.add(serial)

    def end_cycle(self, classes: Iterable[PendingClass]) -> None:
        """The scheduling cycle over these classes is over."""
        if not self.count and not self._unschedulable:  # the common case: all that waited is placed
            self._classes.clear()
            self._active.clear()
            self._with_data.clear()
            for groups in self._groups.values():
                groups.clear()
            return
        for pending in classes:
            pending.end_cycle()
            if not pending.queues:
                self.activate(pending)
                self._drop(pending)

    def _drop(self, pending: PendingClass) -> None:
        """The class is active and empty."""
        del self._classes[pending.key], self._active[pending.key]
        self._with_data.pop(pending, None)

    # -- active, deferred and unschedulable classes ------------------------------------------------

    def activate_fitting(self) -> None:
        """Activate the unschedulable classes that have got room by what has changed in the cluster."""
        for key in self._unschedulable_classes.with_room() if self._unschedulable else ():
            for pending in list(self._unschedulable[key].values()):
                self.activate(pending)

    def activate(self, pending: PendingClass) -> None:
        """Its tasks may be placed; no effect on an active class."""
        if pending.key in self._active:
            return
        self._active[pending.key] = pending
        if pending.is_deferred or pending.is_withheld or pending.is_held:
            pending.is_deferred = pending.is_withheld = pending.is_held = False
            return
        if pending.never_feasible:
            self._feasible_again(pending)
        pending.unschedulable_since, pending.never_feasible, pending.message = None, False, ""
        pending.joined = 0
        class_key = pending.class_key
        unfile(self._unschedulable, class_key, pending.key)
        if class_key not in self._unschedulable:
            self._unschedulable_classes.discard(class_key)

    def mark_deferred(self, pending: PendingClass) -> None:
        """An active class is not to be asked about until it is activated."""
        pending.is_deferred = True
        del self._active[pending.key]

    def mark_withheld(self, pending: PendingClass) -> None:
        """The Order withholds all of an active class: it is not to be asked about until it is activated."""
        pending.is_withheld = True
        del self._active[pending.key]

    def mark_held(self, pending: PendingClass) -> None:
        """All queues of an active class are held: it is not to be asked about until it is activated."""
        pending.is_held = True
        del self._active[pending.key]

    def mark_unschedulable(self, pending: PendingClass, now: float, *, never: bool, message: str) -> None:
        """No task of an active class can be placed until the cluster changes.

        `never`: because no node, however empty, may run the class. `message`: the policy's own reason.
        """
        pending.unschedulable_since, pending.never_feasible, pending.message = now, never, message
        pending.is_closed = True
        del self._active[pending.key]
        self._unschedulable.setdefault(pending.class_key, {})[pending.key] = pending
        self._unschedulable_classes.add(pending.class_key)

    def feasible_among(self, class_key: ClassKey, rows: Rows) -> Rows:
        """Those of the rows on which a class may be feasible: of an unschedulable one this is known."""
        return self._unschedulable_classes.feasible_among(class_key, rows)

    def of_class(self, profile: str, class_key: ClassKey) -> Iterator[Task]:
        """The tasks of a profile and class, leads of gangs aside, each class queue in its order; O(tasks)."""
        return iter(self._classes.get((profile, *class_key, None), ()))

    def highest_priority(self, profile: str, class_key: ClassKey) -> float:
        """No pending task of this profile and class has a higher priority; -inf if there is none."""
        pending = self._classes.get((profile, *class_key, None))
        return -inf if pending is None else pending.highest_priority

    def take_joined(self) -> list[tuple[PendingClass, int]]:
        """The unschedulable classes that tasks have joined since the last call, and how many of them wait."""
        taken = []
        for pending in self._joined.values():
            if pending.joined:
                taken.append((pending, min(pending.joined, len(pending))))
                pending.joined = 0
        self._joined.clear()
        return taken

    def unschedulable_since(self, since: float) -> list[PendingClass]:
        """The classes that became unschedulable, or were rechecked, at this time or before; O(classes)."""
        found = (pending for others in self._unschedulable.values() for pending in others.values())
        return [pending for pending in found if (pending.unschedulable_since or 0.0) <= since]
