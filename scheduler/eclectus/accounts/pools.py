"""Pools: what each holds, waits for, may hold, and is entitled to.

The tree belongs to the engine and not to one profile's Order: whatever places a pod, it asks `limit_on`
before, so no pool ever holds more than its maximum by a decision of this scheduler. Orders rank by it.

Departure from the Hadoop Fair Scheduler: each resource is divided on its own, as pods that are next to start
are compared by the one of which they request the largest part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from math import floor

from msgspec import Struct
from msgspec.structs import replace

from eclectus.accounts.group_shares import SEPARATOR, GroupShares, prefixes
from eclectus.accounts.node_quotas import NodeQuotas
from eclectus.accounts.pool_demand import PoolDemand
from eclectus.accounts.pool_shares import Division, pools_below
from eclectus.accounts.pool_tree import PoolTree, parent_of
from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.model.objects import Amounts, NodeQuota, Spec, Task
from eclectus.model.pool import NO_AMOUNTS, NodeAmounts, Pool, PoolAmounts

_Amounts = Mapping[str, int]


class Limit(Struct, frozen=True, gc=False):
    """Why a pod may not start in its pool now: the first pool on its path that has no room for it.

    `resource`: empty where the pool is suspended; `jobs` where so many jobs run already.
    """

    pool: str
    resource: str = ""
    held: int = 0
    most: int = 0
    nodes: str = ""  # a label with its value, where it limits what is held on these nodes alone

    def __str__(self) -> str:
        if not self.resource:
            return f"pool {self.pool} is suspended"
        if self.resource == JOBS:
            return f"pool {self.pool} runs {self.held} of at most {self.most} jobs"
        unit = "m" if self.resource == "cpu" else ""
        where = f" on nodes with {self.nodes}" if self.nodes else ""
        return f"pool {self.pool} holds {self.held}{unit} of at most {self.most}{unit} {self.resource}{where}"


JOBS = "jobs"


class Bound(Struct, frozen=True, gc=False):
    """What a pool may hold."""

    path: str
    most: _Amounts
    jobs: int | None
    suspended: bool

    def limit(self, held: _Amounts, more: Iterable[tuple[str, int]]) -> Limit | None:
        """The first resource of which it would hold too much with these amounts more."""
        if self.suspended:
            return Limit(self.path)
        for name, amount in more:
            most = self.most.get(name)
            if most is not None and held.get(name, 0) + amount > most:
                return Limit(self.path, name, held.get(name, 0), most)
        return None


class Pools:
    """What pools hold, wait for and may hold: an account that counts pods by pool and job."""

    def __init__(self, cluster: Cluster) -> None:
        self.tree = PoolTree()
        self.node_quotas = NodeQuotas(cluster, self.tree)
        self._cluster = cluster
        self._usage = GroupShares(cluster, pool_group, _no_fault, by_path=True)
        self._going = GroupShares(cluster, pool_group, _no_fault, by_path=True)
        self._going_pods: dict[str, Task] = {}  # by uid
        self.unplaceable = GroupShares(cluster, pool_group, _no_fault)  # of what waits: what fits no node
        self._unplaceable_pods: dict[str, Task] = {}  # by uid
        self._running: dict[str, int] = {}  # path -> jobs of which a pod holds room
        # By path: of it and the pools above, if they have any.
        self._bounds: dict[str, tuple[Bound, ...]] = {}
        self._bounded: dict[str, None] = {}  # names of Pools that state limits
        self._amounts: dict[tuple[str, str], _Amounts] = {}  # that are stated, by path and field
        self._ranked_by: dict[str, tuple[_Amounts, float]] = {}  # by path: minimum and weight
        self._shape_cursor = -1
        self._limits_version = 0
        self._has_changed = False  # the tree, and what was derived of it has not been forgotten yet
        self._freed: dict[str, None] = {}
        self._demand = PoolDemand(self)

    # -- the tree ------------------------------------------------------------------------------------

    def set(self, pool: Pool) -> None:
        """The Pool is as given from now on."""
        self.tree.set(pool)
        self.node_quotas.see(pool.name, pool)
        self._has_changed = True
        if _has_limits(pool):
            self._bounded[pool.name] = None
        else:
            self._bounded.pop(pool.name, None)

    def remove(self, name: str) -> None:
        """The Pool does not exist any more."""
        self.tree.remove(name)
        self.node_quotas.see(name, None)
        self._has_changed = True
        self._bounded.pop(name, None)

    def _follow_tree(self) -> None:
        """Limits, weights or minima are others: all that was derived of them is derived anew."""
        self._has_changed = False
        self._forget_amounts()
        self._demand.change_tree()
        self._usage.changes.record_all()
        self._freed.update(dict.fromkeys(self._usage.paths()))

    # -- what is counted -----------------------------------------------------------------------------

    @property
    def changes(self) -> ChangeLog[str]:
        """The groups whose amounts have changed: `pool/job`; all, where nodes may be of another kind."""
        if self._has_changed:
            self._follow_tree()
        if self.node_quotas:
            self.follow()
        return self._usage.changes

    def record_turned(self) -> None:
        """Record in `changes` which groups demand something else by what others hold or wait for."""
        turned = self._demand.take_turned()
        if turned is None:
            self._usage.changes.record_all()
        for group in turned or ():
            self._usage.changes.record(group)

    @property
    def freed(self) -> dict[str, None]:
        """Pools that hold less than before, or may hold more; others take them out."""
        if self._has_changed:
            self._follow_tree()
        return self._freed

    @property
    def usage(self) -> GroupShares:
        """What each group and prefix holds and waits for."""
        return self._usage

    def running_jobs(self, path: str) -> int:
        """How many jobs of a pool have a pod that holds room; a pod without a job is one of its own."""
        return self._running.get(path, 0)

    def hold(self, task: Task) -> None:
        """Count a pod that holds room on a node."""
        if task.pool:
            self.mark_placeable(task.uid)
            group = pool_group(task)
            if not self._usage.held(group):
                self._count_job(group, 1)
            self._usage.hold(task)
            self._change_demand(group, task.uid)
            self.node_quotas.hold(task.uid)
            if task.deleting:
                self.evict(task)

    def going(self, path: str) -> Mapping[str, int]:
        """What a pool holds in pods that are evicted or deleted, and still there."""
        return self._going.held(path)

    @property
    def going_pods(self) -> Iterable[Task]:
        """The pods of all pools that are evicted or deleted, and still there."""
        return self._going_pods.values()

    def evict(self, task: Task) -> None:
        """A pod that holds room is on its way out; no error if it was before, or is in no pool."""
        if self._usage.group_of(task.uid) is not None and self._going.group_of(task.uid) is None:
            self._going.hold(task)
            self._going_pods[task.uid] = task

    def spare(self, uid: str) -> None:
        """The pod stays after all, or is gone; no error if it was not on its way out."""
        if self._going.group_of(uid) is not None:
            self._going.release(uid)
            del self._going_pods[uid]

    def release(self, uid: str) -> None:
        """The pod holds nothing any more; no error if it is in no pool."""
        self.spare(uid)
        group = self._usage.group_of(uid)
        if group is not None:
            self._usage.release(uid)
            self.node_quotas.release(uid)
            if not self._usage.held(group):
                self._count_job(group, -1)
            self._freed.update(dict.fromkeys(prefixes(group)))
            self._change_demand(group, uid)

    def regroup(self, task: Task) -> None:
        """The pod may be in another pool, or of another job."""
        is_going = task.deleting or self._going.group_of(task.uid) is not None
        if self._usage.group_of(task.uid) != (pool_group(task) if task.pool else None):
            self.release(task.uid)
            self.hold(task)
            self._limits_version += 1
        if is_going:
            self.evict(task)

    def wait(self, task: Task) -> None:
        """A pending pod that may run was seen."""
        uid = task.uid
        if not task.pool:
            self.leave(uid)
            return
        group, before = pool_group(task), self._usage.waits_in(uid)
        self._usage.wait(task)
        self._demand.see(task, group)
        if before is not None and before != group:
            self._demand.change(before)
        if uid in self._unplaceable_pods:
            self._unplaceable_pods[uid] = task
            self.unplaceable.wait(task)
        else:
            self.node_quotas.wait(task, group, is_held=self._usage.group_of(uid) is not None)

    def leave(self, uid: str) -> None:
        """The pod is not pending, or may not run now."""
        if self._unplaceable_pods.pop(uid, None) is not None:
            self.unplaceable.leave(uid)
        group = self._usage.waits_in(uid)
        self._usage.leave(uid)
        self.node_quotas.leave(uid)
        if group is not None:
            self._demand.change(group)

    def mark_unplaceable(self, task: Task) -> None:
        """No node could ever run the pod, which waits: until `mark_placeable` it is no demand."""
        waits = self._usage.waits_in(task.uid) is not None and self._usage.group_of(task.uid) is None
        if waits and task.uid not in self._unplaceable_pods:
            self._unplaceable_pods[task.uid] = task
            self.unplaceable.wait(task)
            self.node_quotas.leave(task.uid)
            self._note_change(pool_group(task))

    def mark_placeable(self, uid: str) -> None:
        """A node may be able to run the pod, or it is asked about again; no error if that is known."""
        task = self._unplaceable_pods.pop(uid, None)
        if task is not None:
            group = pool_group(task)
            self.unplaceable.leave(uid)
            self.node_quotas.wait(task, group, is_held=False)
            self._note_change(group)

    def _change_demand(self, group: str, uid: str) -> None:
        """A pod of a group has got room or lost it; it may wait in another one, to which it has moved."""
        self._demand.change(group)
        waiting = self._usage.waits_in(uid)
        if waiting is not None and waiting != group:
            self._demand.change(waiting)

    def _note_change(self, group: str) -> None:
        """What a group demands is another amount, although it holds and waits for the same."""
        self._demand.change(group)
        self._usage.changes.record(group)

    def _count_job(self, group: str, sign: int) -> None:
        for path in prefixes(group):
            self._running[path] = self._running.get(path, 0) + sign
            if not self._running[path]:
                del self._running[path]

    # -- limits --------------------------------------------------------------------------------------

    def limit_on(self, task: Task) -> Limit | None:
        """Why a pod may not start now, by the limits of its pools; None where it may.

        A pod that is counted already, such as one that is nominated, needs nothing more: it may start unless
        its pools hold more than they may, because a limit was lowered since.
        """
        if not self._bounded or not task.pool:
            return None
        return Headroom(self).limit_on(task)

    @property
    def limits_version(self) -> int:
        """Another number once limits may differ, or pods that hold room are in other pools; 0: no Pools."""
        if not self.tree:
            return 0
        self.follow()
        return self._limits_version

    def excess_of(self, task: Task, nominated_of_job: int = 1) -> Limit | None:
        """The limit beyond which a pool holds of what this pod requests, whose room is held already.

        `nominated_of_job`: how many pods of its job hold room and are on no node.
        """
        if not self._bounded or not task.pool:
            return None
        group = pool_group(task)
        starts_job = self._usage.held(group).get(PODS, 0) <= nominated_of_job
        for bound in self.bounds_of(task.pool):
            held = self._usage.held(bound.path)
            found = bound.limit(held, [(name, 0) for name, _ in (*task.spec.requests, (PODS, 1))])
            running = self.running_jobs(bound.path)
            if found is None and starts_job and bound.jobs is not None and running > bound.jobs:
                found = Limit(bound.path, JOBS, running, bound.jobs)
            if found is not None:
                return found
        return None

    def limit_at(self, path: str, requests: Amounts) -> Limit | None:
        """Why nothing that requests this may start in a pool, by its own limits alone; of any job."""
        if not self._bounded:
            return None
        bound = next((each for each in self.bounds_of(path) if each.path == path), None)
        return None if bound is None else bound.limit(self._usage.held(path), (*requests, (PODS, 1)))

    def bounds_of(self, path: str) -> tuple[Bound, ...]:
        """What limits a pool: itself, then those above it, as far as they state limits."""
        self.follow()
        found = self._bounds.get(path)
        if found is None:
            on_the_way = (self._bound(each) for each in (path, *reversed(prefixes(path))))
            found = self._bounds[path] = tuple(each for each in on_the_way if each is not None)
        return found

    def _bound(self, path: str) -> Bound | None:
        pool = self.tree.of_path(path)
        if pool is None or not _has_limits(pool):
            return None
        return Bound(path, self.most_of(path), pool.running_jobs_most, pool.suspended)

    # -- amounts that are stated -----------------------------------------------------------------------

    def most_of(self, path: str) -> _Amounts:
        """What a pool may hold at most by its own statement: resource -> amount."""
        return self._stated(path, "max_share")

    def least_of(self, path: str) -> _Amounts:
        """The minimum share of a pool: resource -> amount."""
        return self._stated(path, "min_share")

    def _stated(self, path: str, field: str) -> _Amounts:
        self.follow()
        known = self._amounts.get((path, field))
        if known is None:
            pool = self.tree.of_path(path)
            stated: PoolAmounts = NO_AMOUNTS if pool is None else getattr(pool, field)
            known = self._amounts[path, field] = self._in_numbers(path, stated)
        return known

    def follow(self) -> None:
        """Take in what has changed of the tree, and of what nodes offer: percentages are of that."""
        if self._has_changed:
            self._follow_tree()
        if self._cluster.shape.head != self._shape_cursor:
            self._shape_cursor = self._cluster.shape.head
            self._forget_amounts()
            if self.node_quotas:
                self._usage.changes.record_all()

    def _forget_amounts(self) -> None:
        self._demand.change_amounts()
        self._limits_version += 1
        self._bounds.clear()
        self._amounts.clear()
        self._ranked_by.clear()

    def _in_numbers(self, path: str, stated: PoolAmounts) -> _Amounts:
        """Stated amounts; percentages are of what the parent may hold, whole numbers and rounded down."""
        found = dict(stated.amounts)
        if stated.percent is not None:
            for name in self._usage.totals:
                if name not in found:
                    found[name] = floor(self._size(parent_of(path), name) * stated.percent / 100)
        return found

    def _size(self, path: str, resource: str) -> float:
        """What a pool may hold at most of a resource: by its own maximum, or else its parent's."""
        while path:
            most = self.most_of(path).get(resource)
            if most is not None:
                return most
            path = parent_of(path)
        return self._usage.totals.get(resource, 0.0)

    def weight_of(self, path: str) -> float:
        """The weight of a pool among its siblings; 1 of one without an object."""
        pool = self.tree.of_path(path)
        return 1.0 if pool is None else pool.weight

    def ranked_by(self, path: str) -> tuple[_Amounts, float]:
        """The minimum share and the weight of a pool: asked for of each pool above a pod that is bound."""
        self.follow()
        found = self._ranked_by.get(path)
        if found is None:
            found = self._ranked_by[path] = self.least_of(path), self.weight_of(path)
        return found

    def tries_out(self, path: str) -> bool:
        """Whether a pool takes nothing back, and only says what it would."""
        pool = self.tree.of_path(path)
        return pool is not None and pool.preemption.dry_run

    # -- shares ----------------------------------------------------------------------------------------

    @property
    def may_wait_in_vain(self) -> bool:
        """Whether any pool is limited, or a pod waits that fits no node ever."""
        return bool(self._bounded or self._unplaceable_pods)

    def limited(self) -> Iterator[str]:
        """The paths of all pools with limits."""
        paths = (self.tree.path_of(name) for name in self._bounded)
        return (path for path in paths if path is not None)

    def demand_of(self, path: str) -> _Amounts:
        """What a pool holds, and its waiting pods request that may start; no more than its maximum."""
        return self._demand.of(path)

    def demand_without(self, tasks: Iterable[Task]) -> Mapping[str, _Amounts]:
        """How much less each pool would demand without these pods, which wait: by path."""
        usage, unplaceable = self._usage, self._unplaceable_pods
        waiting = (each for each in tasks if each.pool and each.uid not in unplaceable)
        return self._demand.without(
            (pool_group(each), {**dict(each.spec.requests), PODS: 1})
            for each in waiting
            if usage.group_of(each.uid) is None
        )

    def lacking_on(self, path: str, kind: NodeAmounts, less: _Amounts, idle: _Amounts) -> Mapping[str, int]:
        """What a pool lacks of its minimum of a kind of node, as far as its pods may start: by resource.

        `less`: what of that which is held counts as waiting; `idle`: what waits and does not count.
        """
        self._demand.refresh()
        return self.node_quotas.lacking(path, kind, less, idle)

    def spare_on(self, path: str, kind: NodeAmounts, resource: str, least: int) -> int:
        """What a pool holds on a kind of node beyond its minimum, or beyond what it needs of that."""
        self._demand.refresh()
        return self.node_quotas.spare(path, kind, resource, least)

    def part_of_minimum(self, path: str, spec: Spec) -> float:
        """The least part that a pool has of its minimum, of what is requested; 1 where it has all it needs.

        It needs no more than its minimum, and than it holds and its waiting pods request. `spec`: of one that
        waits; where it asks for a kind of node, the pool's minimum of that counts too.
        """
        least = self.least_of(path)
        if not least and not spec.quotas:
            return 1.0
        parts = [1.0, *(self._part_by_node(each) for each in spec.quotas if each.pool == path and each.least)]
        if not least:
            return min(parts)
        held, demand = self._usage.held(path), self.demand_of(path)
        for name, _ in (*spec.requests, (PODS, 1)):
            needed = min(least.get(name, 0), demand.get(name, 0))
            if held.get(name, 0) < needed:
                parts.append(held.get(name, 0) / least[name])
        return min(parts)

    def _part_by_node(self, quota: NodeQuota) -> float:
        return self.node_quotas.held(quota.pool, quota.key, quota.value, quota.resource) / quota.least

    def shares(self) -> tuple[dict[str, dict[str, float]], dict[str, AbstractSet[str]]]:
        """What each pool with demand is entitled to: path -> resource -> amount. O(pools x resources).

        And of which resources a pool and its siblings demand more than there is for them, by path.
        """
        pools = {path for group in self._usage.paths() for path in prefixes(group)}
        division = Division(self)
        division.update({path: self.demand_of(path) for path in pools_below(pools)}, self.free_totals())
        return division.shares, division.contended

    def free_totals(self) -> Mapping[str, float]:
        """What nodes offer, without what pods hold that are in no pool."""
        in_pools, cluster = self._usage.held(""), self._cluster
        found = {}
        for name, total in self._usage.totals.items():
            column = cluster.columns.get(name)
            used = 0.0 if column is None else float(cluster.used[:, column].sum())
            found[name] = max(total - max(used - in_pools.get(name, 0), 0.0), 0.0)
        return found


