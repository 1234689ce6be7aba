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
from eclectus.accounts.pool_shares import Division
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

    jobs: dict[str, PlannedJob] = {}  # by uid
    plain: dict[str, PodsOfNamespace] = {}  # by path

    @property
    def all(self) -> list[Sharing]:
        return [*self.jobs.values(), *self.plain.values()]


class SharesByPool:
    """The shares of jobs and plain pods in one tree, kept up to date: a change costs what it changes.

    `pools_divided`: how often a pool has divided its share among its members so far.
    """

    def __init__(self, pools: Pools, offered: Offered) -> None:
        """The tree, and what nodes offer, must not change."""
        self._pools, self._offered = pools, offered
        self._division = Division(pools)
        self._members: dict[str, _Members] = {}  # by the path of their pool
        self._pool_of: dict[str, str] = {}  # by uid of a job, and by path of plain pods
        self.pools_divided = 0

    def update(
        self,
        jobs: Mapping[str, PlannedJob],
        plain: Mapping[str, PodsOfNamespace],
        touched: Iterable[str],
    ) -> tuple[list[str], list[str]]:
        """Set `share` of jobs, which are given by uid, and of plain pods, by path.

        `touched`: uids and paths of those that have come, gone or changed since the last call. Returns the
        uids and the paths of those that have another share, or may start another first task.
        """
        above, dirty = list[str](), dict[str, None]()
        for name in touched:
            self._follow(name, jobs, plain, above, dirty)
        needs = {path: self._needs(path) for path in dirty}
        moved = self._division.update(needs, self._pools.free_totals())
        uids, paths = list[str](), above
        for path in sorted(moved | dirty.keys()):
            if path in self._members:
                self._divide(path, self._members[path], uids, paths)
        return uids, paths

    def _follow(
        self,
        name: str,
        jobs: Mapping[str, PlannedJob],
        plain: Mapping[str, PodsOfNamespace],
        above: list[str],
        dirty: dict[str, None],
    ) -> None:
        """One that has come, gone or changed. `above`: to which it is added if it stands above the tree;
        `dirty`: to which its pools are."""
        before, job, pods = self._pool_of.pop(name, None), jobs.get(name), plain.get(name)
        if before is not None:
            dirty[before] = None
        after = None
        if job is not None:
            after = job.pool = _pool_of(self._pools, job)
        elif pods is not None and name.startswith(POOL):
            after = name.removeprefix(POOL).rstrip(SEPARATOR)
        elif pods is not None:  # nothing bounds them
            pods.share = added(pods.waiting, pods.usage)
            above.append(name)
        if before is not None and before != after:
            self._members[before].jobs.pop(name, None)
            self._members[before].plain.pop(name, None)
        if after is not None:
            dirty[after] = None
            self._pool_of[name] = after
            members = self._members.setdefault(after, _Members({}, {}))
            if job is not None:
                members.jobs[name] = job
            elif pods is not None:
                members.plain[name] = pods

    def _needs(self, path: str) -> dict[str, int] | None:
        """What all tasks that remain in a pool request together; None, and it is forgotten, if none do."""
        members = self._members[path].all
        if not members:
            del self._members[path]
            return None
        most = (0.0,) * len(self._offered.resources)
        for each in members:
            most = added(most, each.remaining()[1])
        return {name: int(amount) for name, amount in zip(self._offered.resources, most, strict=True)}

    def _divide(self, path: str, members: _Members, uids: list[str], paths: list[str]) -> None:
        """Divide the share of a pool. `uids`, `paths`: to which those are added that have another one."""
        self.pools_divided += 1
        before = [(job.share, job.may_exceed) for job in members.jobs.values()]
        of_plain = [pods.share for pods in members.plain.values()]
        share = self._division.shares.get(path, {})
        _divide(members, tuple(float(share.get(name, 0.0)) for name in self._offered.resources))
        for (uid, job), old in zip(members.jobs.items(), before, strict=True):
            if (job.share, job.may_exceed) != old:
                uids.append(uid)
        for (name, pods), old_share in zip(members.plain.items(), of_plain, strict=True):
            if pods.share != old_share:
                paths.append(name)


def altruism_of(pools: Pools, path: str) -> float:
    """How willing the jobs of a pool are to lend: the least of it and of the pools above."""
    on_the_way = (pools.tree.of_path(each) for each in (*prefixes(path), path))
    return min((pool.altruism for pool in on_the_way if pool is not None), default=1.0)


def _pool_of(pools: Pools, job: PlannedJob) -> str:
    """That of the pods of its first stage."""
    known = job.known.job
    asked = known.stages[0].asked_pool if known.stages else ""
    return pools.tree.pool_for(known.namespace, asked or known.pool)


def _divide(members: _Members, share: Vector) -> None:
    """Divide the share of a pool."""
    sharing, capacity = members.all, np.array(share)
    if len(sharing) == 1:  # as in most pools of namespaces
        (pods,) = members.plain.values() or (None,)
        members.all[0].share = share if pods is None else tuple(map(max, share, pods.services))
        _give_whole_tasks(members, share)
        return
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
    for pods in members.plain.values():
        _take(left, map(max, pods.share, pods.usage))
    in_turn = sorted(members.jobs.values(), key=_begun_then_oldest)
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
