"""`eclectus check-config`: validate a SchedulerConfiguration without starting anything."""

from __future__ import annotations

from pathlib import Path

import click

from eclectus.config import load


@click.command("check-config")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check_config(file: Path) -> None:
    """Validate a SchedulerConfiguration FILE and report what is wrong with it.

    Exits with 0 if the scheduler would start with it, otherwise with 2 and the path of the wrong field.
    """
    configuration = load(file)
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    click.echo(f"{file}: valid; schedulerName: {names}")
