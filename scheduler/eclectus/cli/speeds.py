"""`eclectus speeds`: the learned speed of every node."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import yaml

from eclectus.cli import speeds_table as view
from eclectus.cli.cluster import REQUEST_SECONDS, WATCH_SECONDS, awaited, kubeconfig_options
from eclectus.config.reading import nearest

if TYPE_CHECKING:
    from eclectus.api.node_profile import NodeProfile
    from eclectus.kubeclient.client import ApiClient
    from eclectus.kubeclient.credentials import Credentials

Output = Literal["table", "wide", "json", "yaml"]


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format; `wide` is a table with prices and all classes of work.",
)
@click.option("--class", "only_class", default="", metavar="CLASS", help="Show this class of work only.")
@click.option("-n", "--namespace", help="Show only classes of this namespace, and those that are shared.")
@click.option("-w", "--watch", is_flag=True, help="Keep running and print again after each change.")
@kubeconfig_options
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

    \b
    Permissions of the caller, in the cluster:
      list nodeprofiles.eclectus.dev
      list nodes  without it, only nodes with a NodeProfile are shown
    """
    from eclectus.kubeclient import credentials

    access = credentials.load(kubeconfig, context)
    try:
        asyncio.run(_show(access, output, only_class, namespace, watch))
    except KeyboardInterrupt:
        click.echo()


async def _show(
    access: Credentials, output: Output, only_class: str, namespace: str | None, watch: bool
) -> None:
    from eclectus.kubeclient.client import connected

    shown = ""
    async with connected(access, REQUEST_SECONDS) as client:
        while True:
            listed = await awaited(_listed(client), "listing the NodeProfiles")
            profiles = listed if namespace is None else [view.limited(each, namespace) for each in listed]
            nodes = await awaited(_node_names(client), "listing the nodes")
            text = _formatted(profiles, output, only_class, nodes)
            if text != shown:
                click.echo(("\n" if shown else "") + text)
                shown = text
            if not watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


async def _listed(client: ApiClient) -> list[NodeProfile]:
    from eclectus.api.names import NODE_PROFILES_PATH
    from eclectus.api.node_profile import decode_page
    from eclectus.kubeclient.api_errors import MissingError

    query = {"limit": "500"}
    found: list[NodeProfile] = []
    try:
        while True:
            page = decode_page(await client.get(NODE_PROFILES_PATH, query))
            found += page.items
            if not page.metadata.continue_:
                return found
            query["continue"] = page.metadata.continue_
    except MissingError:
        raise click.ClickException(
            "the cluster does not define NodeProfile; install the chart with crds.install=true"
        ) from None


async def _node_names(client: ApiClient) -> list[str]:
    """The names of all nodes; none if the caller may not list them."""
    from eclectus.kubeclient.api_errors import RejectedError
    from eclectus.kubeclient.client import ObjectClient
    from eclectus.kubeclient.listing import list_objects

    try:
        nodes = await list_objects(ObjectClient(client), "/api/v1/nodes", metadata_only=True)
    except RejectedError as error:
        click.echo(f"note: nodes without a NodeProfile are not shown: {error}", err=True)
        return []
    return [each["metadata"]["name"] for each in nodes]


def _formatted(profiles: list[NodeProfile], output: Output, only_class: str, nodes: Sequence[str]) -> str:
    found = view.rows(profiles, only_class, nodes)
    if only_class and not any(row["classes"] for row in found):
        known = sorted({each.name for profile in profiles for each in profile.status.classes})
        raise click.UsageError(f"no speeds are known for class {only_class!r}; {nearest(only_class, known)}")
    if output == "json":
        return json.dumps(found, indent=2)
    if output == "yaml":
        return str(yaml.safe_dump(found, sort_keys=False)).rstrip("\n")
    lines = list(view.table(found, datetime.now(UTC), wide=output == "wide")) if found else []
    if all(row["speed"] is None for row in found):
        lines.append("no speeds have been learned yet")
    return "\n".join(lines)
