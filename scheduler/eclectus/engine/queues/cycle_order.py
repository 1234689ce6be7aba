"""Which class queue is next in one scheduling cycle: the group of least rank, in it the queue of least key.

Each active class keeps its queues in a heap that follows changes (head_heap.py). The least of their entries
is a lower bound for every group not met yet, because a group's rank is that of the first of its queues. So a
cycle costs what it offers and what has changed, not how many groups wait.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from typing_extensions import override

from eclectus.accounts.group_shares import prefixes
from eclectus.cluster.changelog import ChangeLog
from eclectus.engine.queues.class_queues import HELD, GroupIndex, PendingClass, SortedClassQueue
from eclectus.engine.queues.head_heap import PathHeap, RankedHeads, Value
from eclectus.framework import Order, Reason, View, Wait

Found = tuple[PendingClass, SortedClassQueue]
_Heap = list[tuple[tuple[float, ...], int, PendingClass, SortedClassQueue]]
"""The queues of one group: key of the head, serial of the queue, class, queue."""


class CycleOrder:
    """The class queues of one profile in the Order's order. Every method may raise what the Order raises.

    `ranked`: how many ranks the Order was asked for because an answer may have changed them.
    """

    def __init__(
        self,
        order: Order,
        view: View,
        classes: Iterable[PendingClass],
        groups: GroupIndex | None,
        accounts: Sequence[ChangeLog[str]],
    ) -> None:
        """`groups`: None if all are equal. `accounts`: tell which groups' ranks may have changed."""
        self._order = order
        self._view = view
        self._groups = groups
        self._accounts = accounts
        self._classes = dict.fromkeys(classes)
        self._known: dict[PendingClass, RankedHeads[SortedClassQueue]] = {}  # with the view of this step
        # Rank, key of the head, serial of the queue; then False, the serial of the entry and a class and its
        # queue, for a queue of a group not met yet; or True, the serial and a group that was met.
        self._heap: list[tuple[Any, ...]] = []
        self._serial = self.ranked = 0  # serial of entries
        self._met: dict[str, _Heap] = {}
        self._valid: dict[str, int] = {}  # of each group that was met: the serial of its last entry
        # Where an answer may change the rank of other groups than its own:
        self._met_below: dict[str, list[str]] = {}  # by prefix
        self._cursors = [log.head for log in accounts]
        self._last: tuple[str, PendingClass, SortedClassQueue, bool] | None = None
        if groups is None:
            self._meet("", ((each, queue) for each in self._classes for queue in each.queues.values()))
            return
        for pending in self._classes:
            ranks = self._ranks(pending)
            if order.traits.ranks_by_time:
                ranks.touch_all()
            ranks.touch_due(view.now)
            ranks.refresh()
            self._push_next_of(pending)

    def next(self, *, again: bool = True) -> Found | None:
        """The class queue whose head is next; None when there is none.

        The answer to the last head is in force by then. `again`: the queue takes part again afterwards.
        """
        self._put_back()
        if self._order.traits.ranks_by_path:
            self._follow_changes()
        while self._heap:
            *_, is_met, serial, found = heappop(self._heap)
            if is_met and serial != self._valid[found]:
                continue  # its rank has changed since
            if not is_met:
                pending, queue = found
                self._push_next_of(pending)
                if queue.group not in self._met:
                    self._meet(queue.group, self._queues_of(queue.group))
                continue
            _, _, pending, queue = heappop(self._met[found])
            self._last = found, pending, queue, again
            if not pending.is_closed:
                return pending, queue
            self._put_back()
        return None

    def _put_back(self) -> None:
        """The group of the last answer takes part again, with the head that it has now."""
        if self._last is not None:
            group, pending, queue, again = self._last
            self._last = None
            if again and not (pending.is_closed or queue.is_held) and queue.head is not None:
                heappush(self._met[group], (queue.head_key, queue.serial, pending, queue))
            self._push_group(group)

    def _follow_changes(self) -> None:
        """Groups whose rank the last answer has changed take part with the rank of now."""
        changed = self._changed()
        if not changed:
            return
        for pending in self._classes:
            if not pending.is_closed and (asked := self._ranks(pending).refresh_changed()):
                self.ranked += asked
                self._push_next_of(pending)
        self._follow_met(changed)

    def _follow_met(self, changed: Iterable[str]) -> None:
        """These groups and prefixes have changed: groups that were met take part with the rank of now."""
        for group in {each: None for name in changed for each in (name, *self._met_below.get(name, ()))}:
            if group in self._met:
                self.ranked += 1
                self._push_group(group)

    def _changed(self) -> Iterable[str]:
        """The groups and prefixes that the accounts say have changed since the last call."""
        self._order.changes(self._view)
        changed = dict[str, None]()
        for at, log in enumerate(self._accounts):
            if log.head != self._cursors[at]:
                entries = log.since(self._cursors[at])
                self._cursors[at] = log.head
                changed.update(dict.fromkeys(self._met if entries is None else entries))
        return changed

    # -- groups that were met ----------------------------------------------------------------------

    def _meet(self, group: str, queues: Iterable[Found]) -> None:
        self._met[group] = _by_key(queues)
        if self._order.traits.ranks_by_path:
            for prefix in prefixes(group):
                self._met_below.setdefault(prefix, []).append(group)
        self._push_group(group)

    def _queues_of(self, group: str) -> Iterable[Found]:
        """The queues of a group in the classes of this cycle, refused ones included: each counts in turn."""
        found = (self._groups or {}).get(group, {})
        if len(found) < len(self._classes):
            return ((pending, queue) for pending, queue in found.items() if pending in self._classes)
        return (
            (pending, queue) for pending in self._classes if (queue := pending.queues.get(group)) is not None
        )

    def _push_group(self, group: str) -> None:
        heap = self._met[group]
        self._serial += 1
        self._valid[group] = self._serial
        if heap:
            value = value_of_head(self._order, self._view, heap[0][-1])
            if not isinstance(value, Wait):
                heappush(self._heap, (*value, True, self._serial, group))

    # -- classes -----------------------------------------------------------------------------------

    def _ranks(self, pending: PendingClass) -> RankedHeads[SortedClassQueue]:
        ranks = self._known.get(pending)
        if ranks is None:
            ranks = self._known[pending] = ranks_of(pending, self._order, self._view, self._accounts)
        return ranks

    def _push_next_of(self, pending: PendingClass) -> None:
        """Push the first queue of the class whose group was not met yet."""
        while not pending.is_closed and (found := self._ranks(pending).pop()) is not None:
            value, queue = found
            if queue.group not in self._met:
                self._serial += 1
                heappush(self._heap, (*value, False, self._serial, (pending, queue)))
                return


