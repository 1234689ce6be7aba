"""`eclectus pools import`: Pools made of the queues of Kueue, YuniKorn and Volcano."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

import click

from eclectus.cli.given_files import texts
from eclectus.config.queues.translation import System, translate


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--from",
    "chosen",
    type=click.Choice(get_args(System)),
    help="Whose queues to read, where the files have those of several; the others are listed.",
)
def import_queues(*, files: Sequence[str], chosen: str | None) -> None:
    """Print Pools for the queues of another scheduler in FILEs; `-` is stdin.

    Read are Kueue's ClusterQueues, Cohorts, LocalQueues and ResourceFlavors, Volcano's Queues, and YuniKorn's
    queues.yaml, with or without its ConfigMap. They may be what `kubectl get -o yaml` prints: what servers
    write, such as status, does not count. The cluster is neither asked nor changed: read the result, then
    `kubectl apply` it. Comments at its end name the labels that namespaces and pods need.

    What has no counterpart is listed on stderr, by file, object and field, with the reason and what to do.

    \b
    Exit codes:
      0  translated, perhaps with a list of what has no counterpart
      2  a file is invalid, or cannot be read; nothing is printed
    """
    translation = translate(texts(files), cast("System | None", chosen))
    for note in translation.notes:
        click.echo(f"no counterpart: {note}", err=True)
    click.echo(translation.text, nl=False)
