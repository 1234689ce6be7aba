"""`eclectus version`: the versions of the client and of the API server."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from eclectus import __version__
from eclectus.cli.cluster_commands import awaited, kubeconfig_options, output_option
from eclectus.cli.output import structured
from eclectus.kubeclient.kubeconfigs import has_credentials

if TYPE_CHECKING:
    from eclectus.kubeclient.credentials import Credentials

REQUEST_SECONDS = 10.0
Output = Literal["text", "json"]


@click.command()
@click.option("--client", "is_client_only", is_flag=True, help="Ask no API server.")
@output_option(Output, "Output format.")
@kubeconfig_options
def version(*, is_client_only: bool, output: Output, kubeconfig: Path | None, context: str | None) -> None:
    """Show the versions of eclectus and Python, and that of the API server if a kubeconfig names one.

    Exits with 1 if the API server does not answer. Every user may ask for its version.
    """
    found: dict[str, Any] = {"eclectus": __version__, "python": platform.python_version()}
    problem = ""
    if not is_client_only:
        found["server"], problem = _server(kubeconfig, context)
    if output == "json":
        click.echo(structured(found, output))
    else:
        for name, value in found.items():
            click.echo(f"{name + ':':9} {value or 'none'}")
    if problem:
        raise click.ClickException(problem)


def _server(kubeconfig: Path | None, context: str | None) -> tuple[str | None, str]:
    """The server's version; None if no cluster is configured, or with what is wrong."""
    import asyncio

    from eclectus.kubeclient import credentials
    from eclectus.model.errors import EclectusError

    if not has_credentials(kubeconfig):
        return None, ""
    try:
        access = credentials.load(kubeconfig, context)
        return asyncio.run(_asked(access)), ""
    except EclectusError as error:
        return None, f"{error}; --client leaves out the server"


async def _asked(access: Credentials) -> str:
    from eclectus.kubeclient.client import ObjectApi, connected

    async with connected(access, REQUEST_SECONDS) as client:
        answer = await awaited(ObjectApi(client).send("GET", "/version"), "asking the API server")
    return str(answer.get("gitVersion", "unknown"))