class PathCycleOrder(CycleOrder):
    """The same where groups are paths and each prefix has a rank of its own: level by level from the root.

    Each class has two heaps by path: of its queues whose groups were not met yet, and of the groups that were
    met whose next queue is of that class. The entry of a heap is its least value, which changes as a whole
    when the rank of a prefix does.

    A group whose first queue is the least of all is offered at once: it enters the second heap only if it has
    more to offer. It leaves the first one when the next queue is asked for, which is never where the class is
    refused; so a cycle in which one pod is bound and the next one refused moves little.
    """

    def __init__(self, *arguments: Any) -> None:
        self._met_paths: dict[PendingClass, PathHeap[str]] = {}
        self._class_of: dict[str, PendingClass] = {}  # of each group that was met: where it takes part
        self._entry: dict[tuple[PendingClass, bool], int] = {}  # of each heap: the serial of its valid entry
        self._just_met: Found | None = None  # what was offered as its group was met
        super().__init__(*arguments)

    @override
    def next(self, *, again: bool = True) -> Found | None:
        self._put_back()
        left, self._just_met = self._just_met, None
        if left is not None and not left[0].is_closed:
            # Before ranks are asked for again: so the levels above it follow both changes at once.
            self._ranks(left[0]).take_out(left[1])
            del self._entry[left[0], False]
        self._follow_changes()
        if left is not None and (left[0], False) not in self._entry:
            self._push_next_of(left[0])
        while self._heap:
            *_, is_met, serial, pending = heappop(self._heap)
            if serial != self._entry[pending, is_met]:
                continue
            group = self._leave_out_first(pending) if is_met else self._meet_first(pending)
            if group is None:
                continue
            _, _, _, queue = heappop(self._met[group])
            self._last = group, pending, queue, again
            if not pending.is_closed:
                return pending, queue
            self._put_back()
        return None

    def _meet_first(self, pending: PendingClass) -> str | None:
        """The group of the first queue of a class, if that queue is next; None where another one may be.

        None for a closed class too: a group that has queues of other classes is met by those.
        """
        found = None if pending.is_closed else self._ranks(pending).first()
        if found is None:
            return None
        group = found[1].group
        if group not in self._met:
            heap = self._met[group] = _by_key(self._queues_of(group))
            if heap and heap[0][-1] is found[1]:
                self._just_met = pending, found[1]
                return group
            self._push_group(group)
        self._push_next_of(pending)
        return None

    def _leave_out_first(self, pending: PendingClass) -> str:
        """The first group of the heap of a class, which takes part no more until it is pushed again."""
        paths = self._met_paths[pending]
        found = paths.first()
        assert found is not None  # noqa: S101 - its entry is valid
        paths.discard(found[1])
        self._push_entry(pending, True, paths.first())
        return found[1]

    @override
    def _follow_met(self, changed: Iterable[str]) -> None:
        ascending = sorted(changed)
        super()._follow_met(ascending)
        for pending, paths in self._met_paths.items():
            if pending.is_closed:  # nothing has asked for its ranks of now
                self._ranks(pending).touch_changed()
            if paths.rerank(dict.fromkeys(paths.prefixes_of(ascending))):
                self._push_entry(pending, True, paths.first())

    @override
    def _push_group(self, group: str) -> None:
        before = self._class_of.pop(group, None)
        if before is not None:
            self._met_paths[before].discard(group)
            self._push_entry(before, True, self._met_paths[before].first())
        heap = self._met[group]
        if not heap:
            return
        pending, queue = heap[0][2:]
        value = value_of_head(self._order, self._view, queue)
        if isinstance(value, Wait):
            return
        paths = self._met_paths.get(pending)
        if paths is None:
            paths = self._met_paths[pending] = PathHeap(self._ranks(pending).rank_of)
        paths.keep(group, group, value)
        self._class_of[group] = pending
        self._push_entry(pending, True, paths.first())

    @override
    def _push_next_of(self, pending: PendingClass) -> None:
        ranks = self._ranks(pending)
        found = None if pending.is_closed else ranks.first()
        while found is not None and found[1].group in self._met:
            ranks.pop()
            found = ranks.first()
        self._push_entry(pending, False, found)

    def _push_entry(self, pending: PendingClass, is_met: bool, first: tuple[Value, object] | None) -> None:
        """The valid entry of one of the heaps of a class; none if it is empty."""
        self._serial += 1
        self._entry[pending, is_met] = self._serial
        if first is not None:
            heappush(self._heap, (*first[0], is_met, self._serial, pending))


