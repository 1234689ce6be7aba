"""What each pool is entitled to, level by level, kept up to date as what pools can use changes.

A level, the pools below one parent, is divided again only of those resources of which its parent is entitled
to something else, or one of its pools can use something else. So a change costs what the siblings on the way
to the root cost, and then only those levels of which a share has really changed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from eclectus.accounts.group_shares import SEPARATOR
from eclectus.accounts.pool_tree import parent_of
from eclectus.maths.pool_shares import level_shares

Amounts = Mapping[str, int]


class Stated(Protocol):
    """What is stated of each pool, by path; it must not change between two updates of one division."""

    def least_of(self, path: str) -> Amounts:
        """Its minimum share."""

    def most_of(self, path: str) -> Amounts:
        """What it may hold at most."""

    def weight_of(self, path: str) -> float:
        """Its weight among its siblings."""


class _Level:
    """The pools below one parent that can use something, and how much of each resource."""

    __slots__ = ("contended", "divided", "is_stale", "least", "paths", "wanted", "weights")

    def __init__(self) -> None:
        self.paths: list[str] = []  # sorted, so that sums are always of one order
        self.wanted: dict[str, list[int]] = {}  # resource -> how much each can use
        self.least: dict[str, list[int]] = {}
        self.weights: list[float] = []
        self.divided: dict[str, tuple[float, list[float]]] = {}  # resource -> of how much, and the shares
        self.contended: dict[str, None] = {}  # resources that do not suffice
        self.is_stale = False  # other pools are in it than those for which all this is

    def add(self, path: str) -> None:
        """A pool that can use something now."""
        insort(self.paths, path)
        self.is_stale = True

    def remove(self, path: str) -> None:
        """A pool that can use nothing any more."""
        del self.paths[bisect_left(self.paths, path)]
        self.is_stale = True

    def change(self, path: str, before: Amounts, after: Amounts) -> None:
        """A pool can use something else."""
        if self.is_stale or not self.wanted.keys() >= after.keys():
            self.is_stale = True
            return
        at = bisect_left(self.paths, path)
        for name in before.keys() | after.keys():
            amount = after.get(name, 0)
            if self.wanted[name][at] != amount:
                self.wanted[name][at] = amount
                self.divided.pop(name, None)

    def renew(self, demands: Mapping[str, Amounts], stated: Stated) -> None:
        """Derive everything from the pools that are in it."""
        self.is_stale = False
        self.divided.clear()
        self.contended.clear()
        of_each = [demands[path] for path in self.paths]
        minima = [stated.least_of(path) for path in self.paths]
        names = sorted({name for each in of_each for name in each})
        self.wanted = {name: [each.get(name, 0) for each in of_each] for name in names}
        self.least = {name: [each.get(name, 0) for each in minima] for name in names}
        self.weights = [stated.weight_of(path) for path in self.paths]


class Division:
    """What each pool is entitled to of each resource: minima first, then by weight, level by level.

    `shares`: path -> resource -> amount. `contended`: by path, the resources of which a pool and its siblings
    can use more than there is for them. `divided`: how many shares were computed so far.
    """

    def __init__(self, stated: Stated) -> None:
        self._stated = stated
        self._levels: dict[str, _Level] = {}  # by the path of the parent
        self._needs: dict[str, Amounts] = {}  # by path, as they were given
        self._demands: dict[str, Amounts] = {}  # by path, no more than a pool may hold
        self._sums: dict[str, dict[str, int]] = {}  # by path, what the pools below can use together
        self.shares: dict[str, dict[str, float]] = {}
        self.contended: dict[str, AbstractSet[str]] = {}
        self.divided = 0

    def update(self, needs: Mapping[str, Amounts | None], total: Mapping[str, float]) -> set[str]:
        """The pools whose shares are others now.

        `needs`: what pools without children can use, of those for which that has changed; None: nothing any
        more. `total`: what there is for all pools.
        """
        touched = {""}
        for path, amounts in needs.items():
            if amounts is None:
                self._needs.pop(path, None)
            else:
                self._needs[path] = amounts
            if path not in self._sums:  # a pool with others below it can use what these can
                self._set_demand(path, amounts, touched)
        return self._divide(touched, total)

    def _set_demand(self, path: str, amounts: Amounts | None, touched: set[str]) -> None:
        """`touched`: to which the parents are added whose levels are to be divided again."""
        before, after = self._demands.get(path), None if amounts is None else self._bounded(path, amounts)
        if before == after:
            return
        parent = parent_of(path)
        touched.add(parent)
        level = self._levels.setdefault(parent, _Level())
        if after is None:
            level.remove(path)
            known: dict[str, Any]
            for known in (self._demands, self.shares, self.contended):
                known.pop(path, None)
            if not level.paths:
                del self._levels[parent]
        else:
            self._demands[path] = after
            if before is None:
                level.add(path)
            else:
                level.change(path, before, after)
        if parent:
            self._add_up(parent, before or {}, after or {})
            is_inner = parent in self._levels
            if not is_inner:
                del self._sums[parent]
            self._set_demand(parent, self._sums[parent] if is_inner else self._needs.get(parent), touched)

    def _add_up(self, parent: str, before: Amounts, after: Amounts) -> None:
        sums = self._sums.setdefault(parent, {})
        for name in before.keys() | after.keys():
            sums[name] = sums.get(name, 0) + after.get(name, 0) - before.get(name, 0)

    def _bounded(self, path: str, amounts: Amounts) -> Amounts:
        most = self._stated.most_of(path)
        return {name: min(amount, most.get(name, amount)) for name, amount in amounts.items()}

    def _divide(self, touched: Iterable[str], total: Mapping[str, float]) -> set[str]:
        """From the root down: the levels that were touched, and those whose parents are entitled to else."""
        found, todo = set[str](), [path for path in touched if path in self._levels]
        heapify(todo)
        while todo:
            parent = heappop(todo)
            if todo and todo[0] == parent:
                continue  # it stands there twice
            of_parent = self.shares.get(parent, {}) if parent else total
            changed = self._divide_level(self._levels[parent], of_parent)
            found |= changed
            for path in changed:
                if path in self._levels:
                    heappush(todo, path)
        return found

    def _divide_level(self, level: _Level, total: Mapping[str, float]) -> set[str]:
        changed = set[str]()
        if level.is_stale:
            level.renew(self._demands, self._stated)
            for path in level.paths:
                kept = {
                    name: each for name, each in self.shares.get(path, {}).items() if name in level.wanted
                }
                self.shares[path], self.contended[path] = kept, level.contended.keys()
        for name, wanted in level.wanted.items():
            amount, known = total.get(name, 0.0), level.divided.get(name)
            if known is not None and known[0] == amount:
                continue
            self.divided += len(wanted)
            found = level_shares(amount, wanted, level.least[name], level.weights)
            if sum(wanted) > amount:
                level.contended[name] = None
            else:
                level.contended.pop(name, None)
            for path, share in zip(level.paths, found, strict=True):
                shares = self.shares[path]
                if shares.get(name) != share:
                    shares[name] = share
                    changed.add(path)
            level.divided[name] = amount, found
        return changed


def pools_below(paths: AbstractSet[str]) -> set[str]:
    """Of these pools, those that have none of the others below them."""
    above = {parent for path in paths for parent in _above(path)}
    return {path for path in paths if path not in above}


def _above(path: str) -> Iterable[str]:
    while SEPARATOR in path:
        path = parent_of(path)
        yield path
