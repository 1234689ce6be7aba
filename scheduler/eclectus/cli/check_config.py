"""`eclectus check-config`: validate a SchedulerConfiguration without starting anything."""

from __future__ import annotations

from pathlib import Path

import click

from eclectus.config import effective, load


@click.command("check-config")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--effective",
    "is_effective",
    is_flag=True,
    help="Print the effective configuration as YAML: FILE with all defaults filled in.",
)
def check_config(file: Path, is_effective: bool) -> None:
    """Validate a SchedulerConfiguration FILE and report everything that is wrong with it.

    Each error names the file, the path of the field, what is wrong and the nearest valid spelling. Warnings
    are about what is valid and seldom intended, such as the name of kube-scheduler. Both go to stderr.

    \b
    Exit codes:
      0  the scheduler would start with FILE, perhaps with warnings
      2  FILE is invalid, or cannot be read
    """
    configuration = load(file)
    for warning in configuration.warnings():
        click.echo(f"warning: {file}: {warning}", err=True)
    if is_effective:
        click.echo(effective(configuration), nl=False)
        return
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    click.echo(f"{file}: valid; schedulerName: {names}")
