"""`eclectus …` and `kubectl eclectus …`: one program with a table of commands.

Exit codes: 0 success, 1 the command has failed, 2 its arguments or its configuration are invalid.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import cast

import click

from eclectus.cli.completion import VARIABLE, for_kubectl
from eclectus.model.errors import EclectusError, SettingsError

COMMANDS = {
    "scheduler": "scheduler",
    "pending": "pending",
    "explain": "explain",
    "speeds": "speeds",
    "dag": "dag",
    "check-config": "config_files",
    "config": "config_files",
    "policies": "policies",
    "simulate": "simulate",
    "scenarios": "simulate",
    "replay": "replay",
    "version": "version",
    "completion": "completion",
}
"""Command -> its module in `eclectus.cli`, which is imported when the command is used."""


class Commands(click.Group):
    """The table of commands. The scheduler starts without importing the simulator and its formats."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None if there is none of that name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"eclectus.cli.{COMMANDS[cmd_name]}")
        return cast(click.Command, getattr(module, cmd_name.replace("-", "_")))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="eclectus", prog_name="eclectus")
def program() -> None:
    """A Kubernetes scheduler that learns how fast each node is."""


def main() -> None:
    """The entry point of both console scripts."""
    name = "kubectl eclectus" if Path(sys.argv[0]).name.startswith("kubectl-") else "eclectus"
    try:
        program.main(prog_name=name, complete_var=VARIABLE)
    except SettingsError as error:
        _fail(error.lines(), 2)
    except (EclectusError, OSError) as error:
        _fail([str(error)], 1)


def complete_for_kubectl() -> None:
    """The entry point of kubectl_complete-eclectus, which kubectl calls with the words typed so far."""
    for line in for_kubectl(program, sys.argv[1:]):
        click.echo(line)


def _fail(problems: list[str], code: int) -> None:
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    if len(problems) > 1:
        click.echo(f"{len(problems)} errors", err=True)
    sys.exit(code)
