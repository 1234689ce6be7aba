"""One scheduling cycle of one profile: the Order names class queues, their heads are offered to Place.

What one step asks and places is bounded. A class that is asked about for the first time costs O(nodes),
about a millisecond on 5,000, so the more nodes there are the fewer classes a step asks about. After a start
or a change of leader thousands of classes may be pending, and as many may have been waiting for a node that
has come. In one step they would cost more seconds than a Lease lasts. So a step asks about a bounded number
of classes and places a bounded number of tasks, as they come in the Order's order, and the next step goes on
in that order with what is left of the same classes. A class with rules about other pods costs more the more
different pods there are on nodes, so it asks about fewer of these. All are counts and no times, so equal
events give equal commands. A class that comes while a cycle goes on belongs to the next cycle.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from eclectus.accounts.pools import Limit
from eclectus.cluster.nodes import Cluster
from eclectus.engine.queues.class_queues import ClassQueues, PendingClass, PendingKey, SortedClassQueue
from eclectus.engine.queues.cycle_order import CycleOrder, Found, PathCycleOrder, accounts_of
from eclectus.engine.state import State
from eclectus.framework import ClassQueue, PendingTasks, Profile, Wait
from eclectus.model.objects import Grant, Task

CLASSES_MOST = 256  # classes in one step that are asked about for the first time
EVALUATED_MOST = 600_000  # nodes that these are compared with, in all: a tenth of a second
# Of different pods on nodes with what a rule about other pods asks for, by one profile in one step, before
# the next class is asked about: a tenth of a second.
COMPARISONS_MOST = 30_000
TASKS_MOST = 2_000  # tasks that leave their queues in one step: half a second likewise
RANKS_OF_TASK = 16  # of an Order, that answers have changed: so many cost what a task costs


class Allowance(Struct, frozen=True, gc=False):
    """What the cycle of one profile may still do in this step."""

    tasks: int  # that leave their queues
    classes: int  # that are asked about for the first time in the cycle
    cycle: int  # the serial of the cycle
    is_resumed: bool = False  # whether an earlier step has begun the cycle


class CycleSlices:
    """The classes of a cycle with tasks that are still to be offered.

    `is_cut`: the cycle began in an earlier step, or goes on in a later one.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes, self._classes_most = (
            -1,
            0,
        )  # the nodes, and the classes that a step on so many asks about
        self._left: list[PendingClass] = []
        self._serial = 0  # of the cycle
        self._tasks_left = 0  # that may still leave their queues in this step
        self._classes_left = 0  # that may still be asked about in this step for the first time
        self._is_resumed = False
        self.is_cut = False

    def __bool__(self) -> bool:
        """Whether a cycle goes on in the next step."""
        return bool(self._left)

    @property
    def allowance(self) -> Allowance:
        """What the next profile may still do in this step."""
        return Allowance(self._tasks_left, self._classes_left, self._serial, self._is_resumed)

    def begin(self, active: Iterable[PendingClass]) -> None:
        """Begin a new cycle over these classes."""
        self._left = list(active)
        self._serial += 1
        self.is_cut = False

    def take(self, active: Mapping[PendingKey, PendingClass]) -> list[PendingClass]:
        """Begin a step; returns the classes that are left of the cycle and still active."""
        if self._nodes != len(self._cluster):
            self._nodes = len(self._cluster)
            self._classes_most = self._cluster.classes_within(EVALUATED_MOST, CLASSES_MOST)
        self._tasks_left, self._classes_left = TASKS_MOST, self._classes_most
        self._is_resumed = self.is_cut
        taken, self._left = self._left, []
        return [each for each in taken if active.get(each.key) is each] if self.is_cut else taken

    def count(self, tasks: int, classes: int) -> None:
        """Count tasks that have left their queues, and classes that were asked about."""
        self._tasks_left -= tasks
        self._classes_left -= classes

    def put_back(self, classes: Iterable[PendingClass]) -> None:
        """Leave these classes, which have tasks that were not offered, to the next step."""
        self._left += classes
        self.is_cut = self.is_cut or bool(self._left)

    def end_slice(self, classes: Iterable[PendingClass]) -> None:
        """Note of the classes of a cycle that is cut which of their tasks it has considered."""
        for pending in classes:
            pending.asked_version = pending.version


class Offered(Struct, frozen=True, gc=False):
    """A task that was taken from its queue."""

    task: Task
    pending: PendingClass
    queue: SortedClassQueue
    serial: int


