"""`eclectus speeds`: how fast every node is, as far as it is known."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
import yaml

from eclectus.cli import speeds_table as view
from eclectus.config.reading import nearest

if TYPE_CHECKING:
    from eclectus.api.node_profile import NodeProfile
    from eclectus.kubeclient.client import ApiClient
    from eclectus.kubeclient.credentials import Credentials

REQUEST_SECONDS = 30.0
WATCH_SECONDS = 2.0
Output = Literal["table", "wide", "json", "yaml"]


@click.command()
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json", "yaml"]), default="table")
@click.option("--class", "only_class", default="", metavar="CLASS", help="Only this class of work.")
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever something has changed.")
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Kubeconfig; by default $KUBECONFIG, else the usual place.",
)
@click.option("--context", help="Context of the kubeconfig; its current one by default.")
def speeds(
    output: Output, only_class: str, watch: bool, kubeconfig: Path | None, context: str | None
) -> None:
    """Show how fast nodes are, the slowest first, by what has run on them.

    SPEED is over all work, and under each class stands the speed at that class alone; 1.00 is a typical node
    of this cluster. CONFIDENCE is the chance that the rate is within a third of the truth.
    """
    from eclectus.kubeclient import credentials

    access = credentials.load(kubeconfig, context)
    try:
        asyncio.run(_show(access, output, only_class, watch))
    except KeyboardInterrupt:
        click.echo()


async def _show(access: Credentials, output: Output, only_class: str, watch: bool) -> None:
    from eclectus.kubeclient.client import connected

    shown = ""
    async with connected(access, REQUEST_SECONDS) as client:
        while True:
            profiles = await _listed(client)
            text = _spelled(profiles, output, only_class)
            if text != shown:
                click.echo(("\n" if shown else "") + text)
                shown = text
            if not watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


async def _listed(client: ApiClient) -> list[NodeProfile]:
    from eclectus.api.names import NODE_PROFILES_PATH
    from eclectus.api.node_profile import decode_page
    from eclectus.kubeclient.errors import MissingError

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
            "this cluster does not define NodeProfile: install the chart with crds.install=true"
        ) from None


def _spelled(profiles: list[NodeProfile], output: Output, only_class: str) -> str:
    found = view.rows(profiles, only_class)
    if only_class and not found:
        known = sorted({each.name for profile in profiles for each in profile.status.classes})
        raise click.UsageError(f"nothing is known of class {only_class!r}; {nearest(only_class, known)}")
    if output == "json":
        return json.dumps(found, indent=2)
    if output == "yaml":
        return str(yaml.safe_dump(found, sort_keys=False)).rstrip("\n")
    if not found:
        return "nothing is known of any node yet"
    return "\n".join(view.table(found, datetime.now(UTC), wide=output == "wide"))
