"""How pools stand: what they hold of what is theirs, for explanations of pods, for lists and for metrics."""

from collections.abc import Iterator
from heapq import nsmallest

from msgspec.structs import replace

from eclectus.cluster.resources import PODS
from eclectus.engine.state import State
from eclectus.model import explanation
from eclectus.model.objects import NodeQuota, Task


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
