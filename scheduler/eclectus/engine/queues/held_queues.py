"""Class queues that wait for nodes with their data, and when they are asked about again.

A queue is *held* where its Hold policy lets its tasks go no further than to nodes that have no room. Then it
takes no part in scheduling cycles until

- a node within its reach gets room, which is found by the node's name and labels;
- it has waited for so long, or so many nodes were passed over, that its tasks may go further;
- a task joins it;
- nodes come, go or change their labels, or pools may claim what they might not before.

A class of which all queues are held is *held* itself and costs a few vector operations in a step, however
many queues it has; so only `CLASSES_MOST` classes of a namespace wait, and pods of others take any node. A
class with no queue that is held costs nothing.

Where no node has room for a held class any more, one of its queues is asked about, and the class is refused
like others: so other pods may make room, and an autoscaler learns of it.

The clock of a class runs from the end of a step to the next while a node has room for it. So what its queues
have waited is time in which room was unused for them. Nothing of it is persisted: after a restart they begin
again, and wait as long once more at most.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Any

import numpy as np

from eclectus.cluster.locality import ANYWHERE, beside, domain_of, domains_of, level_of, names_of
from eclectus.cluster.nodes import Cluster
from eclectus.engine.counters import DataCounters
from eclectus.engine.queues.class_queues import ClassQueues, PendingClass, SortedClassQueue
from eclectus.engine.queues.data_clocks import DataClock, QueueClock
from eclectus.engine.queues.hot_data import HotData, most_waited_for
from eclectus.engine.queues.local_tasks import Entry
from eclectus.engine.queues.near_slots import NearSlots
from eclectus.feasibility.task_class import NarrowedClass, TaskClass
from eclectus.framework import Hold, Profile, Reach, Reason, Rows, View, Wait, Waited
from eclectus.maths.data_gain import DataGains
from eclectus.model.commands import Warn
from eclectus.model.objects import Task

LEAST_SECONDS = 0.001  # between two steps for the sake of a queue
NAMES_MOST = 5  # of nodes, in a message
CLASSES_MOST = 100  # of a namespace, with queues that are held: each looks at all nodes in a step
Offer = tuple[Entry, Rows | None]
"""A task of a queue, and the rows for which it is offered; None: all."""


class HeldQueues:
    """Which tasks with data are offered for which nodes, and which queues are held.

    `narrowed`: uid -> the class of a task that is offered for some nodes only, on these. `followed`: classes
    that are looked at in each step. `gains`: whether waiting pays, as ends of tasks say; `near_slots`: and as
    what runs near the data says.
    """

    def __init__(
        self,
        class_queues: ClassQueues,
        profiles: Mapping[str, Profile],
        cluster: Cluster,
        guarded: Callable[..., Any],
        resolved: Callable[[Task], Task],
        *,
        counters: DataCounters,
        near_slots: NearSlots,
    ) -> None:
        """`guarded`: calls a plug-in, whose failure is its Fault.

        `resolved`: a task, with the nodes that its data sets are on now.
        """
        self._class_queues = class_queues
        self._holds: Mapping[str, Hold] = {name: each.hold for name, each in profiles.items()}
        self._prices = {name for name, each in profiles.items() if each.place.traits.prices_data}
        # By profile, the labels that tell apart how far data are: one of the two policies has any.
        self._levels = {
            name: each.hold.traits.levels or each.place.traits.data_levels for name, each in profiles.items()
        }
        self._cluster = cluster
        self._guarded = guarded
        self._resolved = resolved
        self._counters = counters
        self.near_slots = near_slots
        self._hot_data = HotData(cluster)
        self.narrowed: dict[str, NarrowedClass] = {}
        self.gains = DataGains()
        # Classes with held queues, or with rows that were refused, and the namespace whose they are.
        self._followed: dict[PendingClass, str] = {}
        self.followed: Mapping[PendingClass, str] = self._followed
        self._in_namespace = Counter[str]()
        self._has_refused = False  # whether a task is to be offered for other nodes in the next step
        self.next_until = inf  # when a queue is to be asked about again, seconds; written here only

    # -- before and after the cycles of a step -----------------------------------------------------

    def begin_step(self, view: View) -> None:
        """Let go of the queues of which a task may start now."""
        self.near_slots.begin_step()
        for pending, clock in self._clocks():
            clock.advance(view.now)
            if clock.cursors != self._heads:
                self._see_changes(view, pending, clock)
            for queue in clock.take_due():
                self._let_go(pending, queue)

    def end_step(self, view: View) -> None:
        """Note which classes are held, and whose clocks run."""
        self.narrowed.clear()
        self.next_until = inf
        for pending, clock in self._clocks():
            if clock.cursors != self._heads:
                clock.fits = view.classes.current(*pending.class_key).fits_now.copy()
                clock.cursors = self._heads
            clock.offers += clock.new_offers
            clock.new_offers = 0
            if not (pending.held or clock.refused):
                clock.run(view.now, runs=False)
                self._unfollow(pending)
                continue
            has_room = bool(clock.fits.any())
            clock.run(view.now, runs=has_room and pending.held > 0)
            self.next_until = min(self.next_until, clock.next_due(view.now))
            if pending.held and pending.held == len(pending.queues) and not pending.waits:
                self._hold_class(pending, view.now, has_room=has_room)
        if self._has_refused:
            self._has_refused, self.next_until = False, view.now
        self.next_until = max(self.next_until, view.now + LEAST_SECONDS)

    def hot_spots(self, now: float) -> list[Warn]:
        """What is to be said of data sets for which many pods wait; once a window, when a step has ended."""
        return self._hot_data.end_window(self._held(), now) if now >= self._hot_data.window_ends else []

    def most_waited_for(self, most: int) -> list[tuple[str, int]]:
        """The nodes for which most of the held pods wait, and how many do."""
        return most_waited_for(self._cluster, self._held(), most)

    def _held(self) -> list[list[Entry]]:
        """The tasks of the queues that are held."""
        return [
            queue.entries
            for pending in self._followed
            if pending.held
            for queue in pending.queues.values()
            if queue.is_held
        ]

    def let_go_all(self, now: float) -> None:
        """Ask about all queues in the next step: pools may claim what they might not before."""
        for pending in self._followed:
            self._let_go_of(pending)
            self.next_until = now

    def _clocks(self) -> list[tuple[PendingClass, DataClock]]:
        """Of the classes that are followed and still there."""
        clocks, found = self._class_queues.with_data, list[tuple[PendingClass, DataClock]]()
        for pending in list(self._followed):
            if (clock := clocks.get(pending)) is None:
                self._unfollow(pending)
            else:
                found.append((pending, clock))
        return found

    def _follow(self, view: View, pending: PendingClass, namespace: str) -> None:
        if pending not in self._followed:
            self._followed[pending] = namespace
            self._in_namespace[namespace] += 1
            self._new_rows(view, pending, self._class_queues.with_data[pending])

    def _new_rows(self, view: View, pending: PendingClass, clock: DataClock) -> Rows:
        """The rows that have got room for a class since the last step in which it was followed."""
        fits = view.classes.current(*pending.class_key).fits_now
        before = np.zeros_like(fits)
        before[: len(clock.fits)] = clock.fits
        new = np.flatnonzero(fits & ~before)
        clock.new_offers = len(new)
        return new

    def _unfollow(self, pending: PendingClass) -> None:
        namespace = self._followed.pop(pending)
        self._in_namespace[namespace] -= 1
        if not self._in_namespace[namespace]:
            del self._in_namespace[namespace]

    @property
    def _heads(self) -> tuple[int, int]:
        return self._cluster.usage.head, self._cluster.shape.head

    def _see_changes(self, view: View, pending: PendingClass, clock: DataClock) -> None:
        """Nodes have changed since the last step has ended."""
        new = self._new_rows(view, pending, clock)
        clock.refused.clear()
        if clock.cursors[1] != self._cluster.shape.head:
            self._let_go_of(pending)
            return
        levels = self._keys(pending)
        for row in new.tolist() if pending.held else ():
            for level in range(len(levels) + 1):
                domain = domain_of(self._cluster, row, levels, level)
                for queue in clock.waiting.pop(domain, ()) if domain is not None else ():
                    self._let_go(pending, queue)

    def _hold_class(self, pending: PendingClass, now: float, *, has_room: bool) -> None:
        if not has_room:
            self._let_go(pending, next(iter(pending.queues.values())))
            self.next_until = now
        elif pending.key in self._class_queues.active:
            self._class_queues.mark_held(pending)

    def _let_go_of(self, pending: PendingClass) -> None:
        for queue in pending.queues.values() if pending.held else ():
            self._let_go(pending, queue)

    def _let_go(self, pending: PendingClass, queue: object) -> None:
        if isinstance(queue, SortedClassQueue) and pending.queues.get(queue.group) is queue:
            pending.let_go(queue)
            if pending.is_held:
                self._class_queues.activate(pending)

    # -- in a cycle --------------------------------------------------------------------------------

    def next(self, view: View, pending: PendingClass, queue: SortedClassQueue) -> Offer | None:
        """The task of a queue with data that is next, and where; None, and the queue is held, if none is.

        Where no node has room the head is next, and is refused with its class.
        """
        if pending.is_closed or queue.local is None or queue.head is None:
            return None
        task_class, head = view.classes.current(*pending.class_key), queue.entries[queue.cursor]
        if not task_class.fits_now_count:
            return head, None
        anywhere = queue.local.first_anywhere(queue.begin)
        near = self._first_near(pending, queue, task_class, 0)
        if anywhere is not None and (near is None or anywhere[:2] < near[0][:2]):
            return anywhere, None
        if pending.profile in self._prices:  # its Place weighs the others, which have their data elsewhere
            for level in range(1, len(self._keys(pending)) + 1) if near is None else ():
                if (near := self._first_near(pending, queue, task_class, level)) is not None:
                    break
            return (head if near is None else near[0]), None
        return near or self._farther(view, pending, queue, task_class)

    def _farther(
        self, view: View, pending: PendingClass, queue: SortedClassQueue, task_class: TaskClass
    ) -> Offer | None:
        """The same where no node with room has data of a task."""
        head = queue.entries[queue.cursor]
        reach, last = self._reach(view, pending, queue, head[2]), len(self._keys(pending)) + 1
        for level in range(1, min(reach.level + 1, last)):
            if (near := self._first_near(pending, queue, task_class, level)) is not None:
                return near
        namespace = head[2].namespace
        is_one_more = pending not in self._followed and self._in_namespace[namespace] >= CLASSES_MOST
        if reach.level >= last or is_one_more:
            return head, None
        self._follow(view, pending, namespace)
        self.near_slots.hold(namespace)
        self._hold(pending, queue, reach)
        return None

    def narrow(self, view: View, task: Task, rows: Rows) -> None:
        """The task is offered for these rows alone."""
        self.narrowed[task.uid] = NarrowedClass(view.classes.current(task.spec, task.workload), rows)

    def refuse(self, view: View, pending: PendingClass, task: Task, refused: NarrowedClass) -> None:
        """The rows for which a task was offered do not do: until a node changes they are as good as full."""
        self._follow(view, pending, task.namespace)
        self._class_queues.with_data[pending].refused.update(refused.rows.tolist())
        self._has_refused = True

    def launch(self, pending: PendingClass, queue: SortedClassQueue, task: Task, row: int) -> None:
        """A task of the queue starts on this row."""
        level = level_of(self._cluster, task, row, self._keys(pending))
        if level is None:
            return
        hold, clock, keys = self._holds[pending.profile], self._clock_of(pending, queue), self._keys(pending)
        waited, name = clock.now(len(queue)), ("node", *keys, ANYWHERE)[level]
        if level and self._is_slower_elsewhere(task):
            self._hot_data.start_elsewhere(task)
        if not task.spec.long_running:
            self.gains.start(task.namespace, task.workload, is_far=level > 0)
        self._counters.starts[name] += 1
        self._counters.bytes[name] += sum(each.size for each in task.inputs)
        seconds = self._counters.wait_seconds
        seconds[name] = seconds.get(name, 0.0) + waited.seconds
        clock.begin(self._guarded(hold, hold.launched, waited, level, failed=Waited(level)))

    def _is_slower_elsewhere(self, task: Task) -> bool:
        """Whether such a task takes longer away from its data, as far as is known."""
        gain = self.gains.of(task.namespace, task.workload)
        saved = None if gain is None else gain.saved_seconds
        return saved is None or saved > 0.0

    def ended(self, task: Task, row: int, seconds: float, speed: Callable[[], float]) -> None:
        """A task with data has run on this row to its end, for so many seconds, above 0.

        `speed`: of the node for such work, relative to others, above 0; asked for where data matter. What is
        learned is how long it would have run on a typical node: where speeds differ, far tasks are on other
        nodes than near ones.
        """
        level = self._level_of(task, row)
        if level is not None:
            at_mean, name = seconds * speed(), self._priced_level(task, level)
            self.gains.end(task.namespace, task.workload, at_mean, is_far=level > 0, level=name)

    def times(self, task: Task, row: int) -> float:
        """How many times as long as at its data a task takes on this row, as far as is known."""
        level = self._level_of(task, row)
        gain = self.gains.of(task.namespace, task.workload) if level else None
        return 1.0 if gain is None or level is None else gain.times(self._priced_level(task, level) or "")

    def _level_of(self, task: Task, row: int) -> int | None:
        """How near a row is to the data of a task; None where these matter to no policy."""
        hold = self._holds.get(task.profile)
        if hold is None or not (hold.traits.waits or task.profile in self._prices):
            return None
        return level_of(self._cluster, self._resolved(task), row, self._levels[task.profile])

    def _priced_level(self, task: Task, level: int) -> str | None:
        """The name of a level above 0, where a Place tells levels apart; else None."""
        keys = self._levels[task.profile]
        if not (level and keys and task.profile in self._prices):
            return None
        return (*keys, ANYWHERE)[level - 1]

    def why(self, profile: str, queue: SortedClassQueue, task: Task, now: float) -> Wait | None:
        """For what nodes a task of a held queue waits, and until when; None if the queue is not held."""
        if not queue.is_held or queue.waited is None:
            return None
        reach, near = queue.waited.reach, self.label_of(profile, queue.waited)
        where = f"a node with the {near} of one with its data" if near else "a node with its data"
        named, most = ", ".join(self.known_nodes(task)), rounded(reach.seconds)
        why = f"; {elsewhere}" if (elsewhere := self.elsewhere(task)) else ""
        said = f"waiting for {where} ({named}), up to {most} s while other nodes have room{why}"
        return Wait(Reason(said), until=queue.waited.widens_at(now))

    def known_nodes(self, task: Task) -> list[str]:
        """Some of the nodes with the data of a task; `...` for others."""
        known = [name for name in names_of(task.inputs) if name in self._cluster.rows]
        return known[:NAMES_MOST] + ["..."] * (len(known) > NAMES_MOST)

    def label_of(self, profile: str, waited: QueueClock) -> str:
        """The label that a node must have in common with one with the data; empty for such a node itself."""
        level = waited.reach.level
        return self._levels[profile][level - 1] if level else ""

    def elsewhere(self, task: Task) -> str:
        """How many times as long such tasks take away from their data; empty if that is not known."""
        gain = self.gains.of(task.namespace, task.workload)
        ratio = None if gain is None else gain.ratio
        return "" if ratio is None else f"elsewhere such pods take at least {ratio:.3g} times as long"

    def _keys(self, pending: PendingClass) -> tuple[str, ...]:
        return self._levels[pending.profile]

    def _clock_of(self, pending: PendingClass, queue: SortedClassQueue) -> QueueClock:
        if queue.waited is None:
            queue.waited = QueueClock(self._class_queues.with_data[pending])
        return queue.waited

    def _reach(self, view: View, pending: PendingClass, queue: SortedClassQueue, head: Task) -> Reach:
        """How far the tasks of the queue may go; anywhere where the policy fails."""
        hold, waited = self._holds[pending.profile], self._clock_of(pending, queue).now(len(queue))
        anywhere = Reach(len(self._keys(pending)) + 1)
        found = self._guarded(hold, partial(_asked, hold, view, head, waited), failed=anywhere)
        return found if isinstance(found, Reach) else anywhere

    def _hold(self, pending: PendingClass, queue: SortedClassQueue, reach: Reach) -> None:
        clock, keys = self._class_queues.with_data[pending], self._keys(pending)
        self._clock_of(pending, queue).expect(queue, reach)
        names = () if queue.local is None else tuple(queue.local.by_node)
        for name in names:
            clock.waiting.setdefault(("", name), {})[queue] = None
        for level in range(1, reach.level + 1):
            for domain in domains_of(self._cluster, names, keys, level):
                clock.waiting.setdefault(domain, {})[queue] = None
        pending.hold(queue)

    def _first_near(
        self, pending: PendingClass, queue: SortedClassQueue, task_class: TaskClass, level: int
    ) -> Offer | None:
        """The first task with data at this level of a node with room, and the rows that are so near to it."""
        if queue.local is None:
            return None
        cluster, key, by_node = self._cluster, ("", *self._keys(pending))[level], queue.local.by_node
        fits, rows = task_class.fits_now, task_class.fits_now_rows
        if refused := self._class_queues.with_data[pending].refused:
            fits = fits.copy()
            fits[list(refused)] = False
            rows = np.flatnonzero(fits)
        if not level and len(rows) < len(by_node):
            names = (cluster.names[row] for row in rows.tolist())
        else:
            do = beside(cluster, rows, key) if level else fits
            known = ((name, cluster.rows.get(name)) for name in by_node)
            names = (name for name, row in known if row is not None and do[row])
        first = queue.local.first_of(names, queue.begin)
        if first is None:
            return None
        where = names_of(first[2].inputs)
        if not level:
            found = sorted({cluster.rows[name] for name in where if name in cluster.rows})
            return first, np.array([row for row in found if fits[row]], dtype=np.intp)
        having = np.array([cluster.rows[name] for name in where if name in cluster.rows], dtype=np.intp)
        return first, rows[beside(cluster, having, key)[rows]]


def rounded(seconds: float) -> str:
    """To tenths, and from 100 s on to whole seconds."""
    return f"{seconds:.0f}" if seconds >= 100.0 else f"{seconds:.1f}".removesuffix(".0")


def _asked(hold: Hold, view: View, head: Task, waited: Waited) -> Reach:
    """Its answer, in plain numbers; raises what the policy raises, or what such an answer makes it raise."""
    level, seconds, offers = hold.reach(view, head, waited)
    return Reach(int(level), float(seconds), float(offers))