class Headroom:
    """What pools may still hold if pods start that are asked about here, one after the other."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._more: dict[str, Counter[str]] = {}  # path -> amounts of those that may start
        self._jobs: dict[str, dict[str, None]] = {}  # path -> their jobs that do not run yet

    def limit_on(self, task: Task) -> Limit | None:
        """Why a pod may not start beside those before; None where it may, and then it counts."""
        if not task.pool:
            return None
        if self._pools.usage.group_of(task.uid) is not None:
            return self._pools.excess_of(task)
        bounds, wanted = self._pools.bounds_of(task.pool), (*task.spec.requests, (PODS, 1))
        for bound in bounds:
            held = self._pools.usage.held(bound.path)
            more = self._more.get(bound.path)
            found = bound.limit(held if more is None else more + Counter(held), wanted)
            if found is not None and found.resource:  # as of now, whatever is to start besides
                found = replace(found, held=held.get(found.resource, 0))
            if found is None and bound.jobs is not None:
                found = self._limit_of_jobs(bound.path, bound.jobs, pool_group(task))
            if found is not None:
                return found
        for bound in bounds:
            self._count(bound.path, wanted, pool_group(task))
        return None

    def _limit_of_jobs(self, path: str, most: int, group: str) -> Limit | None:
        jobs = self._jobs.get(path, {})
        running = self._pools.running_jobs(path)
        if running + len(jobs) < most or group in jobs or self._pools.usage.held(group):
            return None
        return Limit(path, JOBS, running, most)

    def _count(self, path: str, amounts: Amounts, group: str) -> None:
        more = self._more.setdefault(path, Counter())
        for name, amount in amounts:
            more[name] += amount
        if not self._pools.usage.held(group):
            self._jobs.setdefault(path, {})[group] = None


def limit_together(pools: Pools, tasks: Iterable[Task], needed: int) -> Limit | None:
    """What keeps so many of the pods from starting together; None where their pools have room."""
    headroom = Headroom(pools)
    limits = [headroom.limit_on(task) for task in tasks]
    return None if limits.count(None) >= needed else next(each for each in limits if each is not None)


def _has_limits(pool: Pool) -> bool:
    return bool(pool.max_share) or pool.suspended or pool.running_jobs_most is not None


def _no_fault(message: str) -> None:
    raise AssertionError(message)  # `pool_group` is no policy's


def pool_group(task: Task) -> str:
    """The path by which a pod is counted: its pool, then its job, or itself where it has none."""
    return f"{task.pool}{SEPARATOR}{task.job or task.uid}" if task.pool else ""
