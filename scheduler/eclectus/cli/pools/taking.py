"""Which pools may be taken from, by what the status of Pools says: the scheduler decides by what is newer.

As in reclaim, a pool takes from a leaf that has more than its share of what the claimant lacks, as has the
branch in which that leaf is, where the paths of both part. Minima, budgets and run times protect single pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from eclectus.api.pool import Pool, Quantities
from eclectus.kube.requests import FieldError, parsed

Names = frozenset[str]


class Taking(NamedTuple):
    """What a starved pool may do: from whom it takes, and when; None: it never does."""

    pools: tuple[str, ...]
    since: str  # RFC 3339
    after_seconds: float | None


def taking(found: Sequence[Pool]) -> dict[str, Taking]:
    """Of each pool that is starved, by name."""
    by_name = {each.metadata.name: each for each in found}
    children: dict[str, list[str]] = {}
    for name in sorted(by_name):
        children.setdefault(by_name[name].spec.parent, []).append(name)
    above = {name: _names(each.status.held, each.status.share) for name, each in by_name.items()}
    tree = _Tree(by_name, children, above)
    claims = {name: _claim(each) for name, each in by_name.items()}
    return {
        name: Taking(
            tuple(tree.victims(name, _names(by_name[name].status.share, by_name[name].status.held))), *claim
        )
        for name, claim in claims.items()
        if claim is not None
    }


class _Tree(NamedTuple):
    pools: Mapping[str, Pool]
    children: Mapping[str, Sequence[str]]
    above: Mapping[str, Names]  # resources of which a pool holds more than its share

    def victims(self, claimant: str, lacking: Names) -> Iterator[str]:
        """Leaves that have more than their share of what the claimant lacks, as have their branches."""
        for branch in self._beside(claimant):
            of_branch = self.above[branch] & lacking
            left, seen = [branch] if of_branch else [], {branch}
            while left:
                name = left.pop()
                below = [each for each in self.children.get(name, ()) if each not in seen]
                seen.update(below)
                left += below
                is_leaf = not self.children.get(name)
                if is_leaf and self.above[name] & of_branch and self.pools[name].spec.preemption.allow_from:
                    yield name

    def _beside(self, name: str) -> Iterator[str]:
        """The siblings of a pool and of all above it."""
        seen = set[str]()
        while name in self.pools and name not in seen:
            seen.add(name)
            parent = self.pools[name].spec.parent
            yield from (each for each in self.children.get(parent, ()) if each != name)
            name = parent


def _claim(pool: Pool) -> tuple[str, float | None] | None:
    """Since when it is starved, and after how many seconds it claims what it lacks; None if it is not."""
    status, rules = pool.status, pool.spec.preemption
    clocks = [
        (since, seconds)
        for since, seconds in (
            (status.below_min_share_since, rules.min_share_seconds),
            (status.below_fair_share_since, rules.fair_share_seconds),
        )
        if since is not None
    ]
    claiming = [each for each in clocks if each[1] is not None]
    return min(claiming or clocks, key=_due, default=None)


def _due(clock: tuple[str, float | None]) -> float:
    since, seconds = clock
    return datetime.fromisoformat(since).timestamp() + (seconds or 0.0)


def _names(more: Quantities, less: Quantities) -> Names:
    """The resources of which there is more in one than in the other."""
    many, few = _amounts(more), _amounts(less)
    return frozenset(name for name, amount in many.items() if amount > few.get(name, 0))


def _amounts(quantities: Quantities) -> Mapping[str, int]:
    try:
        return parsed(dict(quantities), "")
    except FieldError:  # nothing that a scheduler writes
        return {}
