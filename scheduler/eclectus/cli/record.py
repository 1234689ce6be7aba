"""`eclectus record`: a tape of the scheduler that leads, from now on for some minutes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eclectus.api.names import TAPE_PATH
from eclectus.cli.cluster_commands import REQUEST_SECONDS, kubeconfig_options, server_options

if TYPE_CHECKING:
    from eclectus.cli.explain.transport import Server, Source
    from eclectus.kubeclient.credentials import Credentials

SLOW_SECONDS = 300.0  # of a snapshot, and of a scheduler in which nothing happens beyond the minutes
REPORT_SECONDS = 10.0


def _named(_context: click.Context, _parameter: click.Parameter, given: Path | None) -> Path:
    if given is None:
        return Path(time.strftime("eclectus-%Y%m%d-%H%M%S.tape.gz"))
    if given.suffix != ".gz":
        raise click.BadParameter(f"{given.name} must end in .gz: tapes are compressed")
    return given


@click.command()
@click.option(
    "--minutes", type=click.IntRange(1, 60), default=10, show_default=True, help="For how long to record."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_named,
    help="File to write, which must end in .gz. By default eclectus-DATE-TIME.tape.gz.",
)
@server_options("Record", "eclectus")
@kubeconfig_options
def record(
    *,
    minutes: int,
    output: Path,
    scheduler_name: str,
    server: str,
    certificate_authority: Path | None,
    token_file: Path | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Record the events and decisions of the scheduler that leads, for some minutes from now on.

    The tape is sent while it is made, and nothing is stored in the cluster. It begins with a snapshot of the
    cluster, as a new leader would know it, so `eclectus replay`, `eclectus explain --from` and simulations
    take it; what the leader knows beyond that, such as how long pods have waited, is not on it. Ctrl-C ends
    it and keeps what has come.

    A tape has names, labels and requests of the pods of all namespaces.

    \b
    Permissions of the caller, which no role of the chart grants:
      post /debug/tape              a rule with nonResourceURLs; cluster-admin has it
      get leases                    eclectus-serves-NAME in kube-system, and the scheduler's own
      get, create pods/portforward  in the scheduler's namespace, unless --server is given
    """
    import asyncio

    from eclectus.cli.explain.transport import Source
    from eclectus.kubeclient import credentials

    source = Source(scheduler_name, server, certificate_authority, token_file)
    work = _record(credentials.load(kubeconfig, context), source, minutes, output)
    try:
        size = asyncio.run(work)
    except KeyboardInterrupt:
        click.echo(f"\n{output}: what was recorded until now", err=True)
        return
    click.echo(f"{output}: {minutes} min, {size:,} bytes")


async def _record(access: Credentials, source: Source, minutes: int, output: Path) -> int:
    from eclectus.cli.explain.transport import server_of
    from eclectus.kubeclient.client import connected

    async with connected(access, REQUEST_SECONDS) as client, server_of(client, access, source) as server:
        return await received(server, minutes, output)


async def received(server: Server, minutes: int, output: Path) -> int:
    """Write the tape of a server into the file; the bytes of it. Raises click.ClickException."""
    import aiohttp

    from eclectus.cli.explain.transport import refusal, unanswered

    headers = {"Authorization": f"Bearer {server.token}"} if server.token else {}
    limit = aiohttp.ClientTimeout(total=60.0 * minutes + SLOW_SECONDS, sock_connect=REQUEST_SECONDS)
    url = f"{server.url}{TAPE_PATH}?minutes={minutes}"
    try:
        async with (
            aiohttp.ClientSession(trust_env=False, timeout=limit) as session,
            session.post(url, headers=headers, ssl=server.trust, allow_redirects=False) as answer,
        ):
            if answer.status != HTTPStatus.OK:
                raise click.ClickException(refusal(answer.status, await answer.read()))
            click.echo(f"recording for {minutes} min; Ctrl-C ends it and keeps what has come", err=True)
            return await _written(answer.content.iter_any(), output)
    except aiohttp.ClientPayloadError:
        problem = "the scheduler has ended the recording early, and its log says why"
        raise click.ClickException(f"{problem}: {output} has what was recorded until then") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise unanswered(url, error) from error


async def _written(parts: AsyncIterator[bytes], output: Path) -> int:
    """Write all parts, and say now and then how many bytes have come."""
    size, began = 0, time.monotonic()
    report_at = began + REPORT_SECONDS
    with output.open("wb") as file:
        async for part in parts:
            size += file.write(part)
            file.flush()
            if (now := time.monotonic()) >= report_at:
                click.echo(f"{now - began:.0f} s, {size:,} bytes so far", err=True)
                report_at = now + REPORT_SECONDS
    return size
