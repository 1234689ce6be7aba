"""`eclectus policies`: the policies of a SchedulerConfiguration, and each setting with its default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from textwrap import fill
from typing import Any, Literal, get_args, get_origin

import click

from eclectus.config.reading import nearest, settings_of
from eclectus.model.settings import Setting
from eclectus.policies.table import ROLES


@click.command()
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List all policies by role, or explain the policy NAME and its settings in each of its roles."""
    if name is None:
        for role, known in ROLES.items():
            for policy, kind in known.items():
                click.echo(f"{role:8} {policy:16} {_description(kind)}")
        return
    found = [(role, known[name]) for role, known in ROLES.items() if name in known]
    if not found:
        every = sorted({policy for known in ROLES.values() for policy in known})
        raise click.UsageError(f"policy {name!r} is unknown; {nearest(name, every)}")
    click.echo("\n\n".join("\n".join(_explain(role, name, kind)) for role, kind in found))


def _description(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _explain(role: str, name: str, kind: type[Any]) -> Iterator[str]:
    yield f"{role}: {{policy: {name}}}"
    yield f"  {_description(kind)}"
    defaults = {field.name: _default(field) for field in fields(kind)}
    for key, (field, hint, setting) in settings_of(kind).items():
        yield f"  {key}: {_yaml(defaults[field])}    # {_values(hint, setting)}"
        if setting is not None:
            reason = f" Default: {setting.why}." if setting.why else ""
            text = f"{setting.means[0].upper()}{setting.means[1:]}.{reason}"
            yield fill(text, 96, initial_indent="      ", subsequent_indent="      ")


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _values(hint: Any, setting: Setting | None) -> str:
    """The allowed values: the choices, or the bounds with the unit, or the type."""
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if get_origin(hint) is Literal:
        return " | ".join(get_args(hint))
    if kinds == [bool]:
        return "true | false"
    unit = f" {setting.unit}" if setting and setting.unit else ""
    bounds = (setting.least, setting.most) if setting else (None, None)
    spelled = " to ".join(f"{bound:g}" for bound in bounds if bound is not None)
    return f"{spelled}{unit}" or str(hint.__name__)


def _yaml(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return value or '""'
    return str(value).lower() if isinstance(value, bool) else str(value)
