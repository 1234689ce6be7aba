"""`--set path=value`: changes one field of a scenario before it is validated."""

from __future__ import annotations

from typing import Any

import yaml

from eclectus.model.errors import SettingsError


def apply_override(document: Any, change: str) -> None:
    """`a.b[0].c=value`: set one field in place. List items may be named instead of numbered.

    Raises SettingsError.
    """
    where, equals, text = change.partition("=")
    steps = where.replace("[", ".").replace("]", "").split(".")
    if not equals or not all(steps):
        raise SettingsError(change, "write it as path=value, such as workload.poisson.load=0.8")
    at = document
    for step in steps[:-1]:
        at = _inner(at, step, where)
    last = _key(at, steps[-1], where)
    at[last] = yaml.safe_load(text)


def _inner(at: Any, step: str, where: str) -> Any:
    key = _key(at, step, where)
    if isinstance(at, dict):
        at[key] = {} if at.get(key) is None else at[key]
    return at[key]


def _key(at: Any, step: str, where: str) -> str | int:
    if isinstance(at, dict):
        return step
    if isinstance(at, list) and step.isdigit() and int(step) < len(at):
        return int(step)
    if isinstance(at, list):
        for number, each in enumerate(at):
            if isinstance(each, dict) and step in (each.get("schedulerName"), each.get("name")):
                return number
    raise SettingsError(where, f"there is no {step!r}")
