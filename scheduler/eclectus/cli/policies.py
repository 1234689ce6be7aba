"""`eclectus policies`: the policies of a SchedulerConfiguration, and each setting with its default.

Those of other distributions are listed with them, and on stderr those that cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Any

import click

from eclectus.config.described import described, traits
from eclectus.config.foreign_policies import ForeignPolicy, foreign_policies
from eclectus.config.settings_reading import nearest
from eclectus.model.errors import SettingsError
from eclectus.policies.table import ROLES


@click.command()
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List all policies by role, or explain the policy NAME and its settings in each of its roles."""
    unusable = [problem for each in foreign_policies() if (problem := _problem(each))]
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


def _problem(policy: ForeignPolicy) -> str:
    """Why a policy of another distribution cannot be used; empty if it can, and is in the table then."""
    try:
        policy.load()
    except SettingsError as error:
        return error.problem
    return ""


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
