"""`eclectus pools`: the tree of Pools, what each is entitled to and what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import click
from msgspec import structs

from eclectus.api.names import POOL, POOLS_PATH
from eclectus.api.pool import READY, Pool, PoolShare, pool_of
from eclectus.cli import cluster_commands
from eclectus.cli.output import age, aligned, structured
from eclectus.cli.pools.taking import taking
from eclectus.cli.verbs import WithVerbs
from eclectus.kube.requests import FieldError, parsed, units
from eclectus.model.errors import MalformedError
from eclectus.model.printed import ABSENT, amount_text, nearest, span

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ApiClient, Object

Output = Literal["table", "wide", "json", "yaml"]
Row = dict[str, Any]
TAKEN_SHOWN = 3  # pools in a cell
FIRST = ("cpu", "memory", "pods")  # in this order, before other resources


class _Pools(WithVerbs):
    verbs: ClassVar = {"import": "pools.import_queues:import_queues"}


@click.command(cls=_Pools)
@click.argument("name", default="", shell_complete=_Pools.complete)
@cluster_commands.output_option(Output, "Output format; `wide` is a table with all resources and jobs.")
@click.option("-w", "--watch", is_flag=True, help="Keep running and print again after each change.")
@cluster_commands.kubeconfig_options
def pools(*, name: str, output: Output, watch: bool, kubeconfig: Path | None, context: str | None) -> None:
    """Show the tree of Pools: what each may hold, is entitled to, and holds; with NAME, that pool and below.

    HELD is what its pods hold on nodes, SHARE what it is entitled to now by minima, weights and what others
    need, MIN and MAX what its spec states: amounts, or a percentage of what its parent may hold. WAITING is
    how many of its pods wait. STARVED is for how long it has had less than its minimum, or than the part of
    its share at which it may take room back, although it needs more. The table has the resources that minima
    and maxima name, or cpu; `-o wide` has all, and in TAKES FROM the pools above their share from which a
    starved one may take room back, and in how long, if its profile has `relieve: reclaim`. The scheduler
    writes these figures at most every 15 s.

    \b
    Permissions of the caller, in the cluster:
      list pools.eclectus.dev
    """
    from eclectus.kubeclient import credentials

    async def answer(client: ApiClient) -> cluster_commands.Answer:
        listing = cluster_commands.defined(_listed(client), POOL)
        found, problems = read(await cluster_commands.awaited(listing, "listing the Pools"))
        return formatted(found, output, name), problems

    cluster_commands.print_changes(credentials.load(kubeconfig, context), answer, watch)


async def _listed(client: ApiClient) -> list[Object]:
    from eclectus.kubeclient.client import ObjectApi, list_objects

    return await list_objects(ObjectApi(client), POOLS_PATH)


def read(objects: Iterable[Mapping[str, Any]]) -> tuple[list[Pool], list[str]]:
    """The Pools that can be read, and why others cannot."""
    found, problems = list[Pool](), list[str]()
    for each in objects:
        try:
            found.append(pool_of(each["metadata"]["name"], each))
        except MalformedError as error:
            problems.append(str(error))
    return found, problems


def formatted(found: Sequence[Pool], output: Output, name: str = "") -> str:
    """The tree of these Pools, or of one and what is below it. Raises click.UsageError for an unknown one."""
    if name and name not in {each.metadata.name for each in found}:
        known = sorted(each.metadata.name for each in found)
        raise click.UsageError(
            f"there is no Pool {name!r}; {nearest(name, known) if known else 'there is none'}"
        )
    listed = rows(found, name)
    if output in ("json", "yaml"):
        return structured(listed, output)
    if not listed:
        return "there are no Pools: nothing is shared or limited by them"
    return "\n".join(table(listed, datetime.now(UTC), wide=output == "wide"))


def rows(found: Sequence[Pool], name: str = "") -> list[Row]:
    """One mapping for each Pool, parents first, siblings by name; last, those whose parents lead nowhere."""
    takes = taking(found)
    by_parent: dict[str, list[Pool]] = {}
    for each in sorted(found, key=lambda pool: pool.metadata.name):
        by_parent.setdefault(each.spec.parent, []).append(each)
    tree: dict[str, Row] = {}
    if name:
        (own,) = (each for each in found if each.metadata.name == name)
        tree[name] = _row(own, 0)
    _add_below(tree, name, by_parent)
    for each in found if not name else ():
        if each.metadata.name not in tree:
            tree[each.metadata.name] = _row(each, 0)
    for at, row in tree.items():
        of = takes.get(at)
        row["takesFrom"] = None if of is None else list(of.pools)
        row["takesAfterSeconds"] = None if of is None else of.after_seconds
        row["takesSince"] = None if of is None else of.since
    return list(tree.values())


def _add_below(tree: dict[str, Row], parent: str, by_parent: Mapping[str, Sequence[Pool]]) -> None:
    depth = 1 if parent else 0
    left = [(pool, depth) for pool in reversed(by_parent.get(parent, ()))]
    while left:  # no recursion: invalid Pools may form a chain of any length
        pool, depth = left.pop()
        if pool.metadata.name not in tree:  # parents may form a circle
            tree[pool.metadata.name] = _row(pool, depth)
            left += [(each, depth + 1) for each in reversed(by_parent.get(pool.metadata.name, ()))]


def _row(pool: Pool, depth: int) -> Row:
    spec, status = pool.spec, pool.status
    ready = next((each for each in status.conditions if each.type == READY), None)
    return {
        "name": pool.metadata.name,
        "parent": spec.parent,
        "depth": depth,
        "weight": spec.weight,
        "policy": spec.policy,
        "minShare": _share(spec.min_share),
        "maxShare": _share(spec.max_share),
        "maxRunningJobs": spec.max_running_jobs,
        "suspend": spec.suspend,
        "dryRun": spec.preemption.dry_run,
        "held": dict(status.held),
        "heldByNode": [structs.asdict(each) for each in status.held_by_node],
        "share": dict(status.share),
        "demand": dict(status.demand),
        "waitingPods": status.waiting_pods,
        "runningJobs": status.running_jobs,
        "belowMinShareSince": status.below_min_share_since,
        "belowFairShareSince": status.below_fair_share_since,
        "ready": None if ready is None else ready.status == "True",
        "reason": "" if ready is None else ready.reason,
        "message": "" if ready is None else ready.message,
    }


def _share(share: PoolShare) -> Row:
    by_node = [structs.asdict(each) for each in share.by_node]
    return {"amounts": dict(share.amounts), "percent": share.percent, "byNode": by_node}


def table(listed: Sequence[Row], now: datetime, *, wide: bool = False) -> Iterator[str]:
    """The lines of a table in columns; below it what is wrong with pools that do not count."""
    stated = {name for row in listed for share in ("minShare", "maxShare") for name in row[share]["amounts"]}
    shown = None if wide else stated or {"cpu"}
    more = ["DEMAND", "JOBS", "POLICY", "TAKES FROM"] if wide else []
    yield from aligned(
        [
            ["POOL", "WEIGHT", "MIN", "SHARE", "HELD", "MAX", "WAITING", *more, "STARVED", "STATE"],
            *(_cells(row, shown, now, wide) for row in listed),
        ]
    )
    for row in listed:
        if row["ready"] is False:
            yield f"{row['name']}: {row['message']}"


def _cells(row: Row, shown: set[str] | None, now: datetime, wide: bool) -> list[str]:
    jobs = str(row["runningJobs"])
    if row["maxRunningJobs"] is not None:
        jobs += f" of {row['maxRunningJobs']}"
    more = [_amounts(row["demand"], shown), jobs, row["policy"], _takes(row, now)] if wide else []
    since = [row[each] for each in ("belowMinShareSince", "belowFairShareSince") if row[each]]
    state = "Suspended" if row["suspend"] else "" if row["ready"] is None else row["reason"]
    states = [each for each in (state, "DryRun" if row["dryRun"] else "") if each]
    return [
        "  " * row["depth"] + row["name"],
        f"{row['weight']:g}",
        _stated(row["minShare"], shown),
        _amounts(row["share"], shown),
        _amounts(row["held"], shown),
        _stated(row["maxShare"], shown),
        str(row["waitingPods"]),
        *more,
        age(min(since, default=None), now),
        ", ".join(states) or ABSENT,
    ]


def _takes(row: Row, now: datetime) -> str:
    """`greedy, night in 12s` of a starved pool; when it never takes anything, `never`."""
    if row["takesFrom"] is None:
        return ABSENT
    if row["takesAfterSeconds"] is None:
        return "never"
    first, more = row["takesFrom"][:TAKEN_SHOWN], len(row["takesFrom"]) - TAKEN_SHOWN
    whom = ", ".join(first) or "nobody"
    if more > 0:
        whom += f" and {more} more"
    left = row["takesAfterSeconds"] - (now - datetime.fromisoformat(row["takesSince"])).total_seconds()
    return f"{whom} in {span(left)}" if left > 0 else whom


def _stated(share: Row, shown: set[str] | None) -> str:
    percent = [] if share["percent"] is None else [f"{share['percent']:g}%"]
    amounts = _amounts(share["amounts"], shown)
    return ", ".join([*([] if amounts == ABSENT else [amounts]), *percent]) or ABSENT


def _amounts(amounts: Mapping[str, str | int | float], shown: set[str] | None) -> str:
    """`12 cpu, 64Gi memory`, of the resources that are shown; None: of all."""
    named = (name for name in amounts if shown is None or name in shown)
    order = sorted(named, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return ", ".join(_amount(name, amounts[name]) for name in order) or ABSENT


def _amount(name: str, quantity: str | int | float) -> str:
    try:
        thousandths = parsed({name: quantity}, name).get(name)
    except FieldError:
        thousandths = None
    if thousandths is None:  # nothing that a scheduler writes
        return f"{quantity} {name}"
    return amount_text(name, thousandths if name == "cpu" else units(thousandths))
