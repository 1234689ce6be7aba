"""Pools: the tree that cluster admins state, which pod is in which, what each holds and may hold.

The tree belongs to the engine and not to one profile's Order: whatever places a pod, it asks `limit_on`
before, so no pool ever holds more than its maximum by a decision of this scheduler. Orders rank by it.

A pod's pool is a path of names from the root, `research/vision`, and always one without children:

- the pool that its label names, if that pool admits the namespace. A label alone gives no rights: where the
  pool does not admit the namespace, or does not exist, the label counts for nothing;
- else the pool that the namespace's own label names, which only cluster admins set. If there is no such pool,
  or it is not valid, the pods are in `recovery`, so that they neither stand still nor pass for others;
- else `default/<namespace>`.

`default` and `recovery` exist without a Pool object; one of these names gives them weight, shares and limits.
A pool whose parents do not lead to the root, or form a cycle, is not valid. While there is no Pool at all, no
pod is in one, and nothing is counted. Nor are pods with a priority of the system's own ever in one.

Departure from the Hadoop Fair Scheduler: each resource is divided on its own, as pods that are next to start
are compared by the one of which they request the largest part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import floor
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eclectus.accounts.group_shares import SEPARATOR, GroupShares, prefixes
from eclectus.accounts.node_quotas import NodeQuotas
from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.maths.pool_shares import level_shares
from eclectus.model.objects import Amounts, NodeQuota, Pairs, Spec, Task
from eclectus.model.pool import AT_THE_TOP, DEFAULT, NO_AMOUNTS, RECOVERY, Pool, PoolAmounts

SYSTEM_PRIORITY = 2_000_000_000  # of system-cluster-critical: such pods stand above the tree
DEPTH_MOST = 8  # levels of pools: each costs every bind and every end of a pod

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


class PoolNamespace(NamedTuple):
    """What of a namespace decides in which pools its pods may be."""

    labels: Pairs = ()
    pool: str = ""  # that it names by its own label


UNKNOWN_NAMESPACE = PoolNamespace()


class PoolTree:
    """The Pools that there are: their paths, who may use them, and their amounts.

    Paths are derived when the first is asked for after a change: many Pools that come together cost as one.
    """

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._is_stale = False  # of what is derived
        self._paths: dict[str, str] = {}  # by name, of those that are valid
        self._by_path: dict[str, Pool] = {}
        self._children: dict[str, list[str]] = {}  # path -> paths, of pools with an object
        self._namespaces: dict[str, PoolNamespace] = {}  # by name
        self.version = 0  # counts changes of Pools, and of namespaces while there are Pools

    def __bool__(self) -> bool:
        return bool(self._pools)

    def __iter__(self) -> Iterator[Pool]:
        return iter(self._pools.values())

    def of_name(self, name: str) -> Pool | None:
        """The Pool of this name; None if there is none."""
        return self._pools.get(name)

    def of_path(self, path: str) -> Pool | None:
        """The Pool of this path; None for one without an object."""
        if self._is_stale:
            self._derive()
        return self._by_path.get(path)

    def path_of(self, name: str) -> str | None:
        """The path of a Pool; None if there is none of this name, or it is not valid."""
        if self._is_stale:
            self._derive()
        return self._paths.get(name)

    def set(self, pool: Pool) -> None:
        """The Pool is as given from now on."""
        self._pools[pool.name] = pool
        self._is_stale = True
        self.version += 1

    def remove(self, name: str) -> None:
        """The Pool does not exist any more; no error if it is not known."""
        if self._pools.pop(name, None) is not None:
            self._is_stale = True
            self.version += 1

    def namespace(self, name: str) -> PoolNamespace:
        """What is known of a namespace."""
        return self._namespaces.get(name, UNKNOWN_NAMESPACE)

    def set_namespace(self, name: str, namespace: PoolNamespace | None) -> None:
        """What is known of a namespace from now on; None: it is gone."""
        if namespace is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = namespace
        if self._pools:
            self.version += 1

    def _derive(self) -> None:
        self._is_stale = False
        found = ((name, self._path(name)) for name in self._pools)
        self._paths = {name: path for name, path in found if path}
        self._by_path = {path: self._pools[name] for name, path in self._paths.items()}
        self._children = {}
        for path in self._by_path:
            self._children.setdefault(_parent(path), []).append(path)

    def _path(self, name: str) -> str:
        """The path of a Pool; empty if it does not lead to the root."""
        names = list[str]()
        while name and name not in names and name in self._pools and len(names) < DEPTH_MOST:
            names.append(name)
            name = "" if name in AT_THE_TOP else self._pools[name].parent
        return "" if name else SEPARATOR.join(reversed(names))

    def pool_of(self, task: Task) -> str:
        """The path of the pool that a pod is in; empty if there are no Pools, or it stands above them."""
        if not self._pools or task.priority >= SYSTEM_PRIORITY:
            return ""
        return self.pool_for(task.namespace, task.asked_pool)

    def pool_for(self, name: str, asked: str) -> str:
        """The path of the pool of a namespace's pods that ask for this Pool; there are Pools."""
        if self._is_stale:
            self._derive()
        namespace = self.namespace(name)
        if asked and (path := self._admitting(asked, name, namespace)):
            return path
        if namespace.pool:
            path = self._paths.get(namespace.pool, "")
            return path if path and path not in self._children and namespace.pool != DEFAULT else RECOVERY
        return f"{DEFAULT}{SEPARATOR}{name}"

    def _admitting(self, name: str, namespace: str, known: PoolNamespace) -> str:
        """The path of this pool if pods of the namespace may be in it; otherwise empty."""
        path = self._paths.get(name, "")
        has_place = path and path not in self._children
        return path if has_place and self._admits(name, namespace, known) else ""

    def _admits(self, name: str, namespace: str, known: PoolNamespace) -> bool:
        pool = self._pools.get(name)
        if pool is None or name == DEFAULT:
            return False
        return known.pool == name or pool.admits(namespace, dict(known.labels))

    def refusal(self, task: Task) -> str:
        """Why a pod, in its pool of now, is not in the one that its label names; empty if it is.

        Of a Pool that does not admit it is not said whether it exists.
        """
        name, path = task.asked_pool, self.path_of(task.asked_pool)
        if not name or not task.pool or path == task.pool:
            return ""
        if not self._admits(name, task.namespace, self.namespace(task.namespace)):
            why = f"no Pool {name} admits pods of namespace {task.namespace}"
        elif path is None:
            why = f"Pool {name} is not valid, as its condition says"
        else:
            why = f"Pool {name} has pools below it, and pods are in those alone"
        return f"{why}, so its label does not count, and it is in pool {task.pool}"


