"""`eclectus dag from-job`: DagJobs made of Jobs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from eclectus.cli.given_files import texts
from eclectus.config.jobs import dag_jobs_of


@click.command("from-job")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--name", default="", help="Make one DagJob of this name: each Job is a stage after the one before."
)
def from_job(*, files: Sequence[str], name: str) -> None:
    """Print a DagJob for each Job and CronJob of batch/v1 in FILEs; `-` is stdin.

    The files may be what `kubectl get -o yaml` prints. The cluster is neither asked nor changed: read the
    result, then `kubectl create -f` it. Containers of an Indexed Job find their number in
    JOB_COMPLETION_INDEX as before. What has no counterpart is listed on stderr, with what to do instead.

    \b
    Exit codes:
      0  translated, perhaps with a list of what has no counterpart
      2  a file is invalid, or cannot be read; nothing is printed
    """
    made = dag_jobs_of(texts(files), name)
    for note in made.notes:
        click.echo(f"no counterpart: {note}", err=True)
    click.echo(made.text, nl=False)
