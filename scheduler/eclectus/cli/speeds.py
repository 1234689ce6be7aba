"""`eclectus speeds`: the learned speed of every node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec.structs import replace

from eclectus.api.names import NODE_PROFILE, NODE_PROFILES_PATH
from eclectus.api.node_profile import LastProbe, NodeProfile
from eclectus.cli import cluster_commands
from eclectus.cli.output import age, aligned, structured
from eclectus.model.objects import concerns
from eclectus.model.printed import ABSENT, nearest

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ApiClient

Output = Literal["table", "wide", "json", "yaml"]


@click.command()
@cluster_commands.output_option(
    Output, "Output format; `wide` is a table with prices, SLOWER and all classes of work."
)
@click.option("--class", "only_class", default="", metavar="CLASS", help="Show this class of work only.")
@click.option("-n", "--namespace", help="Show only classes of this namespace, and those that are shared.")
@click.option("-w", "--watch", is_flag=True, help="Keep running and print again after each change.")
@cluster_commands.kubeconfig_options
def speeds(
    *,
    output: Output,
    only_class: str,
    namespace: str | None,
    watch: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Show the speed of each node as learned from the pods that ran on it, the slowest node first.

    SPEED is the speed over all work; the column of a class is the speed at that class of work. 1.00 is a
    typical node of this cluster, 0.50 is half as fast. A class is named NAMESPACE/CLASS, a shared one CLASS.
    CONFIDENCE is the probability that the learned rate is within a third of the true rate. PRICE (`-o wide`)
    is the sum of demand over supply of the constraints that the node satisfies: how much those need it that
    may run on few others. With `-o wide` a class may have a price too: `0.30 x2.5` is a class that counts as
    running 2.5 times as long there, because the node is better used for other work. `-` is what nothing is
    known of; such nodes are last.

    SLOWER (`-o wide`) is how many times as long work takes there as on the fastest node, at the class where
    that is most. From 2.0 on (slowNode) pods there are late from their start for `speculate: late`, while the
    fastest node has room.

    \b
    Permissions of the caller, in the cluster:
      list nodeprofiles.eclectus.dev
      list nodes  without it, only nodes with a NodeProfile are shown
    """
    from eclectus.kubeclient import credentials
    from eclectus.kubeclient.client import ObjectApi, list_objects

    async def answer(client: ApiClient) -> cluster_commands.Answer:
        listed = await cluster_commands.awaited(
            cluster_commands.defined(_listed(client), NODE_PROFILE), "listing the NodeProfiles"
        )
        profiles = listed if namespace is None else [limited(each, namespace) for each in listed]
        of_nodes = list_objects(ObjectApi(client), "/api/v1/nodes", metadata_only=True)
        listing = cluster_commands.permitted(of_nodes, "nodes without a NodeProfile are not shown: ")
        nodes = await cluster_commands.awaited(listing, "listing the nodes") or ()
        return _formatted(profiles, output, only_class, [each["metadata"]["name"] for each in nodes]), ()

    cluster_commands.print_changes(credentials.load(kubeconfig, context), answer, watch)


async def _listed(client: ApiClient) -> list[NodeProfile]:
    from eclectus.api.node_profile import decode_page
    from eclectus.kubeclient.client import decoded_pages

    pages = decoded_pages(client, NODE_PROFILES_PATH, {}, decode_page)
    return [each async for page in pages for each in page.items]


def _formatted(profiles: list[NodeProfile], output: Output, only_class: str, nodes: Sequence[str]) -> str:
    found = rows(profiles, only_class, nodes)
    if only_class and not any(row["classes"] for row in found):
        known = sorted({each.name for profile in profiles for each in profile.status.classes})
        raise click.UsageError(f"no speeds are known for class {only_class!r}; {nearest(only_class, known)}")
    if output in ("json", "yaml"):
        return structured(found, output)
    lines = list(table(found, datetime.now(UTC), wide=output == "wide")) if found else []
    if all(row["speed"] is None for row in found):
        lines.append("no speeds have been learned yet")
    return "\n".join(lines)


CLASSES_SHOWN = 4  # in the plain table; `-o wide` shows all

Row = dict[str, Any]


def limited(profile: NodeProfile, namespace: str) -> NodeProfile:
    """The profile with the classes of one namespace and the shared ones."""
    classes = tuple(each for each in profile.status.classes if concerns(each.name, namespace))
    return replace(profile, status=replace(profile.status, classes=classes))


