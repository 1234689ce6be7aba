"""The shares of DAG jobs, and of the pods beside them, where there are Pools.

A pool is entitled to what the tree gives it, by minima, weights and maxima, level by level, for what its jobs
have still to run. Its jobs and its other pods divide that among them by DRF and the weights of jobs.

Where that is less than a task for each job, the share is given out in whole tasks: jobs that have begun keep
one, then the oldest have one each as long as the share of the pool holds it. Else each of a hundred jobs
would be due with its first task, and pools would get as much as they have jobs, whatever their weights.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from eclectus.accounts.group_shares import SEPARATOR, prefixes
from eclectus.accounts.pools import Pools
from eclectus.maths.fair_shares import dominant_shares
from eclectus.policies.carbyne.planned_job import (
    POOL,
    TOLERANCE,
    Offered,
    PlannedJob,
    PodsOfNamespace,
    Sharing,
    Vector,
    added,
    beside_services,
    services_of,
    wants,
)


class _Members(Struct, gc=False):
    """Of one pool."""

    jobs: list[PlannedJob]
    plain: list[PodsOfNamespace]

    @property
    def all(self) -> list[Sharing]:
        return [*self.jobs, *self.plain]


def set_shares_by_pool(
    pools: Pools, jobs: Iterable[PlannedJob], plain: Mapping[str, PodsOfNamespace], offered: Offered
) -> None:
    """Set `share` of all jobs and of all plain pods, which are given by path."""
    by_pool: dict[str, _Members] = {}
    for job in jobs:
        job.pool = _pool_of(pools, job)
        by_pool.setdefault(job.pool, _Members([], [])).jobs.append(job)
    for path, pods in plain.items():
        if path.startswith(POOL):
            pool = path.removeprefix(POOL).rstrip(SEPARATOR)
            by_pool.setdefault(pool, _Members([], [])).plain.append(pods)
        else:  # above the tree: nothing bounds them
            pods.share = added(pods.waiting, pods.usage)
    shares, _ = pools.shares({path: _needs(members.all, offered) for path, members in by_pool.items()})
    for path, members in by_pool.items():
        share = shares.get(path, {})
        _divide(members, tuple(float(share.get(name, 0.0)) for name in offered.resources))


def altruism_of(pools: Pools, path: str) -> float:
    """How willing the jobs of a pool are to lend: the least of it and of the pools above."""
    on_the_way = (pools.tree.of_path(each) for each in (*prefixes(path), path))
    return min((pool.altruism for pool in on_the_way if pool is not None), default=1.0)


def _pool_of(pools: Pools, job: PlannedJob) -> str:
    """That of the pods of its first stage."""
    known = job.known.job
    asked = known.stages[0].asked_pool if known.stages else ""
    return pools.tree.pool_for(known.namespace, asked or known.pool)


def _needs(members: Sequence[Sharing], offered: Offered) -> dict[str, int]:
    """What all tasks that remain request together."""
    most = wants(members)[1].sum(axis=0)
    return {name: int(amount) for name, amount in zip(offered.resources, most.tolist(), strict=True)}


def _divide(members: _Members, share: Vector) -> None:
    """Divide the share of a pool."""
    sharing, capacity = members.all, np.array(share)
    if len(sharing) == 1:  # as in most pools of namespaces
        shares = capacity[None]
    else:
        work, most, weights = wants(sharing)
        shares = dominant_shares(work, weights, capacity, most)
    alone = np.zeros(len(sharing), dtype=np.intp)
    shares = beside_services(shares, services_of(sharing), capacity, alone)
    for each, found in zip(sharing, shares.tolist(), strict=True):
        each.share = tuple(found)
    _give_whole_tasks(members, share)


def _give_whole_tasks(members: _Members, share: Vector) -> None:
    """Decide which jobs may start a first task that is larger than their shares."""
    left = list(share)
    for pods in members.plain:
        _take(left, map(max, pods.share, pods.usage))
    in_turn = sorted(members.jobs, key=_begun_then_oldest)
    for at, job in enumerate(in_turn):
        needed = tuple(map(max, job.share, job.usage if any(job.usage) else job.largest_demand()))
        job.may_exceed = at == 0 or any(job.usage) or needed == job.share or _holds(left, needed)
        if job.may_exceed:
            _take(left, needed)


def _begun_then_oldest(job: PlannedJob) -> tuple[bool, float, str]:
    return not any(job.usage), job.known.job.created, job.known.job.uid


def _take(left: list[float], amounts: Iterable[float]) -> None:
    left[:] = [rest - amount for rest, amount in zip(left, amounts, strict=True)]


def _holds(left: Sequence[float], needed: Vector) -> bool:
    pairs = zip(left, needed, strict=True)
    return all(amount <= rest + TOLERANCE * max(amount, 1.0) for rest, amount in pairs if amount)