class SchedulingCycle(PendingTasks):
    """The iterator over pending tasks that a Place policy pulls from.

    Each task is offered once a cycle. An Order that fails ends the cycle. Where the allowance is used up, no
    more tasks are offered one by one, and no more class queues; a policy that takes all tasks of a queue with
    `take` gets them all. The lead of a gang is not offered: where it is next, the policy gets no more tasks
    until `take_gang` has been called.
    `offered`: uid -> where the task stands that is offered and not answered yet.
    Attributes of the class are values with which a cycle begins: nearly every task has a cycle of its own.
    """

    _order: CycleOrder | None = None
    _only: Found | None = None
    _has_failed = False
    _is_cut = False  # before a class that the allowance does not cover
    removed = 0  # tasks that have left their queues; other work counts as tasks
    asked = 0  # classes that this cycle was the first to ask about

    def __init__(
        self,
        profile: Profile,
        state: State,
        classes: Sequence[PendingClass],
        allowance: Allowance,
        queues: ClassQueues | None = None,
    ) -> None:
        """`queues`: those of the classes, if they are not the engine's."""
        self.profile = profile
        self._state = state
        self._classes = classes
        self._queues = state.class_queues if queues is None else queues
        self._gangs: list[Found] = []  # whose turn has come
        self._allowance = allowance
        self._is_resumed = allowance.is_resumed
        self._compared_most = state.cluster.pods.compared + COMPARISONS_MOST
        # A single queue: the Order need not be asked.
        first = classes[0]
        is_single = len(classes) == 1 and len(first.queues) == 1 and first.gang is None
        traits = profile.order.traits
        is_single = is_single and not traits.withholds and "pools" not in traits.needs
        if is_single:
            (queue,) = first.queues.values()
            self._only = (first, queue) if queue.local is None else None
        self._given: dict[SortedClassQueue, PendingClass] = {}  # what `queues` has given
        self.offered: dict[str, Offered] = {}

    def __iter__(self) -> Iterator[Task]:
        return iter(self._next_task, None)  # ends without the cost of an exception

    def __next__(self) -> Task:
        task = self._next_task()
        if task is None:
            raise StopIteration
        return task

    @property
    def is_cut(self) -> bool:
        """Whether the allowance is used up."""
        return self._is_cut or self.removed >= self._allowance.tasks

    def _next_task(self) -> Task | None:
        if self._is_cut or self.removed >= self._allowance.tasks:
            return None
        while (found := self._only or self._next_queue()) is not None:
            pending, queue = found
            if pending.asked_in != self._allowance.cycle and not self._covers(pending):
                return None
            if pending.gang is not None:
                self._gangs.append(found)
                return None
            if pending.to_skip:
                pending.skip_in(queue)
                continue
            task = self._offer_head(pending, queue)
            if task is not None or self._only is not None:
                return task
        return None

    def _covers(self, pending: PendingClass) -> bool:
        """Whether the allowance has this class, which is next; if not, the cycle is cut before it."""
        if pending.asked_in == self._allowance.cycle:
            return True
        has_compared = self.asked and self._state.cluster.pods.compared >= self._compared_most
        if has_compared or self.asked >= self._allowance.classes:
            self._is_cut = True
            return False
        self.asked += 1
        pending.asked_in = self._allowance.cycle
        return True

    def _offer_head(self, pending: PendingClass, queue: SortedClassQueue) -> Task | None:
        """Take the head of a queue; where the cycle was cut, the first that was not deferred before that."""
        if queue.local is not None:
            return self._offer_near(pending, queue)
        while (entry := pending.take(queue)) is not None:
            _, serial, task = entry
            if task.pool and (limit := self._state.pools.limit_on(task)) is not None:
                self._hold_back(Offered(task, pending, queue, serial), limit)
                continue
            if not self._is_resumed or task.uid not in pending.waits:
                self.offered[task.uid] = Offered(task, pending, queue, serial)
                return task
        return None

    def _offer_near(self, pending: PendingClass, queue: SortedClassQueue) -> Task | None:
        """Take the task of a queue that has its data where there is room, or none: then the queue is held."""
        state = self._state
        while (offer := state.held.next(state.view, pending, queue)) is not None:
            entry, rows = offer
            pending.take_out_of_order(queue, entry)
            _, serial, task = entry
            if task.pool and (limit := state.pools.limit_on(task)) is not None:
                self._hold_back(Offered(task, pending, queue, serial), limit)
                continue
            if not self._is_resumed or task.uid not in pending.waits:
                if rows is not None:
                    state.held.narrow(state.view, task, rows)
                self.offered[task.uid] = Offered(task, pending, queue, serial)
                return task
        return None

    def queues(self) -> Iterator[ClassQueue]:
        """Every class queue with tasks left, in the order of their heads."""
        if self._only is not None:
            self._given[self._only[1]] = self._only[0]
            yield self._only[1]
            return
        while (found := self._next_queue(again=False)) is not None and self._covers(found[0]):
            if found[0].gang is None:
                self._given[found[1]] = found[0]
                yield found[1]
            else:
                self._gangs.append(found)

    def take(self, queue: ClassQueue) -> Task | None:
        """Offer the head of a class queue."""
        if not isinstance(queue, SortedClassQueue) or queue not in self._given:
            return None
        return self._offer_head(self._given[queue], queue)

    def take_gang(self) -> Offered | None:
        """Take the lead of the gang whose turn it is from its queue; None if it is no gang's turn."""
        while self._gangs and not self.is_cut:
            pending, queue = self._gangs.pop(0)
            entry = pending.take(queue)
            if entry is not None:
                return Offered(entry[2], pending, queue, entry[1])
        return None

    def count_classes(self, more: int) -> None:
        """So many classes are asked about beside the one whose turn it is; one too many ends the step."""
        self.asked += more
        self._is_cut = self._is_cut or self.asked > self._allowance.classes

    def skip(self, task: Task, most: int) -> int:
        """Do not offer the next tasks of this task's class in this cycle.

        Where tasks are held for their data none is skipped: what is said of one need not hold for the next.
        """
        if self.profile.hold.traits.waits:
            return 0
        pending = self._queues.class_of(task)
        return pending.skip(most) if pending is not None else 0

    def left(self, task: Task) -> int:
        """How many tasks of this task's class are still to be offered in this cycle."""
        pending = self._queues.class_of(task)
        return 0 if pending is None else pending.to_offer

    # -- answers ---------------------------------------------------------------------------------

    def remove(self, task: Task) -> None:
        """The task was answered and leaves its class queue."""
        answered = self.offered.pop(task.uid)
        if self._state.held.narrowed:
            self._state.held.narrowed.pop(task.uid, None)
        self.removed += 1
        self._queues.answer(answered.pending, answered.queue, answered.serial)
        if self._state.deferrals.since:
            self._state.deferrals.discard(task.uid)

    def place(self, task: Task, row: int, grant: Grant) -> None:
        """The task is bound to the node of this row, unless its pool has got full since it was offered."""
        limit = self._state.pools.limit_on(task) if task.pool else None
        if limit is not None:
            self._hold_back(self.offered.pop(task.uid), limit)
            return
        queue, pending = self.offered[task.uid].queue, self.offered[task.uid].pending
        self.remove(task)
        if queue.local is not None:
            self._state.held.launch(pending, queue, task, row)
        volumes = self._state.volumes
        if task.uid in volumes.waiting:
            evaluated = volumes.reaches.evaluated
            self._state.bind(task, row, grant)
            self.removed += volumes.reaches.evaluated - evaluated
        else:
            self._state.bind(task, row, grant)

    def _hold_back(self, held: Offered, limit: Limit) -> None:
        """A limit of its pool keeps the task from starting: it leaves its class queue."""
        self.removed += 1
        self._queues.answer(held.pending, held.queue, held.serial)
        self._state.hold_back(held.task, limit)

    def defer(self, task: Task, wait: Wait) -> None:
        """The task waits, for a node or for none: it stays in its class queue, whose class stays active."""
        state, pending = self._state, self.offered.pop(task.uid).pending
        state.held.narrowed.pop(task.uid, None)
        state.class_queues.activate(pending)
        state.deferrals.add(task, wait, state.now)
        pending.waits[task.uid] = wait

    def fail(self, task: Task, message: str) -> None:
        """A policy failed on the task: it backs off."""
        self.remove(task)
        self._state.back_off(task, "SchedulerError", message)

    def mark_unschedulable(self, task: Task, message: str) -> None:
        """No node for the task's class now: the whole class is unschedulable until the cluster changes.

        Of a task that was offered for some nodes only, this is said of those.
        """
        state, pending = self._state, self.offered.pop(task.uid).pending
        if (narrowed := state.held.narrowed.pop(task.uid, None)) is not None:
            state.held.refuse(state.view, pending, task, narrowed)
            return
        if pending.unschedulable_since is not None:
            return  # an earlier task of this cycle has marked it: a policy may answer each
        never_feasible = not state.view.task_class(task).feasible_count
        if never_feasible:
            for waiting in pending:
                state.reports.expedite(waiting.uid, state.now)
            state.unplaceable(pending.left())
        state.class_queues.mark_unschedulable(pending, state.now, never=never_feasible, message=message)
        state.count_attempts("unschedulable", task.profile, len(pending))
        state.refused(pending.profile, pending.class_key)

    # -- order -----------------------------------------------------------------------------------

    def _next_queue(self, *, again: bool = True) -> Found | None:
        if self._has_failed:
            return None
        order, state = self.profile.order, self._state
        try:
            if self._order is None:
                groups = self._queues.groups.get(self.profile.scheduler_name)
                kind = PathCycleOrder if order.traits.ranks_prefixes else CycleOrder
                accounts = accounts_of(order, state.view)
                self._order = kind(order, state.view, self._classes, groups, accounts)
            before = self._order.ranked // RANKS_OF_TASK
            found = self._order.next(again=again)
            self.removed += self._order.ranked // RANKS_OF_TASK - before
            return found
        except Exception as error:  # a plug-in's defect must not stop the others
            state.fault(order, f"{type(error).__name__}: {error}")
            self._has_failed = True
            return None
