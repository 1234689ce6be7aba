"""The command `dag`: its options and its requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import yaml

from eclectus.cli.cluster import (
    REQUEST_SECONDS,
    WATCH_SECONDS,
    awaited,
    default_namespace,
    kubeconfig_options,
)
from eclectus.cli.dag import rows as view
from eclectus.cli.dag import table
from eclectus.config.reading import nearest

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ObjectClient
    from eclectus.kubeclient.credentials import Credentials

Output = Literal["table", "wide", "json", "yaml"]
Object = dict[str, Any]


@click.command()
@click.argument("name", required=False, default="")
@click.option("-n", "--namespace", help="Namespace of the jobs. By default that of the kubeconfig's context.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Jobs of all namespaces.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Output format; `wide` is a table with more columns and whole messages.",
)
@click.option("-w", "--watch", is_flag=True, help="Keep running and print again after each change.")
@kubeconfig_options
def dag(
    *,
    name: str,
    namespace: str | None,
    all_namespaces: bool,
    output: Output,
    watch: bool,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """List DAG jobs and what is planned for them; of the job NAME also its stages and why they wait.

    SHARE is what a job is entitled to, LENT what it leaves of that to other jobs now, BORROWED what it holds
    beyond it. FINISH is how long the rest of the job would take inside its share, DEADLINE when it would end:
    what is lent must not delay it beyond. With `-o wide`, MOVED is how often and by how much that was moved
    to a later time, LENT-SECONDS and BORROWED-SECONDS are what was lent and borrowed in all: cores or GiB
    times seconds, RESERVED is the node that is kept free for a large task. A scheduler whose order plans DAG
    jobs writes these; `-` without.

    Of a stage, DUE is when its next task must start for the deadline, by its estimate and those of the stages
    behind it alone; inside its share a job may have to start it earlier.

    \b
    Permissions of the caller:
      list dagjobs.eclectus.dev  in the namespace, or with -A in the cluster
      list pods                  the same; without it, why pods wait is not shown
    """
    from eclectus.kubeclient import credentials

    if all_namespaces and (namespace or name):
        raise click.UsageError("give --all-namespaces alone: without NAME and without --namespace")
    access = credentials.load(kubeconfig, context)
    where = "" if all_namespaces else namespace or default_namespace(kubeconfig, context)
    try:
        asyncio.run(_show(access, where, name, output, watch))
    except KeyboardInterrupt:
        click.echo()


async def _show(access: Credentials, namespace: str, name: str, output: Output, watch: bool) -> None:
    from eclectus.kubeclient.client import ObjectClient, connected

    shown = ""
    async with connected(access, REQUEST_SECONDS) as client:
        api = ObjectClient(client)
        while True:
            jobs = await awaited(_jobs(api, namespace), "listing the DagJobs")
            pods = await awaited(_waiting_pods(api, namespace), "listing the pods")
            found, problems = view.rows(jobs, pods, datetime.now(UTC))
            text = formatted(found, namespace, name, output)
            if text != shown:
                for problem in problems:
                    click.echo(f"note: {problem}", err=True)
                click.echo(("\n" if shown else "") + text)
                shown = text
            if not watch:
                return
            await asyncio.sleep(WATCH_SECONDS)


async def _jobs(api: ObjectClient, namespace: str) -> list[Object]:
    from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS
    from eclectus.kubeclient.api_errors import MissingError
    from eclectus.kubeclient.listing import list_objects

    place = f"namespaces/{namespace}/" if namespace else ""
    try:
        return await list_objects(api, f"/apis/{API_VERSION}/{place}{DAG_JOBS}")
    except MissingError:
        raise click.ClickException(
            f"the cluster does not define {DAG_JOB}; install the chart with crds.install=true"
        ) from None


async def _waiting_pods(api: ObjectClient, namespace: str) -> list[Object]:
    """The pods of DAG jobs that have no node; none if the caller may not list them."""
    from eclectus.api.names import DAG_JOB_LABEL
    from eclectus.kubeclient.api_errors import RejectedError
    from eclectus.kubeclient.listing import list_objects

    place = f"namespaces/{namespace}/" if namespace else ""
    selectors = {"labelSelector": DAG_JOB_LABEL, "fieldSelector": "spec.nodeName=,status.phase=Pending"}
    try:
        return await list_objects(api, f"/api/v1/{place}pods", selectors)
    except RejectedError as error:
        click.echo(f"note: why pods wait is not shown: {error}", err=True)
        return []


def formatted(found: Sequence[view.Row], namespace: str, name: str, output: Output) -> str:
    """The text to print."""
    shown = [row for row in found if name in ("", row["name"])]
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    if name and not shown:
        known = [row["name"] for row in found]
        hint = nearest(name, known) if known else "there is none"
        raise click.UsageError(f"there is no DagJob {name!r} {where}; {hint}")
    if output == "json":
        return json.dumps(shown, indent=2)
    if output == "yaml":
        return str(yaml.safe_dump(shown, sort_keys=False)).rstrip("\n")
    if not shown:
        return f"there is no DagJob {where}"
    now, is_wide = datetime.now(UTC), output == "wide"
    lines = list(table.jobs(shown, now, all_namespaces=not namespace, wide=is_wide))
    if name:
        lines += ["", *table.stages(shown[0], now, wide=is_wide)]
    return "\n".join(lines)
