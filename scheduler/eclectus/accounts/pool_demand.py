"""What pools demand: what they hold, and what their waiting pods request that nothing but room keeps waiting.

What waits in vain is no demand: pods that no node could ever run, all that waits in a suspended pool, and
jobs beyond a limit of jobs. Of these so many count as may start beside those that run, highest priority
first, then by age. What a pool demands beyond its maximum is no demand of the pools above it either.

All of it is kept up to date. A pod that comes, starts or ends costs the depth of its pool, and a search in a
sorted list for each limit of jobs above it; pools without limits cost next to nothing. A change of the tree
costs all that waits, once, and one of what nodes offer the pools whose maxima follow that.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from eclectus.accounts.group_shares import MAX_CHANGES, GroupShares, prefixes
from eclectus.accounts.node_quotas import NOTHING, NodeQuotas
from eclectus.accounts.pool_tree import parent_of
from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Task

Amounts = Mapping[str, int]


class Limits(Protocol):
    """What limits a pool."""

    @property
    def path(self) -> str:
        """The pool's."""

    @property
    def jobs(self) -> int | None:
        """How many may run."""

    @property
    def suspended(self) -> bool:
        """Whether nothing starts."""


class Counted(Protocol):
    """What is counted of pools, and their limits."""

    @property
    def usage(self) -> GroupShares:
        """What each group and prefix holds and waits for."""

    @property
    def unplaceable(self) -> GroupShares:
        """What of that waits for a node that does not exist, by group."""

    @property
    def node_quotas(self) -> NodeQuotas:
        """What pools hold, and get first, on kinds of nodes."""

    @property
    def may_wait_in_vain(self) -> bool:
        """Whether any pool is limited, or any pod fits no node."""

    def follow(self) -> None:
        """Take in what has changed of the tree, and of what nodes offer."""

    def limited(self) -> Iterable[str]:
        """The paths of all pools with limits."""

    def bounds_of(self, path: str) -> Sequence[Limits]:
        """The limits of a pool and of those above it, its own first."""

    def most_of(self, path: str) -> Amounts:
        """What a pool may hold by its own limits."""

    def running_jobs(self, path: str) -> int:
        """How many jobs of a pool run."""


class Entry(NamedTuple):
    """A job that waits. The least one starts first."""

    minus_priority: float
    created: float  # seconds
    group: str


class Moves(NamedTuple):
    """Jobs that may start beside those that run, and did not before; and those that may no longer."""

    came: Sequence[Entry] = ()
    went: Sequence[Entry] = ()


NO_MOVES = Moves()


class JobLine:
    """The jobs that wait below a pool with a limit of jobs: the first so many of them may start."""

    __slots__ = ("_jobs", "_most")

    def __init__(self) -> None:
        self._jobs: list[Entry] = []  # sorted
        self._most = 0

    def add(self, entry: Entry) -> Moves:
        """A job has begun to wait."""
        at = bisect_left(self._jobs, entry)
        self._jobs.insert(at, entry)
        return Moves((entry,), self._jobs[self._most : self._most + 1]) if at < self._most else NO_MOVES

    def discard(self, entry: Entry) -> Moves:
        """It waits no more; it must have waited."""
        at = bisect_left(self._jobs, entry)
        del self._jobs[at]
        return Moves(self._jobs[self._most - 1 : self._most], (entry,)) if at < self._most else NO_MOVES

    def resize(self, most: int) -> Moves:
        """So many may start."""
        if most == self._most:
            return NO_MOVES
        before, self._most = self._most, most
        return Moves(self._jobs[before:most], self._jobs[most:before])


class Rules(NamedTuple):
    """What decides whether pods of a pool may start, beside amounts."""

    limits: tuple[tuple[str, int], ...]  # of jobs, with the path of the pool that has it, the nearest first
    lines: tuple[JobLine, ...]  # of the jobs that wait for each
    is_suspended: bool


