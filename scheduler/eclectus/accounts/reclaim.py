"""Reclaim: what a pool that has too little for too long may take back, and from whom.

Two kinds of claims, as in the Hadoop Fair Scheduler (Zaharia and others, 2009). A pool that has been below
its minimum, as far as it needs it, for `minShareSeconds` may take up to that. One that has been below a part
of its share, half of it by default, for `fairShareSeconds` may take up to its share. Both at once add to no
more than the larger of them.

Pods are indivisible, so "never below the victim's share", made for slots, would leave guarantees unmet for
ever. There are two rules, compared where the paths of claimant and victim part:

- for a minimum: the victim's branch has more than its share, and keeps its own minimum. Where no such pod
  makes room on any node that the claimant may use, as shares are of the whole cluster and these nodes are
  few, the victim's branch need only keep its minimum, if the claimant's has no more than its share even then;
- for a share: the victim's branch keeps its share; or else, where a single pod goes and no gang, the
  claimant's, with what starts, has a smaller part of its share than the victim's had before.

A minimum of one kind of node is claimed for pods that run on such nodes alone, so victims are there. Shares
do not know of kinds of nodes: what the claimant's branch has of its share does not count for such a claim.
Minima of a kind are kept by all claims.

What starts is a pod, or so many pods of a gang as start together.

A minimum that is claimed lowers the sum of what minima lack, and none raises it. A share that is claimed
lowers the parts of shares, sorted from the greatest. So claims end, though controllers create their victims
again: these wait in a pool that ranks behind every claimant. Below the branch the victim's own pool has more
than its share too, and every pool on the way keeps its minimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import inf
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from eclectus.accounts.group_shares import SEPARATOR, prefixes
from eclectus.accounts.pools import Pools
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Amounts, Task
from eclectus.model.pool import Pool

Kind = Literal["minimum", "share"]
KINDS: tuple[Kind, ...] = ("minimum", "share")  # in the order in which they are claimed
LOOK_SECONDS = 0.1  # between two looks at all pools, at least
POOLS_A_SECOND = 200.0  # that are looked at: about a hundredth of the time
EPSILON = 1e-6  # of an amount, beside rounding
EMPTY: Mapping[str, int] = {}
K = TypeVar("K")


class Entitlement(Struct, frozen=True, gc=False):
    """That a pool may take room back now. `lacking`: resource -> how much it may still take.

    `nodes`: a label with its value, where it lacks its minimum on these nodes; empty for one of all nodes.
    """

    pool: str
    kind: Kind
    lacking: Amounts
    nodes: str = ""

    def is_for(self, task: Task) -> bool:
        """Whether room may be taken back for a task of the pool: for one that runs on these nodes alone."""
        return not self.nodes or any(
            each.pool == self.pool and each.least and f"{each.key}={each.value}" == self.nodes
            for each in task.spec.quotas
        )


class Clock(NamedTuple):
    """A pool that has less than is its own: since when, and for how long it waits until it takes that."""

    pool: str
    kind: Kind
    since: float  # seconds
    wait_seconds: float | None  # None: it never does
    nodes: str = ""  # as of an entitlement


class Idle(Protocol):
    """Pods that wait although a node has room for them, because a policy has decided so."""

    @property
    def version(self) -> Hashable:
        """Another one when they may be others."""

    def __iter__(self) -> Iterator[Task]: ...


class Starvation:
    """Since when pools have less than is theirs, and what they may claim for it.

    What a pool has because its pods wait by choice, beside room, it does not lack.
    """

    def __init__(self, pools: Pools, nominated: Callable[[], Iterable[Task]], idle: Idle) -> None:
        """`nominated`: the pods for which room is held, and counted as held, and which are on no node."""
        self._pools = pools
        self._nominated = nominated
        self._idle_pods = idle
        self._idle: Mapping[str, Mapping[str, int]] = {}  # as of the last look: what pools demand for them
        self._idle_on: Mapping[tuple[str, str], Mapping[str, int]] = {}  # likewise, by kind of node
        self.shares: Mapping[str, Mapping[str, float]] = {}  # as of the last look
        self.contended: Mapping[str, AbstractSet[str]] = {}  # likewise, of each pool and its siblings
        self.above_share: AbstractSet[str] = frozenset()  # likewise: pools that hold more than theirs of some
        self._below_min: dict[str, float] = {}  # path -> since when, seconds
        # Likewise of a kind of node, by path and kind.
        self._below_on: dict[tuple[str, str], float] = {}
        self._below_share: dict[str, float] = {}  # below the part of it at which they may claim it
        self._claiming: dict[str, None] = {}  # that were for so long, and have not all of their share yet
        self._known: dict[str, None] = {}  # names of pools that were looked at
        self._seen: Hashable = None  # how far the changes of pools were, and which pods waited beside room
        self._version = -1  # of the tree, as of the last call of `look`
        self._look_at = -inf
        self._may_claim_now = set[tuple[str, Kind]]()
        self.has_new_claims = False  # whether the last look has found some; written here only
        self.looks = 0  # so far; written here only
        self.next_due = inf  # when the next pool may claim, or pools are to be looked at; written here only

    def look(self, now: float) -> bool:
        """Look at all pools if they have changed; whether some may find now what they did not before.

        Then `has_new_claims` says whether some may claim what they might not.
        """
        self._version = self._pools.tree.version
        has_changed = self._sight != self._seen
        if has_changed and now >= self._look_at:
            self._pools.record_turned()
            self._seen, has_changed = self._sight, False
            self._look_at = now + max(LOOK_SECONDS, len(self._known) / POOLS_A_SECOND)
            self._look(now)
            self.looks += 1
        is_due, self.next_due = self.next_due <= now, self._look_at if has_changed else inf
        before, self._may_claim_now = self._may_claim_now, set()
        for path, kind, at in self._claims_at():
            if at > now:
                self.next_due = min(self.next_due, at)
                continue
            self._may_claim_now.add((path, kind))
            if kind == "share":
                self._claiming[path] = None
        self.has_new_claims = not self._may_claim_now <= before
        return is_due or self.has_new_claims

    @property
    def due_at(self) -> float:
        """When `look` may find what it did not the last time; seconds, -inf for at once."""
        if self._version != self._pools.tree.version:  # pools may claim after other times
            return -inf
        return self.next_due if self._sight == self._seen else min(self.next_due, self._look_at)

    @property
    def _sight(self) -> Hashable:
        return self._pools.changes.head, self._idle_pods.version

    def below_min_since(self, path: str) -> float | None:
        """Since when a pool lacks its minimum, or one of some nodes; None if it has it, or needs less.

        In seconds.
        """
        on_nodes = (since for (pool, _), since in self._below_on.items() if pool == path)
        since = min(self._below_min.get(path, inf), *on_nodes, inf)
        return None if since == inf else since

    def below_share_since(self, path: str) -> float | None:
        """Since when a pool has less than the part of its share that it may claim; None if it has that."""
        return self._below_share.get(path)

    def _look(self, now: float) -> None:
        pools, tree = self._pools, self._pools.tree
        self.shares, self.contended = pools.shares()
        self.above_share = {path for path in self.shares if self._is_above_share(path)}
        paths = {path: pool for pool in tree if (path := tree.path_of(pool.name)) is not None}
        idle = tuple(self._idle_pods)
        self._idle, self._idle_on = pools.demand_without(idle), _asked_on(idle)
        promised, promised_on = self._promised(), _asked_on(self._nominated())
        for path, pool in paths.items():
            is_new, less = pool.name not in self._known, promised.get(path, {})
            before = pool.below_min_since if is_new else None
            _note(self._below_min, path, bool(self._lacking_minimum(path, less)), now, before)
            self._look_at_nodes(path, pool, promised_on, now, before)
            is_far_below = bool(self._lacking_share(path, pool.preemption.fair_share_threshold, less))
            _note(self._below_share, path, is_far_below, now, pool.below_share_since if is_new else None)
            if not self._lacking_share(path, 1.0):
                self._claiming.pop(path, None)
        known: dict[str, Any]
        for known in (self._below_min, self._below_share, self._claiming):
            for gone in [path for path in known if path not in paths]:
                del known[gone]
        stated = {(path, str(kind)) for path, pool in paths.items() for kind in pool.min_share.by_node}
        self._below_on = {at: since for at, since in self._below_on.items() if at in stated}
        self._known = {pool.name: None for pool in tree}

    def _look_at_nodes(
        self,
        path: str,
        pool: Pool,
        promised: Mapping[tuple[str, str], Mapping[str, int]],
        now: float,
        before: float | None,
    ) -> None:
        """Note on which kinds of nodes a pool lacks its minimum. `promised`: as of all nodes, by kind."""
        for kind in pool.min_share.by_node:
            at = (path, str(kind))
            lacking = self._pools.lacking_on(
                path, kind, promised.get(at, EMPTY), self._idle_on.get(at, EMPTY)
            )
            _note(self._below_on, at, bool(lacking), now, before)

    def _promised(self) -> Mapping[str, Mapping[str, int]]:
        """What each pool holds on no node yet.

        A clock goes on until pods have started: nominations may end, and a process that takes over may have
        to make the rest of their room.
        """
        found: dict[str, Counter[str]] = {}
        for task in self._nominated():
            for path in (*prefixes(task.pool), task.pool) if task.pool else ():
                _add(found.setdefault(path, Counter()), _holding(task), 1)
        return found

    def _is_above_share(self, path: str) -> bool:
        held, share = self._pools.usage.held(path), self.shares[path]
        return any(held.get(name, 0) > share.get(name, 0.0) + EPSILON for name in self.contended[path])

    def _claims_at(self) -> Iterator[tuple[str, Kind, float]]:
        """Which pools that lack something may claim what, and from when on, seconds."""
        for kind, below in zip(KINDS, (self._below_min, self._below_share), strict=True):
            for path, since in below.items():
                seconds = self._patience(path, kind)
                if seconds is not None:
                    yield path, kind, since + seconds
        for (path, _), since in self._below_on.items():
            seconds = self._patience(path, "minimum")
            if seconds is not None:
                yield path, "minimum", since + seconds

    def _patience(self, path: str, kind: Kind) -> float | None:
        """For how long a pool waits before it claims, seconds; None if it never does."""
        pool = self._pools.tree.of_path(path)
        if pool is None:
            return None
        rules = pool.preemption
        return rules.min_share_seconds if kind == "minimum" else rules.fair_share_seconds

    def claims(self, task: Task, now: float) -> Iterator[Entitlement]:
        """What pools on the way to the root may claim for this task now, minima first, its own pool first."""
        wanted = {name for name, amount in (*task.spec.requests, (PODS, 1)) if amount}
        for kind, path in _claimants(task):
            lacking = self._may_claim(path, kind, now)
            if any(amount > 0 for name, amount in lacking.items() if name in wanted):
                yield Entitlement(path, kind, tuple(sorted(lacking.items())))
            if kind == "minimum" and task.spec.quotas:
                yield from self._claims_on_nodes(task, path, now)

    def _claims_on_nodes(self, task: Task, path: str, now: float) -> Iterator[Entitlement]:
        """What a pool may claim for the task of its minima by kind of node."""
        seconds, pool = self._patience(path, "minimum"), self._pools.tree.of_path(path)
        for kind in () if pool is None or seconds is None else pool.min_share.by_node:
            since, nodes = self._below_on.get((path, str(kind)), inf), str(kind)
            if since + (seconds or 0.0) > now:
                continue
            lacking = self._pools.lacking_on(path, kind, EMPTY, self._idle_on.get((path, nodes), EMPTY))
            claim = Entitlement(path, "minimum", tuple(sorted(lacking.items())), nodes)
            if lacking and claim.is_for(task):
                yield claim

    def clocks(self, task: Task) -> Iterator[Clock]:
        """What pools on the way to the root lack, and how long each waits until it claims it."""
        for kind, path in _claimants(task):
            since = (self._below_min if kind == "minimum" else self._below_share).get(path)
            if since is not None:
                yield Clock(path, kind, since, self._patience(path, kind))
        for quota in task.spec.quotas:
            nodes = f"{quota.key}={quota.value}"
            since = self._below_on.get((quota.pool, nodes)) if quota.least else None
            if since is not None:
                yield Clock(quota.pool, "minimum", since, self._patience(quota.pool, "minimum"), nodes)

    def _may_claim(self, path: str, kind: Kind, now: float) -> Mapping[str, int]:
        """What a pool may still take; nothing before its time."""
        if kind == "share":
            return self._lacking_share(path, 1.0) if path in self._claiming else {}
        since, seconds = self._below_min.get(path), self._patience(path, kind)
        if since is None or seconds is None or now < since + seconds:
            return {}
        return self._lacking_minimum(path)

    def _lacking_minimum(self, path: str, less: Mapping[str, int] = EMPTY) -> dict[str, int]:
        """`less`: what of that which is held does not count."""
        least = self._pools.least_of(path)
        if not least:
            return {}
        held, demand = self._pools.usage.held(path), self._demand(path)
        lacking = {
            name: min(amount, demand.get(name, 0)) - held.get(name, 0) + less.get(name, 0)
            for name, amount in least.items()
        }
        return {name: amount for name, amount in lacking.items() if amount > 0}

    def _lacking_share(self, path: str, part: float, less: Mapping[str, int] = EMPTY) -> dict[str, int]:
        """Up to its share, of resources of which it holds less than this part of what it needs of that.

        Only of those that its siblings contend for: of others the share of each is what it needs. `less`: as
        of the minimum.
        """
        share, found, contended = self.shares.get(path, {}), dict[str, int](), self.contended.get(path)
        if not contended:
            return found
        held, demand = self._pools.usage.held(path), self._demand(path)
        for name in contended:
            due = min(share.get(name, 0.0), demand.get(name, 0))
            has = held.get(name, 0) - less.get(name, 0)
            if has < int(due * part):
                found[name] = int(due) - has
        return found

    def _demand(self, path: str) -> Mapping[str, int]:
        """What a pool demands, without its pods that wait by choice."""
        demand, idle = self._pools.demand_of(path), self._idle.get(path, EMPTY)
        return {name: amount - idle.get(name, 0) for name, amount in demand.items()}


Kept = Literal["noPool", "own", "allowFrom", "nothing", "minimum", "notAbove", "share"]
"""Why a claim may not take a pod: it is in no pool, or in the one that claims; its pool allows nothing to be
taken; it holds nothing that is wanted; its pool needs it for its minimum, has no more than its share, or
would have the smaller part of its share."""


class Together(NamedTuple):
    """What is taken for a task at the same time as for others, which start together with it or not at all."""

    victims: Mapping[str, Task] = {}  # by uid: what was found for those before it
    more: Amounts = ()  # what those after it request


ALONE = Together()


class Taking:
    """Which pods one claim may take, one after the other, for one task."""

    def __init__(
        self,
        pools: Pools,
        starvation: Starvation,
        claim: Entitlement,
        task: Task,
        together: Together = ALONE,
    ) -> None:
        self._pools = pools
        self._shares, self._contended = starvation.shares, starvation.contended
        self._above_share = starvation.above_share
        self._claim = claim
        self._task = task
        self._wanted = {name: amount for name, amount in (*task.spec.requests, (PODS, 1)) if amount}
        self._starting = _starting(pools, task, together.more)
        self._taken_for_others: dict[str, Counter[str]] = {}  # path -> amounts
        self._count(self._taken_for_others, together.victims.values(), 1)
        self._taken = dict[str, Counter[str]]()  # likewise, with these
        self._taken_pods = dict[str, Task]()  # by uid
        self._others_pods = together.victims
        self.begin_again()
        self._ways: dict[str, tuple[str, ...] | Kept] = {}  # by pool: from its branch down, or why not
        self.within_shares = (
            False  # whether pools give that have no more than their share; for a minimum alone
        )

    def begin_again(self) -> None:
        """Nothing is taken for the task: another node is looked at."""
        self._taken = {path: Counter(amounts) for path, amounts in self._taken_for_others.items()}
        self._taken_pods = dict(self._others_pods)

    def gives(self, pool: str) -> bool:
        """Whether anything may be taken from a pool, as of the last look: to look at no pod of others."""
        way = self._way(pool)
        is_above = self.within_shares or all(each in self._above_share for each in way)
        return not isinstance(way, str) and is_above

    def keeps_pool(self, pool: str) -> Kept | None:
        """Why `gives` says no; None where it says yes."""
        way = self._way(pool)
        if isinstance(way, str):
            return way
        return None if self.gives(pool) else "notAbove"

    def _way(self, pool: str) -> tuple[str, ...] | Kept:
        """The pools from the victim's branch down to its own, or why nothing may be taken there."""
        way = self._ways.get(pool)
        if way is None:
            way = self._ways[pool] = self._found_way(pool)
        return way

    def _found_way(self, pool: str) -> tuple[str, ...] | Kept:
        if not pool:
            return "noPool"
        if _is_below(pool, self._claim.pool):
            return "own"
        way = [each for each in (*prefixes(pool), pool) if not _is_below(self._claim.pool, each)]
        return tuple(way) if all(map(self._allows, way)) else "allowFrom"

    def keeps(self, pods: Sequence[Task]) -> Kept | None:
        """Why these pods may not be taken together, beside those that were; None where they may."""
        ways: dict[str, tuple[str, ...]] = {}
        for pod in pods:
            way = self._way(pod.pool)
            if isinstance(way, str):
                return way
            ways[pod.pool] = way
        of_paths = self._amounts(pods, ways)
        if not any(name in self._wanted and amount for pod in pods for name, amount in _holding(pod)):
            return "nothing"
        for path, amounts in of_paths.items():
            if not (self._keeps_minimum(path, amounts) and self._keeps_nodes(path, pods)):
                return "minimum"
            if not self.within_shares and not self._is_above_share(path):
                return "notAbove"
        must_stay_due = self.within_shares and not self._claim.nodes
        if must_stay_due and not all(self._stays_due(way[0]) for way in ways.values()):
            return "notAbove"
        branches = {way[0] for way in ways.values()} if self._claim.kind == "share" else set[str]()
        is_fair = self._keeps_share if len(pods) > 1 else self._is_fair
        return None if all(is_fair(each, of_paths[each]) for each in branches) else "share"

    def _amounts(self, pods: Sequence[Task], ways: Mapping[str, tuple[str, ...]]) -> Mapping[str, Amounts]:
        """What each pool on these ways would give."""
        if len(pods) == 1:
            return dict.fromkeys(ways[pods[0].pool], _holding(pods[0]))
        found: dict[str, Counter[str]] = {}
        for pod in pods:
            for path in ways[pod.pool]:
                _add(found.setdefault(path, Counter()), _holding(pod), 1)
        return {path: tuple(amounts.items()) for path, amounts in found.items()}

    def take(self, pods: Iterable[Task]) -> None:
        """Count these pods as taken."""
        taken = {pod.uid: pod for pod in pods}
        self._taken_pods.update(taken)
        self._count(self._taken, taken.values(), 1)

    def give_back(self, pods: Iterable[Task]) -> None:
        """Count them as taken no longer."""
        given = {pod.uid: self._taken_pods.pop(pod.uid) for pod in pods}
        self._count(self._taken, given.values(), -1)

    def _count(self, counted: dict[str, Counter[str]], pods: Iterable[Task], sign: int) -> None:
        for pod in pods:
            for path in (*prefixes(pod.pool), pod.pool):
                _add(counted.setdefault(path, Counter()), _holding(pod), sign)

    def _allows(self, path: str) -> bool:
        pool = self._pools.tree.of_path(path)
        return pool is None or pool.preemption.allow_from

    def _held(self, path: str) -> Counter[str]:
        """What a pool will hold: without what was taken for others before, and goes."""
        held = Counter(self._pools.usage.held(path))
        held.subtract(self._pools.going(path))
        held.subtract(self._taken.get(path, {}))
        return held

    def _is_above_share(self, path: str) -> bool:
        held, share = self._held(path), self._shares.get(path, {})
        return any(held[name] > share.get(name, 0.0) + EPSILON for name in self._wanted)

    def _keeps_minimum(self, path: str, amounts: Amounts) -> bool:
        least = self._pools.least_of(path)
        if not least:
            return True
        held, demand = self._held(path), self._pools.demand_of(path)
        return all(
            held[name] - amount >= min(least[name], demand.get(name, 0))
            for name, amount in amounts
            if name in least and amount
        )

    def _keeps_nodes(self, path: str, pods: Sequence[Task]) -> bool:
        """Whether a pool keeps its minimum of each kind of node without these pods of it and others."""
        quotas = self._pools.node_quotas
        pool = self._pools.tree.of_path(path) if quotas else None
        for kind in () if pool is None else pool.min_share.by_node:
            gone = {pod.uid: pod for pod in quotas.on(kind, pods) if _is_below(pod.pool, path)}
            if not gone:
                continue
            others = (*self._pools.going_pods, *self._taken_pods.values())
            gone |= {pod.uid: pod for pod in quotas.on(kind, others) if _is_below(pod.pool, path)}
            held = Counter[str]()
            for pod in gone.values():
                _add(held, _holding(pod), 1)
            if any(
                held[name] > self._pools.spare_on(path, kind, name, least) for name, least in kind.amounts
            ):
                return False
        return True

    def _stays_due(self, branch: str) -> bool:
        """Whether the claimant's branch, with what starts, has no more than its share."""
        own = self._branch_of_claimant(branch)
        held, share = self._pools.usage.held(own), self._shares.get(own, {})
        return all(
            held.get(name, 0) + self._starting[name] <= share.get(name, 0.0) + EPSILON
            for name in self._wanted
        )

    def _keeps_share(self, branch: str, amounts: Amounts) -> bool:
        """Whether a branch keeps its share."""
        held, share = self._held(branch), self._shares.get(branch, {})
        theirs = self._contended_of(branch, amounts)
        return all(held[name] - amount >= share.get(name, 0.0) - EPSILON for name, amount in theirs)

    def _contended_of(self, branch: str, amounts: Amounts) -> Amounts:
        wanted = self._wanted.keys() & self._contended.get(branch, frozenset())
        return tuple((name, amount) for name, amount in amounts if name in wanted and amount)

    def _is_fair(self, branch: str, amounts: Amounts) -> bool:
        """Whether a branch keeps its share, or has the larger part of it even so."""
        if self._keeps_share(branch, amounts):
            return True
        held, share = self._held(branch), self._shares.get(branch, {})
        own = self._branch_of_claimant(branch)
        mine, my_share = self._pools.usage.held(own), self._shares.get(own, {})
        return all(
            _part(mine.get(name, 0) + self._starting[name], my_share.get(name, 0.0))
            < _part(held[name], share.get(name, 0.0))
            for name, _ in self._contended_of(branch, amounts)
        )

    def _branch_of_claimant(self, branch: str) -> str:
        """The sibling of the victim's branch that leads to the claimant."""
        depth = branch.count(SEPARATOR) + 1
        return SEPARATOR.join(self._task.pool.split(SEPARATOR)[:depth])


