"""`eclectus check-config`, `config import`, `policies`: configurations checked, translated and explained."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import click

from eclectus.config.configuration import effective, load
from eclectus.config.described import described, traits
from eclectus.config.profiles import foreign_policies
from eclectus.config.settings_reading import read_file
from eclectus.config.upstream import translate
from eclectus.model.errors import SettingsError
from eclectus.model.printed import nearest
from eclectus.policies.table import ROLES


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


@click.command()
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List all policies by role, or explain the policy NAME in each of its roles: its settings, its paper,
    and where it departs from that.
    """
    unusable = []
    for each in foreign_policies():
        try:
            each.load()  # into the table
        except SettingsError as error:
            unusable.append(error.problem)
    if name is None:
        for role, known in ROLES.items():
            for policy, kind in known.items():
                click.echo(f"{role:8} {policy:16} {_description(kind)}")
        for problem in unusable:
            click.echo(f"unusable: {problem}", err=True)
        return
    found = [(role, known[name]) for role, known in ROLES.items() if name in known]
    if not found:
        every = sorted({policy for known in ROLES.values() for policy in known})
        raise click.UsageError(f"policy {name!r} is unknown; {nearest(name, every)}")
    click.echo("\n\n".join("\n".join(_explain(role, name, kind)) for role, kind in found))


def _description(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _explain(role: str, name: str, kind: type[Any]) -> Iterator[str]:
    yield f"{role}: {{policy: {name}}}"
    yield f"  {_description(kind)}"
    for trait in traits(kind):
        yield f"  - {trait}"
    for each in described(kind):
        yield f"  {each.key}: {each.default}    # {each.values}"
        reason = f" Default: {each.why}." if each.why else ""
        yield fill(f"{each.means}{reason}", 96, initial_indent="      ", subsequent_indent="      ")
    yield f"\n{_source(kind)}"


def _source(kind: type[Any]) -> str:
    """Its idea, its paper, and where it departs from that: what its module says."""
    return (sys.modules[kind.__module__].__doc__ or "").strip()
