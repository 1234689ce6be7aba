"""What is wrong with Pools that only all of them together show. Pure.

A Pool that cannot be read, or whose minimum is above its own maximum, does not count: the scheduler takes it
for gone. Nor does one count without a way to the top. Minima that exceed what there is of them count as far
as they can be kept.

A percentage is of what the parent may hold at most: by its maximum, or by the next one above it, or else of
the cluster. How large that is, is not known here, so amounts are compared with amounts, and parts of the
cluster with parts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec import structs

from eclectus.api.common import MESSAGE_CHARACTERS, Condition
from eclectus.api.pool import MAX_LEVELS, READY
from eclectus.kube.pools import minimum_problem
from eclectus.model.pool import AT_THE_TOP, Pool, PoolAmounts
from eclectus.model.printed import amount_text

_WALKED = 64  # levels: a way that is longer is too long, whether it is a circle or not
_SHOWN = 10  # pools of a circle that a message names
_ROUNDING = 1.0 + 1e-9
_IDLE = "it does not count until then"


@dataclass(frozen=True)
class Finding:
    """Reason and message of the condition Ready of a Pool."""

    reason: str
    message: str
    is_ready: bool = False


ACCEPTED = Finding("Accepted", "it has its place in the tree", is_ready=True)


def findings(pools: Sequence[Pool], unread: Mapping[str, str]) -> dict[str, Finding]:
    """What to say of each Pool, by name; `unread`: why others cannot be read, by name."""
    found = {name: Finding("InvalidSpec", problem) for name, problem in unread.items()}
    for pool in pools:
        if problem := minimum_problem(pool):
            found[pool.name] = Finding("MinimumAboveMaximum", problem)
    tree = {pool.name: pool for pool in pools if pool.name not in found}
    misplaced = {name: each for name in tree if (each := _misplaced(name, tree, found)) is not None}
    found |= misplaced
    placed = {name: pool for name, pool in tree.items() if name not in misplaced}
    for name, problems in _exceeding(placed).items():
        found[name] = Finding("MinimaExceedParent", "; ".join(problems))
    return dict.fromkeys(tree, ACCEPTED) | found


def updated(
    old: Sequence[Condition], finding: Finding, generation: int, now: str
) -> tuple[Condition, ...] | None:
    """The conditions with Ready as it is found at `now`; None if that changes nothing."""
    message = finding.message[:MESSAGE_CHARACTERS]
    new = Condition(READY, "True" if finding.is_ready else "False", finding.reason, now, message, generation)
    before = next((each for each in old if each.type == READY), None)
    if before is not None and before.status == new.status:
        new = structs.replace(new, last_transition_time=before.last_transition_time)
    if new == before:
        return None
    others = (each for each in old if each.type != READY)
    return tuple(sorted((*others, new), key=lambda each: each.type))


# -- the way to the top ------------------------------------------------------------------------------


def _misplaced(name: str, tree: Mapping[str, Pool], found: Mapping[str, Finding]) -> Finding | None:
    """Why there is no way from a pool to the top; None if there is.

    `found`: of Pools that are not in the tree, because they do not count.
    """
    way: dict[str, None] = {}  # in order
    at = name
    while at not in way and len(way) < _WALKED:
        way[at] = None
        parent = _parent(tree[at])
        if not parent:
            break
        if parent not in tree:
            return _without_parent(at, parent, found, is_its_own=at == name)
        at = parent
    else:
        if at in way:
            return _in_circle([*way][[*way].index(at) :], is_in_it=at == name)
    if len(way) <= MAX_LEVELS:
        return None
    return Finding("TooDeep", f"it is deeper in the tree than the {MAX_LEVELS} levels that count; {_IDLE}")


def _parent(pool: Pool) -> str:
    return "" if pool.name in AT_THE_TOP else pool.parent


def _without_parent(at: str, parent: str, found: Mapping[str, Finding], *, is_its_own: bool) -> Finding:
    whose = f"its parent is {parent}" if is_its_own else f"its ancestor {at} has the parent {parent}"
    why = f"there is no Pool {parent}"
    if parent in found:
        why = f"the Pool {parent} does not count: {found[parent].message}"
    return Finding("NoSuchParent", f"{whose}, but {why}; {_IDLE}")


def _in_circle(circle: Sequence[str], *, is_in_it: bool) -> Finding:
    shown = [*circle[:_SHOWN], *(["..."] if len(circle) > _SHOWN else []), circle[0]]
    whose = "its parents" if is_in_it else "the parents of its ancestors"
    return Finding("Cycle", f"{whose} lead in a circle, {' -> '.join(shown)}; {_IDLE}")


# -- minima and what there is of them ------------------------------------------------------------------


class Size(NamedTuple):
    """An amount of a resource, or a part of what the cluster has of it."""

    number: float
    is_part: bool

    def part(self, percent: float) -> "Size":
        """So much of it."""
        return Size(self.number * percent / 100.0, self.is_part)

    def text(self, resource: str) -> str:
        """For people."""
        if not self.is_part:
            return amount_text(resource, round(self.number))
        return f"{self.number * 100.0:.6g} percent of the cluster" + (f"'s {resource}" if resource else "")


_CLUSTER = Size(1.0, is_part=True)


def _exceeding(tree: Mapping[str, Pool]) -> dict[str, list[str]]:
    """Of the pools whose minima and those of their siblings exceed what there is: how."""
    found, children = defaultdict[str, list[str]](list), defaultdict[str, list[Pool]](list)
    for name in sorted(tree):
        children[_parent(tree[name])].append(tree[name])
    for parent, siblings in children.items():
        for resource, problem in _excesses(tree.get(parent), siblings, tree):
            for each in siblings:
                if _states_minimum(each, resource) and problem not in found[each.name]:
                    found[each.name].append(problem)
        if parent in tree:
            for name, problem in _excesses_by_node(tree[parent], siblings, tree):
                found[name].append(problem)
    return {name: problems for name, problems in found.items() if problems}


def _excesses(
    parent: Pool | None, siblings: Sequence[Pool], tree: Mapping[str, Pool]
) -> Iterator[tuple[str, str]]:
    """Each resource of which the siblings have too large minima, and how; `parent` None: they are at the top.

    An empty name stands for all resources that nobody names.
    """
    whose = "the pools at the top" if parent is None else f"the children of {parent.name}"
    for resource in ("", *sorted(_named([*siblings, *_ancestors(parent, tree)]))):
        minima = [_minimum(each, resource, tree) for each in siblings if _states_minimum(each, resource)]
        is_guaranteed = parent is not None and _states_minimum(parent, resource)
        bound = (
            _minimum(parent, resource, tree) if parent and is_guaranteed else _most(parent, resource, tree)
        )
        total = Size(sum(each.number for each in minima if each.is_part == bound.is_part), bound.is_part)
        if total.number <= bound.number * _ROUNDING:
            continue
        words = f"the minima of {whose} add up to {total.text(resource)}"
        if parent is not None:
            has = "has a minimum of" if is_guaranteed else "may hold"
            words += f", {parent.name} {has} {bound.text(resource)}"
        yield resource, words


def _excesses_by_node(
    parent: Pool, siblings: Sequence[Pool], tree: Mapping[str, Pool]
) -> Iterator[tuple[str, str]]:
    """Pools whose minima by kind of node, with those of their siblings, exceed the parent's, and how."""
    minima = [(each.name, _by_node(each.min_share)) for each in siblings]
    guaranteed = _by_node(parent.min_share)
    allowed = dict[tuple[str, str], int]()
    for above in _ancestors(parent, tree):
        allowed = _by_node(above.max_share) | allowed
    for kind, resource in sorted({at for _, stated in minima for at in stated}):
        total = sum(stated.get((kind, resource), 0) for _, stated in minima)
        at = kind, resource
        most, has = (
            (guaranteed[at], "has a minimum of") if at in guaranteed else (allowed.get(at), "may hold")
        )
        if most is None or total <= most:
            continue
        problem = (
            f"the minima of the children of {parent.name} on nodes with {kind} add up to "
            f"{amount_text(resource, total)}, {parent.name} {has} {amount_text(resource, most)}"
        )
        yield from ((name, problem) for name, stated in minima if at in stated)


