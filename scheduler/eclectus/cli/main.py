"""`eclectus …` and `kubectl eclectus …`: one program with a table of commands.

Exit codes: 0 success, 1 the command has failed, 2 its arguments or its configuration are invalid.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from eclectus import __version__
from eclectus.cli.check_config import check_config
from eclectus.cli.completion import VARIABLE, completion, for_kubectl
from eclectus.cli.pending import pending
from eclectus.cli.policies import policies
from eclectus.cli.replay import replay
from eclectus.cli.scheduler import scheduler
from eclectus.cli.simulate import scenarios, simulate
from eclectus.cli.speeds import speeds
from eclectus.cli.version import version
from eclectus.model.errors import EclectusError, SettingsError

COMMANDS = [
    scheduler,
    pending,
    speeds,
    check_config,
    policies,
    simulate,
    scenarios,
    replay,
    version,
    completion,
]


@click.group(commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="eclectus")
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
