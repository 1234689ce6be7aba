"""How pools stand: what they hold of what is theirs, for explanations of pods, for lists and for metrics."""

from collections.abc import Iterator
from heapq import nsmallest

from msgspec.structs import replace

from eclectus.accounts.group_shares import SEPARATOR, prefixes
from eclectus.accounts.pool_tree import parent_of
from eclectus.cluster.resources import PODS
from eclectus.engine.queues.class_queues import PendingClass, SortedClassQueue
from eclectus.engine.state import State
from eclectus.framework import Order
from eclectus.model import explanation
from eclectus.model.objects import NodeQuota, Spec, Task
from eclectus.model.pool import DEFAULT

AHEAD_MOST = 3  # pools named of those that come before one of the pod's own


def standing_of(state: State, task: Task, now: float) -> explanation.PoolStanding | None:
    """How the pool of a pod stands, in the resources that the pod requests; None if it is in none."""
    if not task.pool:
        return None
    wanted = [name for name, amount in task.spec.requests if amount] or [PODS]
    found = _standing(state, task.pool, wanted, now)
    by_node = tuple(_on_nodes(state, each) for each in task.spec.quotas if each.pool == task.pool)
    return replace(found, resources=found.resources + by_node)


def _on_nodes(state: State, quota: NodeQuota) -> explanation.PoolResource:
    return explanation.PoolResource(
        resource=quota.resource,
        held=state.pools.node_quotas.held(quota.pool, quota.key, quota.value, quota.resource),
        least=quota.least,
        most=quota.most,
        nodes=f"{quota.key}={quota.value}",
    )


def pools_ahead(state: State, task: Task) -> tuple[explanation.PoolsAhead, ...]:
    """From the root down, the siblings of a pod's pools of which its Order offers pods earlier.

    Not those whose pods are held back, or could run on no node. Empty where a limit keeps the pod waiting,
    and where its Order does not compare pools. O(class queues).
    """
    order = state.profiles[task.profile].order
    compares = order.traits.ranks_prefixes and "pools" in order.traits.needs
    if not task.pool or not compares or state.pools.limit_on(task) is not None:
        return ()
    first = _first_beside(state, task, order)
    levels = (_before(state, own, task.spec, order, first) for own in (*prefixes(task.pool), task.pool))
    return tuple(level for level in levels if level.pools)


_Rank = tuple[float, ...]


def _first_beside(state: State, task: Task, order: Order) -> dict[str, tuple[_Rank, Spec]]:
    """The least rank of each sibling of a pod's pools, and what that pod requests for which it has it."""
    found = dict[str, tuple[_Rank, Spec]]()
    for pending in state.class_queues:
        if pending.profile != task.profile or pending.never_feasible:
            continue
        spec, _ = pending.class_key
        ranked = set[str]()  # a sibling has one rank for all pods of a class
        for group, queue in pending.queues.items():
            path = _beside(task.pool, group)
            if path and path not in ranked and _is_offered(state, pending, queue):
                ranked.add(path)
                rank = tuple(order.rank_prefix(state.view, path, spec))
                if path not in found or rank < found[path][0]:
                    found[path] = rank, spec
    return found


def _beside(path: str, group: str) -> str:
    """The first prefix of a group that is none of this path; empty if there is none."""
    names = group.split(SEPARATOR)
    for at, (own, other) in enumerate(zip(path.split(SEPARATOR), names, strict=False), 1):
        if own != other:
            return SEPARATOR.join(names[:at])
    return ""


def _is_offered(state: State, pending: PendingClass, queue: SortedClassQueue) -> bool:
    return pending.withheld(queue) is None and state.pools.limit_on(next(iter(queue))) is None


def _before(
    state: State, own: str, spec: Spec, order: Order, first: dict[str, tuple[_Rank, Spec]]
) -> explanation.PoolsAhead:
    """The siblings of one of its pools that come before it for a pod of this spec."""
    parent, rank = parent_of(own), tuple(order.rank_prefix(state.view, own, spec))
    before = sorted((of[0], path) for path, of in first.items() if parent_of(path) == parent and of[0] < rank)
    shown = tuple(_ahead(state, path, first[path][1]) for _, path in before[:AHEAD_MOST])
    return explanation.PoolsAhead(parent, shown, len(before) - len(shown))


def _ahead(state: State, path: str, spec: Spec) -> explanation.PoolAhead:
    is_made = state.pools.tree.of_path(path) is not None
    return explanation.PoolAhead(
        path,
        namespace="" if is_made or parent_of(path) != DEFAULT else path.removeprefix(DEFAULT + SEPARATOR),
        waiting_pods=state.pools.usage.waiting(path).get(PODS, 0),
        below_minimum=state.pools.part_of_minimum(path, spec) < 1.0,
    )


def standings(state: State, now: float) -> Iterator[explanation.PoolStanding]:
    """Of every Pool that is valid, in the resources that it holds or demands, the largest pools first."""
    usage = state.pools.usage
    for path in sorted(_paths(state), key=lambda each: (-usage.held(each).get(PODS, 0), each)):
        yield _standing(state, path, sorted(state.pools.demand_of(path)), now)


def standings_page(
    state: State, after: str, most: int, now: float
) -> explanation.Listed[explanation.PoolStanding, str]:
    """The same of so many whose paths come after one, in the order of paths. O(Pools)."""
    paths = [path for path in _paths(state) if path > after]
    shown = nsmallest(most, paths)
    found = tuple(_standing(state, path, sorted(state.pools.demand_of(path)), now) for path in shown)
    return explanation.Listed(found, len(paths) - len(shown), shown[-1] if shown else None)


def _paths(state: State) -> list[str]:
    tree = state.pools.tree
    return [path for pool in tree if (path := tree.path_of(pool.name)) is not None]


def _standing(state: State, path: str, names: list[str], now: float) -> explanation.PoolStanding:
    pools, starvation = state.pools, state.starvation
    held, demand, share = pools.usage.held(path), pools.demand_of(path), starvation.shares.get(path, {})
    least, most = pools.least_of(path), pools.most_of(path)
    below_min, below_share = starvation.below_min_since(path), starvation.below_share_since(path)
    return explanation.PoolStanding(
        path=path,
        resources=tuple(
            explanation.PoolResource(
                resource=name,
                held=held.get(name, 0),
                demand=demand.get(name, 0),
                share=int(share.get(name, 0)),
                least=least.get(name, 0),
                most=most.get(name),
            )
            for name in names
        ),
        waiting_pods=pools.usage.waiting(path).get(PODS, 0),
        running_jobs=pools.running_jobs(path),
        below_minimum=None if below_min is None else max(now - below_min, 0.0),
        below_share=None if below_share is None else max(now - below_share, 0.0),
    )