class PoolDemand:
    """What each pool demands. Derived: it depends on what is counted now, and not on what was."""

    def __init__(self, pools: Counted) -> None:
        self._pools = pools
        self._changes = ChangeLog[str](MAX_CHANGES)  # groups; all, where the tree may have changed
        self._cursor = -1  # in these
        self._has_other_amounts = False  # since then maxima may have changed
        self._first: dict[str, Entry] = {}  # by group that holds or waits: when its first pod would start
        self._stopped: dict[str, None] = {}  # groups of which nothing that waits may start
        # Groups that have begun or ceased to wait in vain by what others do, and were so before or not.
        self._turned: dict[str, bool] | None = {}  # None: they are too many to remember
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._rules: dict[str, Rules] = {}  # by path
        self._lines: dict[str, JobLine] = {}  # by path, of pools with a limit of jobs
        self._standing: dict[str, Entry] = {}  # by group: the jobs in these lines, as they stand there
        self._next: dict[str, None] = {}  # groups of those jobs that may start beside those that run
        self._moved: dict[str, None] = {}  # groups that have become such, or are so no more
        self._vain_of: dict[str, Amounts] = {}  # by group: what waits in vain
        self._vain: dict[str, Counter[str]] = {}  # by path: what below it is no demand of the pool
        self._beyond: dict[str, Amounts] = {}  # by path: the same, with what is beyond its maximum
        self._most: dict[str, Amounts] = {}  # by path: the maxima by which that was reckoned

    def see(self, task: Task, group: str) -> None:
        """A pod of a group waits."""
        entry, known = Entry(-task.priority, task.created, group), self._first.get(group)
        if known is None or entry < known:
            self._first[group] = entry
        self._changes.record(group)

    def change(self, group: str) -> None:
        """A group holds something else, or waits for something else."""
        self._changes.record(group)
        usage = self._pools.usage
        if not (usage.held(group) or usage.waiting(group)):
            self._first.pop(group, None)

    def change_tree(self) -> None:
        """Limits are others."""
        self._changes.record_all()

    def change_amounts(self) -> None:
        """Maxima may be others."""
        self._has_other_amounts = True

    def take_turned(self) -> list[str] | None:
        """Groups that demand something else since the last call by what others hold or wait for.

        None: any may.
        """
        self.refresh()
        turned, self._turned = self._turned, {}
        if turned is None:
            return None
        return [group for group, was in turned.items() if was != (group in self._stopped)]

    def of(self, path: str) -> dict[str, int]:
        """What a pool demands: resource -> amount."""
        self.refresh()
        return _bounded(self._needed(path), self._pools.most_of(path))

    def without(self, waiting: Iterable[tuple[str, Amounts]]) -> dict[str, Amounts]:
        """How much less each pool would demand without these pods, which wait: by path.

        `waiting`: the group of each, and what it requests.
        """
        self.refresh()
        gone: dict[str, Counter[str]] = {}
        for group, amounts in waiting:
            if group not in self._stopped:
                _shift(gone, parent_of(group), NOTHING, amounts)
        found: dict[str, Amounts] = {}
        for path in sorted({each for pool in gone for each in (pool, *prefixes(pool))}, reverse=True):
            needed, most = self._needed(path), self._pools.most_of(path)
            left = _less(needed, gone.get(path, NOTHING))
            found[path] = _less(_bounded(needed, most), _bounded(left, most))
            _shift(gone, parent_of(path), NOTHING, found[path])
        return found

    def _needed(self, path: str) -> dict[str, int]:
        """What a pool holds, and what waits in it and not in vain."""
        usage = self._pools.usage
        found = dict(usage.held(path))
        for name, amount in usage.waiting(path).items():
            found[name] = found.get(name, 0) + amount
        return _less(found, self._vain.get(path, NOTHING))

    # -- keeping it up to date -----------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what has changed."""
        self._pools.follow()
        changes = self._changes
        if changes.head == self._cursor and not self._has_other_amounts:
            return
        changed, has_other_amounts = changes.since(self._cursor), self._has_other_amounts
        self._cursor, self._has_other_amounts = changes.head, False
        if not (self._pools.may_wait_in_vain or self._vain):
            return
        touched = dict[str, None]()
        if changed is None:
            self._begin_anew()
            changed = list(self._first | self._stopped)
            touched.update(dict.fromkeys(map(parent_of, self._pools.usage.paths())))
        self._take_in(changed, touched)
        for path in self._pools.limited() if has_other_amounts else ():
            if self._pools.most_of(path) != self._most.get(path, NOTHING):
                touched[path] = None
        for path in touched:
            self._reckon(path)

    def _take_in(self, changed: Sequence[str], touched: dict[str, None]) -> None:
        """These groups have changed. `touched`: to which the paths of their pools are added."""
        for path in dict.fromkeys(map(parent_of, changed)):
            self._resize_lines(path)
        for group in changed:
            self._stand_in_line(group)
        self._note_turned()
        self._moved.update(dict.fromkeys(changed))
        for group in self._moved:
            self._recount(group)
            touched[parent_of(group)] = None
        self._moved.clear()

    def _note_turned(self) -> None:
        """Those that have moved may demand something else, though nothing of themselves has changed."""
        if self._turned is not None:
            for group in self._moved:
                self._turned.setdefault(group, group in self._stopped)
            if len(self._turned) > MAX_CHANGES:
                self._turned = None

    def _rules_of(self, path: str) -> Rules:
        rules = self._rules.get(path)
        if rules is None:
            bounds = self._pools.bounds_of(path)
            limits = tuple((each.path, each.jobs) for each in bounds if each.jobs is not None)
            lines = tuple(self._lines.setdefault(at, JobLine()) for at, _ in limits)
            rules = self._rules[path] = Rules(limits, lines, any(each.suspended for each in bounds))
        return rules

    def _resize_lines(self, path: str) -> None:
        """Jobs of a pool may have begun to run, or have ended: so many places are left in its lines."""
        rules = self._rules_of(path)
        for at, (limited, most) in enumerate(rules.limits):
            free = max(most - self._pools.running_jobs(limited), 0)
            self._pass_on(rules.lines[at + 1 :], rules.lines[at].resize(free))

    def _stand_in_line(self, group: str) -> None:
        """A job may have begun to wait, to run or to end."""
        _, lines, is_suspended = self._rules_of(parent_of(group))
        if not lines:
            return
        before = self._standing.pop(group, None)
        after = self._first.get(group) if not is_suspended and self._waits_to_run(group) else None
        if after is not None:
            self._standing[group] = after
        if before is not None and before != after:
            self._pass_on(lines[1:], lines[0].discard(before))
        if after is not None and before != after:
            self._pass_on(lines[1:], lines[0].add(after))

    def _waits_to_run(self, group: str) -> bool:
        """Whether no pod of a job holds anything, and one of them waits that a node could run."""
        usage, unplaceable = self._pools.usage, self._pools.unplaceable
        waiting = usage.waiting(group).get(PODS, 0) - unplaceable.waiting(group).get(PODS, 0)
        return waiting > 0 and not usage.held(group)

    def _pass_on(self, above: Sequence[JobLine], moves: Moves) -> None:
        """Jobs that may start by one limit stand in line for those above it, the nearest first."""
        for entry in moves.went:
            if above:
                self._pass_on(above[1:], above[0].discard(entry))
            else:
                del self._next[entry.group]
                self._moved[entry.group] = None
        for entry in moves.came:
            if above:
                self._pass_on(above[1:], above[0].add(entry))
            else:
                self._next[entry.group] = self._moved[entry.group] = None

    def _recount(self, group: str) -> None:
        """What of a group waits in vain."""
        waiting = self._pools.usage.waiting(group)
        is_stopped = bool(waiting) and not self._may_start(group)
        if is_stopped != (group in self._stopped):
            if is_stopped:
                self._stopped[group] = None
            else:
                del self._stopped[group]
            self._pools.node_quotas.mute(group, is_muted=is_stopped)
        after = dict(waiting if is_stopped else self._pools.unplaceable.waiting(group))
        before = self._vain_of.pop(group, NOTHING)
        if after:
            self._vain_of[group] = after
        _shift(self._vain, parent_of(group), before, after)

    def _may_start(self, group: str) -> bool:
        """Whether pods of a group may start, as far as suspended pools and limits of jobs are concerned."""
        _, lines, is_suspended = self._rules_of(parent_of(group))
        if is_suspended:
            return False
        return not lines or group in self._next or bool(self._pools.usage.held(group))

    def _reckon(self, path: str) -> None:
        """What a pool and those above it demand of what they hold and wait for."""
        for each in (path, *reversed(prefixes(path))) if path else ():
            most = self._pools.most_of(each)
            after = dict(self._vain.get(each, NOTHING))
            if most:
                self._most[each], needed = most, self._needed(each)
                for name, amount in _less(needed, _bounded(needed, most)).items():
                    after[name] = after.get(name, 0) + amount
            before = self._beyond.pop(each, NOTHING)
            if after:
                self._beyond[each] = after
            _shift(self._vain, parent_of(each), before, after)


def _bounded(amounts: Amounts, most: Amounts) -> dict[str, int]:
    return {name: min(amount, most.get(name, amount)) for name, amount in amounts.items()}


def _less(amounts: Amounts, others: Amounts) -> dict[str, int]:
    """What is left of amounts without others; only what is something."""
    left = ((name, amount - others.get(name, 0)) for name, amount in amounts.items())
    return {name: amount for name, amount in left if amount > 0}


def _shift(counted: dict[str, Counter[str]], path: str, before: Amounts, after: Amounts) -> None:
    """Count other amounts than before in an account, which is kept while there is something in it."""
    if before == after:
        return
    account = counted.setdefault(path, Counter())
    for name in before.keys() | after.keys():
        account[name] += after.get(name, 0) - before.get(name, 0)
        if not account[name]:
            del account[name]
    if not account:
        del counted[path]
