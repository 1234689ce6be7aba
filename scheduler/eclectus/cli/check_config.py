"""`eclectus check-config`: would the scheduler start with this file?"""

from __future__ import annotations

from pathlib import Path

import click

from eclectus.config import load


@click.command("check-config")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def check_config(file: Path) -> None:
    """Check a SchedulerConfiguration FILE and say what is wrong with it.

    Exits with 0 when the scheduler would start with it, with 2 and the field's path when not.
    """
    configuration = load(file)
    names = ", ".join(profile.scheduler_name for profile in configuration.profiles)
    click.echo(f"{file}: good; schedulerName: {names}")