class Pools:
    """What pools hold, wait for and may hold: an account that counts pods by pool and job."""

    def __init__(self, cluster: Cluster) -> None:
        self.tree = PoolTree()
        self.node_quotas = NodeQuotas(cluster, self.tree)
        self._cluster = cluster
        self._usage = GroupShares(cluster, pool_group, _no_fault, by_path=True)
        self._going = GroupShares(cluster, pool_group, _no_fault, by_path=True)
        self._going_pods: dict[str, Task] = {}  # by uid
        self._running: dict[str, int] = {}  # path -> jobs of which a pod holds room
        # By path: of it and the pools above, if they have any.
        self._bounds: dict[str, tuple[Bound, ...]] = {}
        self._bounded: dict[str, None] = {}  # names of Pools that state limits
        self._amounts: dict[tuple[str, str], _Amounts] = {}  # that are stated, by path and field
        self._shape_cursor = -1
        self._limits_version = 0
        self._has_changed = False  # the tree, and what was derived of it has not been forgotten yet
        self._freed: dict[str, None] = {}

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
        if self._has_changed:
            self._has_changed = False
            self._forget_amounts()
            self._usage.changes.record_all()
            self._freed.update(dict.fromkeys(self._usage.paths()))

    # -- what is counted -----------------------------------------------------------------------------

    @property
    def changes(self) -> ChangeLog[str]:
        """The groups whose amounts have changed: `pool/job`; all, where nodes may be of another kind."""
        self._follow_tree()
        if self.node_quotas:
            self._follow_nodes()
        return self._usage.changes

    @property
    def freed(self) -> dict[str, None]:
        """Pools that hold less than before, or may hold more; others take them out."""
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
            group = pool_group(task)
            if not self._usage.held(group):
                self._count_job(group, 1)
            self._usage.hold(task)
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
        if task.pool:
            self._usage.wait(task)
            self.node_quotas.wait(task, is_held=self._usage.group_of(task.uid) is not None)
        else:
            self.leave(task.uid)

    def leave(self, uid: str) -> None:
        """The pod is not pending, or may not run now."""
        self._usage.leave(uid)
        self.node_quotas.leave(uid)

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
        self._follow_nodes()
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
        self._follow_nodes()
        found = self._bounds.get(path)
        if found is None:
            on_the_way = (self._bound(each) for each in (path, *reversed(list(prefixes(path)))))
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
        self._follow_nodes()
        known = self._amounts.get((path, field))
        if known is None:
            pool = self.tree.of_path(path)
            stated: PoolAmounts = NO_AMOUNTS if pool is None else getattr(pool, field)
            known = self._amounts[path, field] = self._in_numbers(path, stated)
        return known

    def _follow_nodes(self) -> None:
        """Percentages are of what nodes offer."""
        self._follow_tree()
        if self._cluster.shape.head != self._shape_cursor:
            self._shape_cursor = self._cluster.shape.head
            self._forget_amounts()
            if self.node_quotas:
                self._usage.changes.record_all()

    def _forget_amounts(self) -> None:
        self._limits_version += 1
        self._bounds.clear()
        self._amounts.clear()

    def _in_numbers(self, path: str, stated: PoolAmounts) -> _Amounts:
        """Stated amounts; percentages are of what the parent may hold, whole numbers and rounded down."""
        found = dict(stated.amounts)
        if stated.percent is not None:
            for name in self._usage.totals:
                if name not in found:
                    found[name] = floor(self._size(_parent(path), name) * stated.percent / 100)
        return found

    def _size(self, path: str, resource: str) -> float:
        """What a pool may hold at most of a resource: by its own maximum, or else its parent's."""
        while path:
            most = self.most_of(path).get(resource)
            if most is not None:
                return most
            path = _parent(path)
        return self._usage.totals.get(resource, 0.0)

    def weight_of(self, path: str) -> float:
        """The weight of a pool among its siblings; 1 of one without an object."""
        pool = self.tree.of_path(path)
        return 1.0 if pool is None else pool.weight

    def tries_out(self, path: str) -> bool:
        """Whether a pool takes nothing back, and only says what it would."""
        pool = self.tree.of_path(path)
        return pool is not None and pool.preemption.dry_run

    # -- shares ----------------------------------------------------------------------------------------

    def demand_of(self, path: str) -> _Amounts:
        """What a pool holds and its waiting pods request, no more than its maximum."""
        most = self.most_of(path)
        return {name: min(amount, most.get(name, amount)) for name, amount in self._needed(path).items()}

    def _needed(self, path: str) -> Counter[str]:
        """What a pool holds and its waiting pods request, whatever it may hold."""
        return Counter(self._usage.held(path)) + Counter(self._usage.waiting(path))

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

    def shares(
        self, needs: Mapping[str, _Amounts] | None = None
    ) -> tuple[dict[str, dict[str, float]], dict[str, AbstractSet[str]]]:
        """What each pool with demand is entitled to: path -> resource -> amount. O(pools x resources).

        And of which resources a pool and its siblings demand more than there is for them, by path.
        `needs`: what pools without children can use; None: what their pods hold and request.
        """
        if needs is None:
            pools = {path for group in self._usage.paths() for path in prefixes(group)}
        else:
            pools = {path for each in needs for path in (each, *prefixes(each))}
        demands = self._demands(sorted(pools), needs)
        children: dict[str, list[str]] = {}
        for path in sorted(pools):  # a parent is sorted before its children
            children.setdefault(_parent(path), []).append(path)
        shares: dict[str, dict[str, float]] = {"": dict(self._free_totals())}
        contended: dict[str, AbstractSet[str]] = {}
        for path in ("", *sorted(pools)):
            below = children.get(path, ())
            found = self._divide(shares, path, below, demands)
            contended.update(dict.fromkeys(below, found))
        del shares[""]
        return shares, contended

    def _demands(self, pools: Sequence[str], needs: Mapping[str, _Amounts] | None) -> dict[str, _Amounts]:
        """What each pool can use: below a maximum what its children can."""
        demands: dict[str, Counter[str]] = {}
        for path in reversed(pools):
            demand = demands.get(path)
            if demand is None:  # without children
                demand = demands[path] = self._needed(path) if needs is None else Counter(needs[path])
            for name, most in self.most_of(path).items():
                demand[name] = min(demand[name], most)
            if parent := _parent(path):
                demands[parent] = demands.get(parent, Counter()) + demand
        return {path: dict(demand) for path, demand in demands.items()}

    def _divide(
        self,
        shares: dict[str, dict[str, float]],
        parent: str,
        paths: Sequence[str],
        demands: Mapping[str, _Amounts],
    ) -> AbstractSet[str]:
        """Divide what a pool is entitled to among its children; the resources that do not suffice."""
        contended: dict[str, None] = {}
        minima, weights = [self.least_of(path) for path in paths], [self.weight_of(path) for path in paths]
        shares.update((path, {}) for path in paths)
        for name in sorted({name for path in paths for name in demands[path]}):
            total, wanted = shares[parent].get(name, 0.0), [demands[path].get(name, 0) for path in paths]
            if sum(wanted) > total:
                contended[name] = None
            divided = level_shares(total, wanted, [each.get(name, 0) for each in minima], weights)
            for path, share in zip(paths, divided, strict=True):
                shares[path][name] = share
        return contended.keys()

    def _free_totals(self) -> Mapping[str, float]:
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


def _parent(path: str) -> str:
    return path.rpartition(SEPARATOR)[0]


def pool_group(task: Task) -> str:
    """The path by which a pod is counted: its pool, then its job, or itself where it has none."""
    return f"{task.pool}{SEPARATOR}{task.job or task.uid}" if task.pool else ""
