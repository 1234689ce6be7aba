"""The command `pending`: its options and its requests."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from eclectus.api.names import PART_OF, PART_OF_LABEL
from eclectus.cli.cluster import REQUEST_SECONDS, awaited, default_namespace, kubeconfig_options
from eclectus.cli.pending import rows as view
from eclectus.cli.pending.served import Served, served

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ObjectClient
    from eclectus.kubeclient.credentials import Credentials

PODS = "/api/v1/pods"
LEASES = "/apis/coordination.k8s.io/v1/leases"
CONFIG_MAPS = "/api/v1/configmaps"
OURS = {"labelSelector": f"{PART_OF_LABEL}={PART_OF}"}
UNPLACED = {"fieldSelector": "spec.nodeName=,status.phase=Pending"}

Output = Literal["table", "wide", "json"]
Object = dict[str, Any]


@click.command()
@click.option("-n", "--namespace", help="Namespace of the pods. By default that of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json"]),
    default="table",
    show_default=True,
    help="Output format; `wide` has whole messages and since when each holds.",
)
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Also count NAME as one of Eclectus; can be repeated. Needed only where Leases and ConfigMaps "
    "may not be listed.",
)
@kubeconfig_options
def pending(
    *,
    namespace: str | None,
    all_namespaces: bool,
    output: Output,
    names: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """List the pods without a node that wait for an Eclectus scheduler, the oldest first, and say why.

    Also listed are pods with a schedulerName that nobody serves: neither Eclectus nor kube-scheduler
    (default-scheduler), and no scheduler has reported on them. REASON and MESSAGE are those of the pod's
    condition PodScheduled. The names that Eclectus serves are read from its Leases and from the ConfigMaps
    of the chart, so that the command also works while no scheduler runs.

    \b
    Permissions of the caller:
      list pods                in the namespace, or with -A in the cluster
      list leases, configmaps  in the cluster; without both, name schedulers by --scheduler-name
    """
    from eclectus.kubeclient import credentials

    if all_namespaces and namespace:
        raise click.UsageError("give either --namespace or --all-namespaces")
    access = credentials.load(kubeconfig, context)
    where = "" if all_namespaces else namespace or default_namespace(kubeconfig, context)
    asyncio.run(_show(access, where, output, names))


async def _show(access: Credentials, namespace: str, output: Output, names: tuple[str, ...]) -> None:
    from eclectus.kubeclient.client import ObjectClient, connected
    from eclectus.kubeclient.listing import list_objects

    async with connected(access, REQUEST_SECONDS) as client:
        api = ObjectClient(client)
        known = await awaited(_known(api, names), "looking for the schedulers")
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else PODS
        pods = await awaited(list_objects(api, path, UNPLACED), "listing the pods")
    click.echo(formatted(view.rows(pods, known), known, namespace, output))


async def _known(api: ObjectClient, names: tuple[str, ...]) -> dict[str, Served]:
    """The names that Eclectus serves. What may not be listed is reported on stderr."""
    leases, config_maps = await _permitted(api, LEASES), await _permitted(api, CONFIG_MAPS)
    known = served(leases or (), config_maps or (), datetime.now(UTC))
    assumed = names or ((PART_OF,) if leases is None and config_maps is None else ())
    if assumed and not names:
        click.echo(
            f"assuming that Eclectus serves {PART_OF!r}; --scheduler-name NAME says otherwise", err=True
        )
    return {name: Served(name, "unknown", "--scheduler-name") for name in assumed} | known


async def _permitted(api: ObjectClient, path: str) -> list[Object] | None:
    """Our objects of a kind in the whole cluster; None if the caller may not list them."""
    from eclectus.kubeclient.api_errors import RejectedError
    from eclectus.kubeclient.listing import list_objects

    try:
        return await list_objects(api, path, OURS)
    except RejectedError as error:
        click.echo(f"note: {error}", err=True)
        return None


def formatted(found: list[view.Row], known: dict[str, Served], namespace: str, output: Output) -> str:
    """The text to print."""
    if output == "json":
        schedulers = [{"name": each.name, "state": each.state, "from": each.where} for each in known.values()]
        return json.dumps({"pods": found, "schedulers": schedulers}, indent=2)
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    if not found and not known:
        return f"no Eclectus scheduler was found, and no pod {where} waits for a name that nobody serves"
    if not found:
        return f"no pod {where} waits for {', '.join(sorted(known))}"
    now = datetime.now(UTC)
    lines = view.table(found, now, wide=output == "wide")
    return "\n".join([*lines, "", *view.summary(found, known, now)])
