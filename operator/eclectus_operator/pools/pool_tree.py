"""What is wrong with Pools that only all of them together show. Pure.

A Pool that cannot be read, or whose minimum is above its own maximum, does not count: the scheduler takes it
for gone. A Pool without a way to the top does not count either, and its pods are in the pool `recovery`.
Minima that exceed their parent's count as far as they can be kept.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from eclectus.api.common import MESSAGE_CHARACTERS, Condition
from eclectus.api.pool import READY
from eclectus.kube.pools import amount_text, minimum_problem
from eclectus.model.pool import Pool

IMPLICIT = frozenset({"default", "recovery"})  # pools that exist whether there is a Pool of the name or not
_LOST = "its pods are in the pool recovery"
_SHOWN = 10  # pools of a cycle that a message names
_ROUNDING = 1e-6  # percent


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
    placed = set[str]()
    for name in tree:
        misplaced = _misplaced(name, tree, found, placed)
        if misplaced is not None:
            found[name] = misplaced
    for name, problems in _exceeding([tree[name] for name in sorted(placed)]).items():
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


def _misplaced(
    name: str, tree: Mapping[str, Pool], found: Mapping[str, Finding], placed: set[str]
) -> Finding | None:
    """Why there is no way from a pool to the top; None if there is, of which all are added to `placed`.

    `found`: of Pools that are not in the tree, because they do not count.
    """
    way: dict[str, None] = {}  # in order
    at = name
    while at not in way:
        if at in placed:
            break
        way[at] = None
        parent = tree[at].parent
        if not parent or (parent in IMPLICIT and parent not in tree):
            break
        if parent not in tree:
            return _without_parent(at, parent, found, is_its_own=at == name)
        at = parent
    else:
        return _in_cycle([*way][[*way].index(at) :], is_in_it=at == name)
    placed.update(way)
    return None


def _without_parent(at: str, parent: str, found: Mapping[str, Finding], *, is_its_own: bool) -> Finding:
    whose = f"its parent is {parent}" if is_its_own else f"its ancestor {at} has the parent {parent}"
    why = f"there is no Pool {parent}"
    if parent in found:
        why = f"the Pool {parent} does not count: {found[parent].message}"
    return Finding("NoSuchParent", f"{whose}, but {why}; {_LOST}")


def _in_cycle(cycle: Sequence[str], *, is_in_it: bool) -> Finding:
    shown = [*cycle[:_SHOWN], *(["..."] if len(cycle) > _SHOWN else []), cycle[0]]
    whose = "its parents" if is_in_it else "the parents of its ancestors"
    return Finding("Cycle", f"{whose} lead in a circle, {' -> '.join(shown)}; {_LOST}")


def _exceeding(pools: Sequence[Pool]) -> dict[str, list[str]]:
    """Of the pools whose minima and those of their siblings exceed what the parent has: how."""
    tree, found = {pool.name: pool for pool in pools}, defaultdict[str, list[str]](list)
    children = defaultdict[str, list[Pool]](list)
    for pool in pools:
        children[pool.parent].append(pool)
    for parent, siblings in children.items():
        for resource, problem in _excesses(tree.get(parent), siblings):
            for each in siblings:
                if _minimum(each, resource, of=100):
                    found[each.name].append(problem)
    return found


def _excesses(parent: Pool | None, siblings: Sequence[Pool]) -> Iterator[tuple[str, str]]:
    """Each resource of which the siblings have too much, and how; `parent` None: they are at the top.

    Of what the parent states no minimum of, only its maximum can be compared. No resource: the percentages.
    """
    whose, of_what = "the pools at the top", "the cluster"
    if parent is not None:
        whose, of_what = f"the children of {parent.name}", f"what {parent.name} has"
    percent = sum(each.min_share.percent or 0.0 for each in siblings)
    if percent > 100.0 + _ROUNDING:
        yield "", f"the minima of {whose} add up to {percent:g} percent of {of_what}"
    if parent is None:
        return
    least = dict(parent.min_share.amounts)
    bounds = [("minimum", *each) for each in least.items()]
    bounds += [("maximum", *each) for each in parent.max_share.amounts if each[0] not in least]
    for word, resource, bound in bounds:
        total = sum(_minimum(each, resource, of=bound if word == "minimum" else 0) for each in siblings)
        if total > bound:
            sum_text, bound_text = amount_text(resource, total), amount_text(resource, bound)
            yield (
                resource,
                f"the minima of {whose} add up to {sum_text}, {parent.name} has a {word} of {bound_text}",
            )


def _minimum(pool: Pool, resource: str, *, of: int) -> int:
    """Its minimum of a resource whose parent has `of` of it, rounded down; of no resource its percentage."""
    amounts = dict(pool.min_share.amounts)
    return amounts[resource] if resource in amounts else int(of * (pool.min_share.percent or 0.0) / 100.0)
