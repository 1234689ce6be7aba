"""Quotas by kind of node: what a Pool may hold, and gets first, on the nodes with a value of a label.

Which nodes a limit forbids depends on the pods of the pool on others, as with rules about other pods. So a
pod's spec has the quotas that concern it (`Spec.quotas`), and the rules of topology narrow the nodes: where
one kind is full, the pod goes to another, whatever places it. Nothing is counted where no Pool has any.

A minimum of one kind counts for pods that can run on no other: which of its waiting pods will be on such
nodes is not known of the rest. What these request there is counted here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from eclectus.accounts.group_shares import prefixes
from eclectus.accounts.pool_tree import PoolTree
from eclectus.cluster.memo import unfile
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.feasibility.topology.domains import DomainCounts, Domains, pods_of_quota
from eclectus.model.objects import NodeQuota, Spec, Task
from eclectus.model.pool import NodeAmounts, Pool, PoolAmounts

NOTHING: Mapping[str, int] = {}
_Held = tuple[str, str, str, str]
"""Path, key and value of the label, resource."""


class NodeQuotas:
    """What Pools state of nodes with a label, and what they hold there."""

    def __init__(self, cluster: Cluster, tree: PoolTree) -> None:
        self._cluster = cluster
        self._tree = tree
        self._version = -1  # of the tree, for which these are
        self._names: dict[str, None] = {}  # of Pools that state any
        self._counts: dict[_Held, DomainCounts] = {}
        # uid -> the group of a pod that waits, and minima that are for it.
        self._asking: dict[str, tuple[str, tuple[NodeQuota, ...]]] = {}
        self._of_group: dict[str, dict[str, None]] = {}  # group -> their uids
        self._holding: dict[str, None] = {}  # uids of those of them that hold room all the same
        self._muted: dict[str, None] = {}  # groups of which nothing that waits may start
        self._counted: dict[str, tuple[NodeQuota, ...]] = {}  # uid -> minima, of the others
        self._asked = Counter[_Held]()  # what those request

    def __bool__(self) -> bool:
        """Whether any Pool states some."""
        return bool(self._names)

    def see(self, name: str, pool: Pool | None) -> None:
        """The Pool is as given from now on; None: it is gone."""
        if pool is not None and (pool.min_share.by_node or pool.max_share.by_node):
            self._names[name] = None
        else:
            self._names.pop(name, None)

    def of(self, path: str, spec: Spec) -> tuple[NodeQuota, ...]:
        """Those that concern a pod of a pool: of what it requests, by all pools on the path."""
        if not self._names or not path:
            return ()
        found = dict[_Held, NodeQuota]()
        requests = {name: amount for name, amount in (*spec.requests, (PODS, 1)) if amount}
        for above in (*prefixes(path), path):
            pool = self._tree.of_path(above)
            if pool is None:
                continue
            for kind in _kinds(pool):
                asks = _asks_for(spec, kind)
                for name in (name for name, _ in kind.amounts if name in requests):
                    at = (above, kind.key, kind.value, name)
                    most, least = _stated(pool.max_share, kind, name), _stated(pool.min_share, kind, name)
                    found[at] = NodeQuota(*at, requests[name], most, (asks and least) or 0)
        return tuple(found.values())

    def held(self, path: str, key: str, value: str, resource: str) -> int:
        """What a pool holds of a resource on nodes of a kind that it or a pool below states."""
        if self._version != self._tree.version:
            self._version = self._tree.version
            self._counts.clear()
        at = (path, key, value, resource)
        counts = self._counts.get(at)
        if counts is None:
            pods = pods_of_quota(self._cluster.pods, path, resource)
            counts = DomainCounts(self._cluster, Domains(self._cluster, key, value), pods, None)
            self._counts[at] = counts
        counts.refresh()
        return counts.total

    def wait(self, task: Task, group: str, *, is_held: bool) -> None:
        """A pending pod of a group that may run was seen; `is_held`: room is held for it."""
        minima = tuple(each for each in task.spec.quotas if each.least)
        if (group, minima) == self._asking.get(task.uid, (group, ())):
            return
        self.leave(task.uid)
        if minima:
            self._asking[task.uid] = group, minima
            self._of_group.setdefault(group, {})[task.uid] = None
            if is_held:
                self._holding[task.uid] = None
            self._count(task.uid)

    def leave(self, uid: str) -> None:
        """The pod is not pending, or may not run now; no error if it was not."""
        asking = self._asking.pop(uid, None)
        if asking is not None:
            unfile(self._of_group, asking[0], uid)
            self._holding.pop(uid, None)
            self._count(uid)

    def hold(self, uid: str) -> None:
        """Room is held for the pod; no error if it does not wait."""
        if uid in self._asking:
            self._holding[uid] = None
            self._count(uid)

    def release(self, uid: str) -> None:
        """No room is held for the pod any more; no error if none was."""
        if uid in self._holding:
            del self._holding[uid]
            self._count(uid)

    def mute(self, group: str, *, is_muted: bool) -> None:
        """Nothing of a group that waits may start, or it may again."""
        if is_muted:
            self._muted[group] = None
        else:
            self._muted.pop(group, None)
        for uid in self._of_group.get(group, ()):
            self._count(uid)

    def _count(self, uid: str) -> None:
        """Count what the pod asks for as it is now: nothing where it holds room, or may not start."""
        group, minima = self._asking.get(uid, ("", ()))
        after = () if uid in self._holding or group in self._muted else minima
        before = self._counted.pop(uid, ())
        if after:
            self._counted[uid] = after
        for quotas, sign in ((before, -1), (after, 1)):
            for each in quotas:
                at = _held_by(each)
                self._asked[at] += sign * each.amount
                if not self._asked[at]:
                    del self._asked[at]

    def lacking(
        self,
        path: str,
        kind: NodeAmounts,
        less: Mapping[str, int] = NOTHING,
        idle: Mapping[str, int] = NOTHING,
    ) -> dict[str, int]:
        """What a pool lacks of its minimum of a kind, as far as pods that may start ask for it: by resource.

        `less`: what of that which is held counts as waiting; `idle`: what waits and does not count.
        """
        found = {}
        for name, least in kind.amounts:
            at, waiting = (path, kind.key, kind.value, name), less.get(name, 0)
            asked = self._asked[at] - idle.get(name, 0)
            found[name] = min(least - self.held(*at) + waiting, asked + waiting)
        return {name: amount for name, amount in found.items() if amount > 0}

    def spare(self, path: str, kind: NodeAmounts, resource: str, least: int) -> int:
        """What a pool holds of a resource there beyond its minimum, or beyond what it needs of that."""
        at = (path, kind.key, kind.value, resource)
        held = self.held(*at)
        return held - min(least, held + self._asked[at])

    def on(self, kind: NodeAmounts, pods: Iterable[Task]) -> list[Task]:
        """Those of these pods that are on nodes of a kind."""
        rows, labels = self._cluster.rows, self._cluster.labels
        places = ((pod, rows.get(pod.node)) for pod in pods)
        return [pod for pod, row in places if row is not None and labels.value(kind.key, row) == kind.value]

    def held_of(self, path: str) -> tuple[NodeAmounts, ...]:
        """What a pool holds of what its minimum and maximum state by node."""
        pool = self._tree.of_path(path) if self._names else None
        return () if pool is None else tuple(self._held_of(path, pool))

    def _held_of(self, path: str, pool: Pool) -> Iterator[NodeAmounts]:
        stated = dict[tuple[str, str], dict[str, None]]()
        for each in _kinds(pool):
            stated.setdefault((each.key, each.value), {}).update(dict.fromkeys(dict(each.amounts)))
        for (key, value), names in sorted(stated.items()):
            amounts = ((name, self.held(path, key, value, name)) for name in sorted(names))
            yield NodeAmounts(key, value, tuple(amounts))


def _held_by(quota: NodeQuota) -> _Held:
    return quota.pool, quota.key, quota.value, quota.resource


def _kinds(pool: Pool) -> Iterator[NodeAmounts]:
    yield from pool.max_share.by_node
    yield from pool.min_share.by_node


def _stated(share: PoolAmounts, kind: NodeAmounts, resource: str) -> int | None:
    alike = (each for each in share.by_node if (each.key, each.value) == (kind.key, kind.value))
    found = (dict(each.amounts) for each in alike)
    return next((amounts[resource] for amounts in found if resource in amounts), None)


def _asks_for(spec: Spec, kind: NodeAmounts) -> bool:
    """Whether pods with this spec run on nodes of the kind alone, by node selector or required affinity."""
    if (kind.key, kind.value) in spec.node_selector:
        return True
    return bool(spec.affinity) and all(
        any((each.key, each.op, each.values) == (kind.key, "In", (kind.value,)) for each in term.expressions)
        for term in spec.affinity or ()
    )
