"""`eclectus config import`: kube-scheduler's configuration, translated."""

from __future__ import annotations

from pathlib import Path

import click

from eclectus.config.configuration import read_file
from eclectus.config.upstream import translate
from eclectus.model.errors import SettingsError


@click.group()
def config() -> None:
    """Work on SchedulerConfigurations.

    `eclectus check-config` validates one.
    """


@config.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the SchedulerConfiguration to this file, by default to stdout.",
)
def config_import(file: Path, output: Path | None) -> None:
    """Translate FILE, a KubeSchedulerConfiguration (v1), into a SchedulerConfiguration.

    Everything in FILE that has no counterpart is listed on stderr and in comments of the result, with its
    path, the reason and what to do. Profiles keep their names, so check the result before kube-scheduler
    runs beside it: two schedulers that serve one name bind the same pods.

    \b
    Exit codes:
      0  translated, perhaps with a list of what has no counterpart
      2  FILE is invalid, or cannot be read
    """
    try:
        translation = translate(read_file(file))
    except SettingsError as error:
        raise error.in_file(file) from None
    for note in translation.notes:
        click.echo(f"no counterpart: {note}", err=True)
    if output is None:
        click.echo(translation.text, nl=False)
    else:
        output.write_text(translation.text, encoding="utf-8")