def _claimants(task: Task) -> Iterator[tuple[Kind, str]]:
    for kind in KINDS:
        for path in (task.pool, *reversed(prefixes(task.pool))):
            yield kind, path


def _starting(pools: Pools, task: Task, more: Amounts) -> Counter[str]:
    """What the claimant's pools will hold beside what they do."""
    is_counted = pools.usage.group_of(task.uid) is not None
    found = Counter[str]() if is_counted else Counter({**dict(task.spec.requests), PODS: 1})
    _add(found, more, 1)
    return found


def _holding(pod: Task) -> Amounts:
    return (*pod.holding, (PODS, 1))


def _add(counted: Counter[str], amounts: Amounts, sign: int) -> None:
    for name, amount in amounts:
        counted[name] += sign * amount


def _is_below(path: str, ancestor: str) -> bool:
    """Whether a pool is this one, or below it."""
    return path == ancestor or path.startswith(f"{ancestor}{SEPARATOR}")


def _part(amount: float, share: float) -> float:
    return amount / share if share else inf if amount else 0.0


def _asked_on(tasks: Iterable[Task]) -> Mapping[tuple[str, str], Mapping[str, int]]:
    """What pods request that run on a kind of node alone of which a pool has a minimum: by path and kind."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for task in tasks:
        for each in (each for each in task.spec.quotas if each.least):
            amounts = found.setdefault((each.pool, f"{each.key}={each.value}"), Counter())
            amounts[each.resource] += each.amount
    return found


def _note(since: dict[K, float], path: K, is_so: bool, now: float, before: float | None) -> None:
    """Since when something is so; at first since `before`, where that is known."""
    if not is_so:
        since.pop(path, None)
    elif path not in since:
        since[path] = now if before is None else min(before, now)