def _by_key(queues: Iterable[Found]) -> _Heap:
    """The queues of a group that have a head and are not held, as a heap."""
    heap = [
        (queue.head_key, queue.serial, pending, queue)
        for pending, queue in queues
        if queue.head is not None and not queue.is_held
    ]
    heapify(heap)
    return heap


def accounts_of(order: Order, view: View) -> list[ChangeLog[str]]:
    """What tells which groups' ranks may have changed."""
    accounts, needs = [], order.traits.needs
    if "shares" in needs:
        accounts.append(view.shares(order).changes)
    if "pools" in needs:
        accounts.append(view.pools.changes)
    if "work" in needs and view.job_work is not None:
        accounts.append(view.job_work.changes)
    own = order.changes(view)
    if own is not None:
        accounts.append(own)
    return accounts


def ranks_of(
    pending: PendingClass, order: Order, view: View, accounts: Sequence[ChangeLog[str]]
) -> RankedHeads[SortedClassQueue]:
    """The queues of a class by the ranks of their groups."""
    traits = order.traits
    rank_prefix = partial(rank_of_prefix, order, view, pending) if traits.ranks_prefixes else None
    value = partial(value_of_head, order, view)
    return pending.ranks(value, accounts, by_path=traits.ranks_by_path, rank_prefix=rank_prefix)


def rank_of_prefix(order: Order, view: View, pending: PendingClass, prefix: str) -> tuple[float, ...] | Wait:
    """The rank of a prefix for tasks of a class; a Wait where it is a pool that is at its limit for them."""
    spec, _ = pending.class_key
    if "pools" in order.traits.needs:
        limit = view.pools.limit_at(prefix, spec.requests)
        if limit is not None:
            return Wait(Reason(str(limit)))
    return tuple(order.rank_prefix(view, prefix, spec))


def value_of_head(order: Order, view: View, queue: SortedClassQueue) -> Value | Wait:
    """The rank of the queue's group if the queue is the first of it, then what decides among equal ranks.

    A queue that is held has a Wait. Raises ValueError where the order withholds against its traits, without
    reason, or until the past.
    """
    if queue.is_held:
        return HELD
    key, _, head = queue.entries[queue.cursor]
    rank = order.rank(view, queue.group, head)
    if not isinstance(rank, Wait):
        if order.traits.ranks_prefixes:
            before_all, *own = rank
            return before_all, (tuple(own),), key, queue.serial
        return tuple(rank), key, queue.serial
    if not order.traits.withholds:
        raise ValueError(f"{head} is withheld, but its traits do not say that the order withholds")
    if not isinstance(rank.reason, Reason) or not rank.reason.message:
        raise ValueError(f"{head} is withheld without a reason")
    if not rank.until > view.now:  # nan too; a time in the past would be a busy loop
        raise ValueError(f"{head} cannot be withheld until {rank.until}: it is {view.now} now")
    return rank
