"""What the commands that read a cluster share: their options, and a message on stderr while they wait.

Their help and completion need neither asyncio nor YAML, and half the CPU of a request.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

if TYPE_CHECKING:
    from eclectus.kubeclient.client import ApiClient
    from eclectus.kubeclient.credentials import Credentials

REQUEST_SECONDS = 30.0
QUIET_SECONDS = 2.0  # a wait that is longer than this is reported
WATCH_SECONDS = 2.0  # between two looks of a command that keeps watching
REPORT_SECONDS = 5.0  # time between two reports of one wait

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., object])


def kubeconfig_options(command: Command) -> Command:
    """Add --kubeconfig and --context to a command."""
    kubeconfig = click.option(
        "--kubeconfig",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Kubeconfig file. By default $KUBECONFIG, or else ~/.kube/config.",
    )
    context = click.option("--context", help="Context of the kubeconfig. By default its current context.")
    return kubeconfig(context(command))


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def server_options(verb: str, default_name: str) -> Callable[[Command], Command]:
    """Add the options by which a command finds a scheduler, and says who asks.

    `verb`: what it does with that; `default_name`: which installation it takes by default.
    """
    options = (
        click.option(
            "--scheduler-name",
            default="",
            metavar="NAME",
            help=f"{verb} the installation that serves this schedulerName. By default {default_name}.",
        ),
        click.option(
            "--server",
            default="",
            metavar="URL",
            help=f"{verb} the scheduler at this URL. By default the leader that the Lease names, by a "
            "port-forward.",
        ),
        click.option(
            "--certificate-authority",
            type=FILE,
            help="Authority of the certificate of --server. By default it must be the one that the Lease "
            "names.",
        ),
        click.option(
            "--token-file",
            type=FILE,
            help="File with the bearer token that says who asks. By default the token of the kubeconfig.",
        ),
    )

    def added(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


def output_option(literal: Any, text: str) -> Callable[[Command], Command]:
    """Add --output to a command, with the choices of a Literal; the first one is the default."""
    choices = get_args(literal)
    kind = click.Choice(choices)
    return click.option("-o", "--output", type=kind, default=choices[0], show_default=True, help=text)


async def permitted(
    listing: Awaitable[list[T]], otherwise: str = "", *, quiet: bool = False
) -> list[T] | None:
    """What is listed; None if the caller may not, which stderr says unless `quiet`, and what is missed."""
    from eclectus.kubeclient.api_errors import RejectedError

    try:
        return await listing
    except RejectedError as error:
        if not quiet:
            click.echo(f"note: {otherwise}{error}", err=True)
        return None


async def defined(listing: Awaitable[list[T]], kind: str) -> list[T]:
    """What is listed of a kind. Raises click.ClickException where the cluster does not define it."""
    from eclectus.kubeclient.api_errors import MissingError

    try:
        return await listing
    except MissingError:
        raise click.ClickException(
            f"the cluster does not define {kind}; install the chart with crds.install=true"
        ) from None


Answer = tuple[str, Sequence[str]]
"""A text, and what could not be read for it."""


def print_changes(access: Credentials, make: Callable[[ApiClient], Awaitable[Answer]], watch: bool) -> None:
    """Print an answer of the cluster; with `watch` again after each change, until Ctrl-C."""
    import asyncio

    from eclectus.kubeclient.client import connected

    async def run() -> None:
        async with connected(access, REQUEST_SECONDS) as client:
            shown = ""
            while True:
                text, problems = await make(client)
                if text != shown:
                    for problem in problems:
                        click.echo(f"note: {problem}", err=True)
                    click.echo(("\n" if shown else "") + text)
                    shown = text
                if not watch:
                    return
                await asyncio.sleep(WATCH_SECONDS)

    try:
        asyncio.run(run())
    except KeyboardInterrupt:
        click.echo()


async def awaited(work: Awaitable[T], what: str) -> T:
    """The result of `work`. After two seconds stderr says what is waited for, terminal or not."""
    import asyncio

    task = asyncio.ensure_future(work)
    began, pause = time.monotonic(), QUIET_SECONDS
    try:
        while not (await asyncio.wait({task}, timeout=pause))[0]:
            click.echo(f"{what}: {time.monotonic() - began:.0f} s so far", err=True)
            pause = REPORT_SECONDS
        return task.result()
    finally:
        task.cancel()