def rows(profiles: Sequence[NodeProfile], only_class: str = "", nodes: Sequence[str] = ()) -> list[Row]:
    """One mapping per node, the slowest first and those of which nothing is known last.

    `relative`: the rate over the median rate of the class. `nodes` may name nodes without a NodeProfile.
    """
    rates: dict[str, list[float]] = {}
    for each in (work for profile in profiles for work in profile.status.classes):
        rates.setdefault(each.name, []).append(each.rate)
    medians = {name: _median(known) for name, known in rates.items()}
    best = {name: max(known) for name, known in rates.items()}
    found = {name: _unknown(name) for name in nodes}
    for profile in profiles:
        name, last_probe = profile.metadata.name, profile.status.last_probe
        is_known = profile.status.epoch > 0
        found[name] = _row(profile, medians, best, only_class) if is_known else _unknown(name, last_probe)
    return sorted(found.values(), key=lambda row: (_speed(row, only_class), row["node"]))


def _median(values: Sequence[float]) -> float:
    """As of `statistics`, whose import with its fractions takes as long as a request."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def table(found: Sequence[Row], now: datetime, *, wide: bool = False) -> Iterator[str]:
    """The lines of a table in columns, without trailing blanks."""
    samples = Counter[str]()
    for row in found:
        samples.update({name: each["samples"] for name, each in row["classes"].items()})
    names = sorted(samples, key=lambda name: (-samples[name], name))  # those with the most samples first
    shown = names if wide else names[:CLASSES_SHOWN]
    more = ["PRICE", "SLOWER"] if wide else []
    heads = ["NODE", "SPEED", "STATE", "CONFIDENCE", "SAMPLES", *more, *shown, "LAST SEEN", "LAST PROBE"]
    yield from aligned([heads, *(_cells(row, shown, now, wide) for row in found)])
    if len(names) > len(shown):
        yield f"({len(names) - len(shown)} more classes: -o wide, or --class NAME)"


def _row(profile: NodeProfile, medians: dict[str, float], best: dict[str, float], only_class: str) -> Row:
    status = profile.status
    classes = [each for each in status.classes if only_class in ("", each.name)]
    return {
        "node": profile.metadata.name,
        "speed": status.speed,
        "state": status.state,
        "confidence": status.confidence,
        "samples": sum(each.samples for each in status.classes),
        "price": status.price,
        "slower": max((best[each.name] / each.rate for each in classes if each.rate), default=None),
        "observedTime": _moment(status.observed_time),
        "lastProbe": _probe(status.last_probe),
        "classes": {
            each.name: {
                "rate": each.rate,
                "relative": each.rate / medians[each.name] if medians[each.name] else 0.0,
                "samples": each.samples,
                "confidence": each.confidence,
                "price": each.price,
            }
            for each in classes
        },
    }


def _unknown(node: str, last_probe: LastProbe | None = None) -> Row:
    of_speed = {"speed": None, "state": "Unknown", "confidence": None, "samples": 0}
    unknown = {"price": None, "slower": None, "observedTime": None}
    return {"node": node, **of_speed, **unknown, "lastProbe": _probe(last_probe), "classes": {}}


def _probe(last: LastProbe | None) -> Row | None:
    return None if last is None else {"endedTime": _moment(last.ended_time), "reason": last.reason}


def _speed(row: Row, only_class: str) -> float:
    speed = row["classes"].get(only_class, {}).get("relative") if only_class else row["speed"]
    return inf if speed is None else float(speed)


def _cells(row: Row, shown: Sequence[str], now: datetime, wide: bool) -> list[str]:
    classes = row["classes"]
    price = ABSENT if row["price"] is None else f"{row['price']:.2f}"
    slower = ABSENT if row["slower"] is None else f"{row['slower']:.1f}"
    relative = [_relative(classes[name], wide) if name in classes else ABSENT for name in shown]
    probe = row["lastProbe"]
    return [
        row["node"],
        ABSENT if row["speed"] is None else f"{row['speed']:.2f}",
        row["state"],
        ABSENT if row["confidence"] is None else f"{row['confidence']:.0%}",
        str(row["samples"]),
        *([price, slower] if wide else []),
        *relative,
        age(row["observedTime"], now),
        f"{age(probe['endedTime'], now)} {probe['reason']}".strip() if probe else ABSENT,
    ]


def _relative(of_class: Row, wide: bool) -> str:
    price = f" x{of_class['price']:.1f}" if wide and of_class["price"] is not None else ""
    return f"{of_class['relative']:.2f}{price}"


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
