"""Pods and quotas: whose pool a pod is in, as Pools and labels change, and pods that a limit keeps waiting.

A pod that would take its pool beyond a limit leaves its queue and waits here, by the pool that has no room.
So 10,000 such pods cost nothing until that pool holds less or may hold more. Then as many return to their
queues as have room, highest priority first, then by age; a pod that needs less passes one that needs more, so
none waits beside room that it may use. (`order: pools` does not offer pods of a full pool at all. There the
pools' own order decides which is next, and only limits of jobs and suspended pools lead here.)
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import islice

import numpy as np
from msgspec.structs import replace

from eclectus.accounts.pool_tree import UNKNOWN_NAMESPACE, PoolNamespace
from eclectus.accounts.pools import JOBS, Headroom, Limit, Pools, pool_group
from eclectus.cluster.memo import unfile
from eclectus.engine.queues.head_heap import ValueHeap
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import Amounts, Task
from eclectus.model.pool import Pool

PODS_MOST = 1_000  # that are looked at in one step
SHAPES_MOST = 256  # different requests of pods that wait for one pool, of which the first is asked about

_Shape = tuple[str, Amounts]
"""What pods that are refused alike have in common: the job, where jobs are limited, and the requests."""


class PoolMembers:
    """Keeps the pool of each pod up to date.

    When Pools or labels of namespaces change that may move pods, all of them are looked at again, in slices.
    Until the last one nothing is decided: limits would count some pods in the pools of before. What changes
    meanwhile counts only after that, so that Pools that change all the time do not keep pods from starting.
    """

    def __init__(self, pools: Pools, pods: Callable[[], Iterable[Task]]) -> None:
        """`pods`: all that are known, pending ones and those on nodes; a pod may be named twice."""
        self._pools = pools
        self._pods = pods
        self._left: dict[str, None] = {}  # uids, in order
        self._is_all_left = False  # all pods are to be looked at, and are not in `_left` yet
        self._has_begun = False  # some of them are in their pools of now
        self._later: dict[tuple[str, str], Callable[[], None]] = {}  # by kind and name

    def see(self, pool: Pool) -> None:
        """The Pool is as given."""
        self._change(("Pool", pool.name), lambda: self._set(pool))

    def drop(self, name: str) -> None:
        """The Pool is gone."""
        self._change(("Pool", name), lambda: self._remove(name))

    def see_namespace(self, name: str, namespace: PoolNamespace | None) -> None:
        """What is known of a namespace; None: it is gone."""
        if self._pools.tree:
            self._change(("Namespace", name), lambda: self._set_namespace(name, namespace))
        else:
            self._pools.tree.set_namespace(name, namespace)

    @property
    def is_moving(self) -> bool:
        """Whether pods are still to be looked at: until then some are in the pools of before."""
        return bool(self._left or self._is_all_left)

    @property
    def is_changing(self) -> bool:
        """The same, or whether another change waits for that."""
        return self.is_moving or bool(self._later)

    def take(self) -> list[str]:
        """Take out the uids of the next pods to be looked at again, at most PODS_MOST."""
        if not self._left and self._later:
            later, self._later = self._later, {}
            for change in later.values():
                change()
        if self._is_all_left:  # many Pools that come together cost as one
            self._is_all_left, self._left = False, dict.fromkeys(task.uid for task in self._pods())
        taken = list(islice(self._left, PODS_MOST))
        for uid in taken:
            del self._left[uid]
        self._has_begun = bool(self._left)
        return taken

    def resolved(self, task: Task) -> Task:
        """The pod with the pool that it is in, and what that may hold by kind of node."""
        pool = self._pools.tree.pool_of(task)
        quotas = self._pools.node_quotas.of(pool, task.spec)
        if quotas != task.spec.quotas:
            task = replace(task, spec=replace(task.spec, quotas=quotas))
        return task if pool == task.pool else replace(task, pool=pool)

    def _change(self, key: tuple[str, str], change: Callable[[], None]) -> None:
        if self._has_begun:
            self._later.pop(key, None)
            self._later[key] = change
        else:
            change()

    def _set(self, pool: Pool) -> None:
        before = self._pools.tree.of_name(pool.name)
        if before is not None:
            written = {"below_min_since": pool.below_min_since, "below_share_since": pool.below_share_since}
            if replace(before, **written) == pool:  # only its status has changed
                return
        self._pools.set(pool)
        if before is None or _membership(before) != _membership(pool):
            self._is_all_left = True

    def _remove(self, name: str) -> None:
        if self._pools.tree.of_name(name) is not None:
            self._pools.remove(name)
            self._is_all_left = True

    def _set_namespace(self, name: str, namespace: PoolNamespace | None) -> None:
        before = self._pools.tree.namespace(name)
        self._pools.tree.set_namespace(name, namespace)
        if before != (namespace or UNKNOWN_NAMESPACE):
            self._left |= dict.fromkeys(each.uid for each in self._pods() if each.namespace == name)


def _membership(pool: Pool) -> object:
    """What decides which pods are in a pool, and what their specs have of it."""
    by_node = pool.min_share.by_node, pool.max_share.by_node
    return pool.parent, pool.namespaces, pool.selector, by_node


def limits_by_node(task: Task, task_class: TaskClass) -> list[Limit]:
    """The limits that keep a pod off all nodes that could run it; empty where one is left to it.

    The class must be up to date. O(nodes).
    """
    if not task.spec.quotas or task_class.topology is None or not task_class.feasible_count:
        return []
    found = task_class.topology.quotas_at_limit(np.flatnonzero(task_class.feasible))
    return [
        Limit(quota.pool, quota.resource, held, quota.most or 0, f"{quota.key}={quota.value}")
        for quota, held in found
    ]


class HeldBack:
    """The pods that a limit keeps waiting, by the pool that has it."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._of: dict[str, tuple[str, _Shape]] = {}  # uid -> pool and shape
        self._by_pool: dict[str, dict[_Shape, ValueHeap[str]]] = {}
        self._tasks: dict[str, Task] = {}  # by uid
        self._serial = 0

    def __len__(self) -> int:
        return len(self._of)

    def add(self, task: Task, limit: Limit) -> None:
        """The pod waits until the pool of this limit has room."""
        shape = (pool_group(task) if limit.resource == JOBS else "", task.spec.requests)
        self._of[task.uid], self._tasks[task.uid] = (limit.pool, shape), task
        self._serial += 1
        heaps = self._by_pool.setdefault(limit.pool, {})
        heaps.setdefault(shape, ValueHeap()).keep(task.uid, (-task.priority, task.created, self._serial))

    def discard(self, uid: str) -> None:
        """The pod waits here no more; no error if it did not."""
        where = self._of.pop(uid, None)
        if where is not None:
            pool, shape = where
            heap = self._by_pool[pool][shape]
            heap.discard(uid)
            del self._tasks[uid]
            if heap.first() is None:
                unfile(self._by_pool, pool, shape)

    @property
    def may_start(self) -> bool:
        """Whether a pool for which pods wait here has got room, or may have."""
        return bool(self._of) and not self._by_pool.keys().isdisjoint(self._pools.freed)

    def take_ready(self) -> list[Task]:
        """Take out the pods that have room now, one after the other, in pools that have got some."""
        found, headroom = list[Task](), Headroom(self._pools)
        freed = [pool for pool in self._by_pool if pool in self._pools.freed]
        self._pools.freed.clear()
        for pool in freed:
            ready = list(self._take(pool, headroom, PODS_MOST - len(found)))
            found += ready
            if ready:  # those that find no node leave their room to others
                self._pools.freed[pool] = None
        return found

    def _take(self, pool: str, headroom: Headroom, most: int) -> Iterator[Task]:
        shapes = self._by_pool[pool]
        heads = sorted((_first(heap), shape) for shape, heap in shapes.items())[:SHAPES_MOST]
        while heads and most > 0:
            (_, uid), shape = heappop(heads)
            task = self._tasks[uid]
            limit = headroom.limit_on(task)
            if limit is not None and limit.pool == pool:
                continue  # nor is there room for others like it
            self.discard(uid)
            if limit is None:
                most -= 1
                yield task
            else:
                self.add(task, limit)
            if shape in shapes:
                heappush(heads, (_first(shapes[shape]), shape))


def _first(heap: ValueHeap[str]) -> tuple[tuple[float, ...], str]:
    """The value and the uid of the first pod of a heap that has one."""
    found = heap.first()
    assert found is not None  # noqa: S101 - an empty heap is kept nowhere
    return found