def _by_node(share: PoolAmounts) -> dict[tuple[str, str], int]:
    """By kind of node and resource."""
    return {(str(each), name): amount for each in share.by_node for name, amount in each.amounts}


def _states_minimum(pool: Pool, resource: str) -> bool:
    return pool.min_share.percent is not None or resource in dict(pool.min_share.amounts)


def _minimum(pool: Pool, resource: str, tree: Mapping[str, Pool]) -> Size:
    """The minimum of a pool that states one."""
    stated = dict(pool.min_share.amounts)
    if resource in stated:
        return Size(stated[resource], is_part=False)
    return _most(tree.get(_parent(pool)), resource, tree).part(pool.min_share.percent or 0.0)


def _most(pool: Pool | None, resource: str, tree: Mapping[str, Pool]) -> Size:
    """What a pool may hold at most, by its own maximum or those above it; `pool` None: the cluster."""
    if pool is None:
        return _CLUSTER
    stated = dict(pool.max_share.amounts)
    if resource in stated:
        return Size(stated[resource], is_part=False)
    above = _most(tree.get(_parent(pool)), resource, tree)
    return above if pool.max_share.percent is None else above.part(pool.max_share.percent)


def _ancestors(pool: Pool | None, tree: Mapping[str, Pool]) -> Iterator[Pool]:
    while pool is not None:
        yield pool
        pool = tree.get(_parent(pool))


def _named(pools: Iterable[Pool]) -> set[str]:
    """The resources of which any of these pools states an amount."""
    return {name for pool in pools for share in (pool.min_share, pool.max_share) for name, _ in share.amounts}
