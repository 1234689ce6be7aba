"""What pools demand, counted anew and as plainly as can be: the reference for what is kept up to date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from eclectus.accounts.pools import Pools, pool_group
from eclectus.model.objects import Task


def demand_anew(
    pools: Pools, held: Iterable[Task], waiting: Iterable[Task], unplaceable: Collection[str]
) -> dict[str, dict[str, int]]:
    """By path, of these pods; `unplaceable`: the uids of those that no node could ever run."""
    amounts: dict[str, Counter[str]] = {}
    running = {pool_group(task) for task in held}
    may_wait = [task for task in waiting if task.uid not in unplaceable]
    admitted = running | _admitted(pools, running, may_wait)
    for task in held:
        amounts.setdefault(task.pool, Counter()).update({**dict(task.holding), "pods": 1})
    for task in waiting:
        amounts.setdefault(task.pool, Counter())
    for task in may_wait:
        is_suspended = any(each.suspended for each in pools.bounds_of(task.pool))
        if pool_group(task) in admitted and not is_suspended:
            amounts[task.pool].update({**dict(task.spec.requests), "pods": 1})
    return _bottom_up(pools, amounts)


def _admitted(pools: Pools, running: set[str], waiting: Iterable[Task]) -> set[str]:
    """The jobs that may start beside those that run, one after the other."""
    first: dict[str, tuple[float, float, str]] = {}
    for task in waiting:
        group = pool_group(task)
        entry = (-task.priority, task.created, group)
        first[group] = min(first.get(group, entry), entry)
    admitted, jobs = set[str](), Counter(path for group in running for path in _above(group))
    for _, _, group in sorted(first.values()):
        bounds = pools.bounds_of(group.rpartition("/")[0])
        limits = [each for each in bounds if each.jobs is not None]
        is_suspended = any(each.suspended for each in bounds)
        if group in running or is_suspended or any(jobs[each.path] >= (each.jobs or 0) for each in limits):
            continue
        admitted.add(group)
        jobs.update(_above(group))
    return admitted


def _bottom_up(pools: Pools, amounts: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    every = {path for pool in amounts for path in (pool, *_above(pool))}
    found: dict[str, dict[str, int]] = {}
    for path in sorted(every, reverse=True):
        of_it, most = amounts.get(path, Counter()), pools.most_of(path)
        found[path] = {name: min(amount, most.get(name, amount)) for name, amount in of_it.items() if amount}
        if "/" in path:
            amounts.setdefault(path.rpartition("/")[0], Counter()).update(found[path])
        found[path] = {name: amount for name, amount in found[path].items() if amount}
    return found


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:at]) for at in range(1, len(parts))]
