"""Class queues by what their heads are worth, without looking at all of them: heaps that follow changes."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import Any, Generic, TypeVar

from eclectus.accounts.group_shares import SEPARATOR, prefixes
from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.memo import unfile
from eclectus.framework import ClassQueue, Wait

Value = tuple[Any, ...]
T = TypeVar("T")
Q = TypeVar("Q", bound=ClassQueue)


def _is_in(group: str, ascending: Sequence[str]) -> bool:
    at = bisect_left(ascending, group)
    return at < len(ascending) and ascending[at] == group


def _is_above_any(prefix: str, ascending: Sequence[str]) -> bool:
    """Whether it is a prefix of one of these paths."""
    below = prefix + SEPARATOR
    at = bisect_left(ascending, below)
    return at < len(ascending) and ascending[at].startswith(below)


class ValueHeap(Generic[T]):
    """Items by value, smallest first.

    An entry is void once its item has another one. Void entries are dropped when they come up, or when they
    are more than half of the heap.
    """

    def __init__(self) -> None:
        self._entries: dict[T, tuple[Value, int, T]] = {}  # the valid ones: value, serial of the entry, item
        self._heap: list[tuple[Value, int, T]] = []
        self._serial = 0

    def keep(self, item: T, value: Value) -> None:
        """The item has this value from now on."""
        self._serial += 1
        entry = self._entries[item] = (value, self._serial, item)
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries):
            self._heap = list(self._entries.values())
            heapify(self._heap)

    def discard(self, item: T) -> None:
        """The item takes part no more; no error if it did not."""
        self._entries.pop(item, None)

    def value_of(self, item: T) -> Value | None:
        """The value of an item; None if it does not take part."""
        entry = self._entries.get(item)
        return None if entry is None else entry[0]

    def first(self) -> tuple[Value, T] | None:
        """The smallest value and its item; None without any."""
        heap = self._heap
        while heap and self._entries.get(heap[0][2]) is not heap[0]:
            heappop(heap)
        return (heap[0][0], heap[0][2]) if heap else None


class _Level(ValueHeap[Any]):
    """What is below one prefix of paths: items, and further prefixes."""

    def __init__(self, name: str, parent: ValueHeap[Any], rank: tuple[float, ...] | Wait) -> None:
        super().__init__()
        self.name = name
        self.parent = parent
        self.rank = rank
        self.depth: int = parent.depth + 1 if isinstance(parent, _Level) else 0
        self.levels = 0  # below this one, those that take no part included


class PathHeap(Generic[T]):
    """Items by value where their groups are paths, compared level by level from the root.

    The value of an item is what is compared before all levels, then a tuple with what is compared at its own
    level, then what decides among equals. Each prefix puts its rank before that of what is below it, so a
    prefix of another rank costs one entry for each level above it, however many items are below. What is
    below a prefix with a Wait instead of a rank takes no part. Levels follow what has changed below them when
    the first item is asked for: what has changed by then costs a level one entry.
    """

    def __init__(self, rank: Callable[[str], tuple[float, ...] | Wait]) -> None:
        self.rank = rank  # of a prefix
        self._top = ValueHeap[Any]()
        self._levels: dict[str, _Level] = {}  # by prefix
        self._level_of: dict[T, ValueHeap[Any]] = {}
        self._withheld: dict[str, None] = {}  # prefixes
        self._changed: dict[int, dict[_Level, None]] = {}  # by depth: what levels above do not follow yet

    @property
    def withholds(self) -> bool:
        """Whether a prefix has no rank."""
        self._follow_changes()
        return bool(self._withheld)

    def prefixes_of(self, changed: Sequence[str] | None) -> Iterable[str]:
        """The prefixes whose rank may have changed, where these groups have, which ascend; None: all."""
        if changed is None:
            return self._levels.keys()
        if len(self._levels) < len(changed):
            return (prefix for prefix in self._levels if _is_above_any(prefix, changed))
        return (prefix for group in changed for prefix in prefixes(group))

    def keep(self, item: T, group: str, value: Value) -> None:
        """The item, which is of this group, has this value from now on; not if `rank` raises."""
        level = self._level_of.get(item)
        if level is None:
            level = self._level_of[item] = self._level(group.rpartition(SEPARATOR)[0])
        level.keep(item, value)
        self._note(level)

    def discard(self, item: T) -> None:
        """The item takes part no more; no error if it did not."""
        level = self._level_of.pop(item, None)
        if level is not None:
            level.discard(item)
            self._note(level)

    def known_rank(self, prefix: str) -> tuple[float, ...] | Wait | None:
        """The rank of a prefix as of when it was last asked for; None if nothing is below it."""
        level = self._levels.get(prefix)
        return None if level is None else level.rank

    def rerank(self, prefixes: Iterable[str]) -> bool:
        """The ranks of these prefixes may have changed; whether anything is below one.

        If `rank` raises, nothing has changed, and they are to be given again.
        """
        levels = [level for prefix in prefixes if (level := self._levels.get(prefix)) is not None]
        ranks = [self.rank(level.name) for level in levels]
        for level, rank in zip(levels, ranks, strict=True):
            level.rank = rank
            self._note(level)
        return bool(levels)

    def first(self) -> tuple[Value, T] | None:
        """The smallest value, with the ranks of all levels, and its item; None without any."""
        self._follow_changes()
        found = first = self._top.first()
        while found is not None and isinstance(found[1], _Level):
            found = found[1].first()
        return None if first is None or found is None else (first[0], found[1])

    def _level(self, prefix: str) -> ValueHeap[Any]:
        if not prefix:
            return self._top
        level = self._levels.get(prefix)
        if level is None:
            rank = self.rank(prefix)
            parent = self._level(prefix.rpartition(SEPARATOR)[0])
            level = self._levels[prefix] = _Level(prefix, parent, rank)
            if isinstance(parent, _Level):
                parent.levels += 1
        return level

    def _note(self, level: ValueHeap[Any]) -> None:
        """What is below a level, or its rank, has changed: so may have its value in the one above."""
        if isinstance(level, _Level):
            self._changed.setdefault(level.depth, {})[level] = None

    def _follow_changes(self) -> None:
        while self._changed:  # the lowest first: each level is followed once
            for level in self._changed.pop(max(self._changed)):
                self._follow(level)

    def _follow(self, level: _Level) -> None:
        first, parent = level.first(), level.parent
        self._withheld.pop(level.name, None)
        if first is None:
            parent.discard(level)
            if not level.levels:
                del self._levels[level.name]
                if isinstance(parent, _Level):
                    parent.levels -= 1
        elif isinstance(level.rank, Wait):
            parent.discard(level)
            self._withheld[level.name] = None
        else:
            before_all, levels, *last = first[0]
            value = (before_all, (level.rank, *levels), *last)
            if parent.value_of(level) == value:
                return
            parent.keep(level, value)
        self._note(parent)


class HeadHeap(Generic[Q]):
    """Class queues by a value of their heads, smallest first; `value` is asked once for each change."""

    def __init__(self, value: Callable[[Q], Any], queues: Iterable[Q]) -> None:
        self.value = value
        self._touched = dict.fromkeys(queues)  # without a valid entry; a dict as an ordered set
        self._valued = ValueHeap[Q]()

    def touch(self, queue: Q) -> None:
        """The queue is new, or the value of its head may have changed."""
        self._touched[queue] = None

    def discard(self, queue: Q) -> None:
        """The queue is gone."""
        self._touched.pop(queue, None)
        self._leave_out(queue)

    def refresh(self) -> None:
        """Ask for the values of the queues that were touched. If that raises, nothing has changed."""
        self._ask(list(self._touched))

    def first(self) -> tuple[Value, Q] | None:
        """The smallest value as of the last `refresh`, and its queue; None without any."""
        return self._valued.first()

    def _ask(self, queues: Sequence[Q]) -> None:
        values = [self.value(queue) for queue in queues]
        for value, queue in zip(values, queues, strict=True):
            self._keep(value, queue)
            self._touched.pop(queue, None)

    def _keep(self, value: Any, queue: Q) -> None:
        self._valued.keep(queue, value)

    def _leave_out(self, queue: Q) -> None:
        self._valued.discard(queue)


class RankedHeads(HeadHeap[Q]):
    """A heap of values that depend on accounts of groups too; `logs` tell which groups have changed.

    A queue of which the Order withholds the head has no entry, but is in `withheld`.
    """

    def __init__(
        self,
        value: Callable[[Q], Value | Wait],
        queues: Mapping[str, Q],
        logs: Sequence[ChangeLog[str]],
        *,
        by_path: bool = False,
        rank_prefix: Callable[[str], tuple[float, ...] | Wait] | None = None,
    ) -> None:
        """`by_path`: groups are paths, and a rank also depends on the accounts of their prefixes.

        `rank_prefix`: groups are paths, and prefixes have ranks of their own.
        """
        super().__init__(value, ())
        self._by_path = by_path
        self.paths = None if rank_prefix is None else PathHeap[Q](rank_prefix)
        self._queues = queues  # by group
        self._logs = logs
        self._cursors = [log.head for log in logs]
        self._stale: dict[str, None] = {}  # prefixes whose rank may have changed
        # By each prefix of a group that is a path: the queues below it.
        self._below: dict[str, dict[Q, None]] = {}
        self._withheld: dict[Q, Wait] = {}
        self.withheld: Mapping[Q, Wait] = self._withheld
        self.touch_all()

    def rank_of(self, prefix: str) -> tuple[float, ...] | Wait:
        """The rank of a prefix: of several heaps of one class that need it only the first asks the Order."""
        assert self.paths is not None  # noqa: S101 - only prefixes that have ranks are asked about
        known = None if prefix in self._stale else self.paths.known_rank(prefix)
        return self.paths.rank(prefix) if known is None else known

    @property
    def withholds(self) -> bool:
        """Whether a queue, or a prefix with queues below it, is withheld."""
        return bool(self._withheld) or (self.paths is not None and self.paths.withholds)

    def touch(self, queue: Q) -> None:
        """The queue is new, or the value of its head may have changed."""
        super().touch(queue)
        if self._by_path:
            for prefix in prefixes(queue.group):
                self._below.setdefault(prefix, {})[queue] = None

    def discard(self, queue: Q) -> None:
        """The queue is gone."""
        super().discard(queue)
        self._withheld.pop(queue, None)
        for prefix in prefixes(queue.group) if self._by_path else ():
            if queue in self._below.get(prefix, ()):
                unfile(self._below, prefix, queue)

    def touch_all(self) -> None:
        """All values may have changed."""
        for queue in self._queues.values():
            self.touch(queue)

    def touch_due(self, now: float) -> None:
        """The values of those that are withheld until now may have changed."""
        for queue, withheld in self._withheld.items() if self._withheld else ():
            if withheld.until <= now:
                self.touch(queue)

    @property
    def next_until(self) -> float:
        """When the first of those that are withheld is to be asked about again, seconds; inf for never."""
        # A dict that was large costs as much to iterate when it is empty.
        return min((each.until for each in self._withheld.values()), default=inf) if self._withheld else inf

    def refresh(self) -> None:
        """Ask for the values of queues that were touched, and of groups and prefixes that have changed."""
        self.touch_changed()
        self._rerank()
        super().refresh()

    def touch_changed(self) -> None:
        """The values of groups and prefixes that have changed are asked for by the next `refresh`."""
        for queue in self._changed():
            self.touch(queue)

    def refresh_changed(self) -> int:
        """Within a cycle: ask for the values of groups and prefixes that have changed, and of no others.

        Returns how many there are; all prefixes count as one. Queues of which all tasks have been taken have
        no head.
        """
        changed = [queue for queue in self._changed() if queue.head is not None]
        has_reranked = self._rerank()
        self._ask(changed)
        return has_reranked + len(changed)

    def first(self) -> tuple[Value, Q] | None:
        """The smallest value as of the last `refresh`, and its queue; None without any."""
        return (self._valued if self.paths is None else self.paths).first()

    def pop(self) -> tuple[Value, Q] | None:
        """The smallest value and its queue, which is left out until the next `refresh`; None without any."""
        found = self.first()
        if found is not None:
            self.take_out(found[1])
        return found

    def take_out(self, queue: Q) -> None:
        """Leave a queue out until the next `refresh`."""
        self._leave_out(queue)
        self.touch(queue)

    def _changed(self) -> list[Q]:
        """The queues of groups that have changed since the last call, and of groups below such."""
        found: dict[Q, None] = {}
        for at, log in enumerate(self._logs):
            if log.head != self._cursors[at]:
                changed = log.since(self._cursors[at])
                self._cursors[at] = log.head
                if self.paths is not None:
                    self._stale.update(dict.fromkeys(self.paths.prefixes_of(changed)))
                for group in self._queues if changed is None else self._of_these(changed):
                    if (queue := self._queues.get(group)) is not None:
                        found[queue] = None
                    if self._below:
                        found.update(self._below.get(group, {}))
        return list(found)

    def _of_these(self, changed: Sequence[str]) -> Sequence[str]:
        """Those of the groups, which ascend, that are of queues here, or may be.

        Where there are fewer queues than groups that have changed, those are looked for: one tenant's classes
        of pods must not each go through all groups of others.
        """
        if len(changed) <= len(self._queues) + len(self._below):
            return changed
        return [group for group in sorted({*self._queues, *self._below}) if _is_in(group, changed)]

    def _rerank(self) -> bool:
        """Ask for the ranks of prefixes that may have changed; whether there are any."""
        if not self._stale or self.paths is None:
            return False
        has_any = self.paths.rerank(self._stale)
        self._stale.clear()  # not if the Order has raised
        return has_any

    def _keep(self, value: Value | Wait, queue: Q) -> None:
        self._withheld.pop(queue, None)
        if isinstance(value, Wait):
            self._withheld[queue] = value
            self._leave_out(queue)
        elif self.paths is not None:
            self.paths.keep(queue, queue.group, value)
        else:
            super()._keep(value, queue)

    def _leave_out(self, queue: Q) -> None:
        if self.paths is not None:
            self.paths.discard(queue)
        else:
            super()._leave_out(queue)
